package httpapi_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/access/oidc"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/httpapi/internal/sessions"
	"github.com/dibs-dev/dibs/internal/openid"
)

var ann = openid.Person{ID: "ann-1", Email: "ann@shop.example", Groups: []string{"ops"}}

// people is a stack with an identity provider, and its clock.
type people struct {
	*stack
	at    *openid.Provider
	outer string
	mu    sync.Mutex
	ahead time.Duration
}

func (p *people) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.ahead)
}

func (p *people) pass(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead += d
}

// newPeople starts both; the provider sends browsers back to the address of the handler.
func newPeople(t *testing.T, change func(*httpapi.Config)) *people {
	t.Helper()
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	at, err := openid.Start(server.URL + oidc.CallbackPath)
	must(t, err)
	t.Cleanup(at.Close)
	at.Is(ann)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	provider, err := oidc.New(oidc.Config{
		Issuer: at.URL(), ClientID: openid.ClientID, ClientSecret: openid.ClientSecret, Address: server.URL, Transport: transport,
		Roles: map[string]access.Role{"ops": access.RoleAdmin, "desk": access.RoleViewer},
	})
	must(t, err)
	p := &people{at: at}
	svc := newService(t)
	cfg := httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), People: provider, Now: p.now}
	if change != nil {
		change(&cfg)
	}
	h, err := httpapi.NewHandlers(cfg)
	must(t, err)
	handler = h.All
	outer := httptest.NewServer(h.Outer)
	t.Cleanup(outer.Close)
	p.outer = outer.URL
	p.stack = &stack{t: t, service: svc, handler: handler, url: server.URL, logs: &lockedBuffer{}}
	return p
}

// atCallback reports whether a browser is about to come back.
func atCallback(u *url.URL) bool { return u.Path == oidc.CallbackPath }

// enter signs a browser in from a page of the console, and returns what the last redirect answered.
func (p *people) enter(b *openid.Browser, query string) *http.Response {
	p.t.Helper()
	back, answer, err := b.Until(p.t.Context(), p.url+"/console/oidc"+query, atCallback)
	must(p.t, err)
	if answer != nil {
		p.t.Fatalf("ended at %s: %s", back, answer.Status)
	}
	return p.get(b, back.String())
}

func (p *people) get(b *openid.Browser, address string) *http.Response {
	p.t.Helper()
	answer, err := b.Get(p.t.Context(), address)
	must(p.t, err)
	p.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// page is an answer's body.
func page(t *testing.T, answer *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(answer.Body)
	must(t, err)
	return html.UnescapeString(string(raw))
}

// sessionOf is the session's cookie of an answer as a header line; empty without one.
func sessionOf(answer *http.Response) string {
	for _, c := range answer.Cookies() {
		if c.Name == "dibs_session" {
			return "Cookie: dibs_session=" + c.Value
		}
	}
	return ""
}

// A person signs in at the provider, and has a session as a key has: a cookie, a token for changes, a place in the list,
// and an end, with which the key ends too.
func TestPeopleSignIn(t *testing.T) {
	s := newPeople(t, nil)
	answer := s.enter(openid.NewBrowser(), "?to=/console/orders%3Fstatus=paid")
	if answer.StatusCode != 302 || answer.Header.Get("Location") != "/console/orders?status=paid" || answer.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s %v", answer.Status, answer.Header)
	}
	set := strings.Join(answer.Header["Set-Cookie"], "\n")
	for _, part := range []string{"dibs_sign_in=; Path=/console/oidc; Max-Age=0", "dibs_session=", "HttpOnly", "SameSite=Strict", "Path=/v1"} {
		if !strings.Contains(set, part) {
			t.Errorf("%q lacks %s", set, part)
		}
	}
	cookie := sessionOf(answer)
	who := s.ask("GET", "/v1/session", "", cookie)
	if who.json["name"] != "ann@shop.example" || who.json["role"] != "admin" {
		t.Fatalf("%s", who.body)
	}
	csrf := "Dibs-Csrf: " + who.json["csrf_token"].(string)
	product := `{"id":"p","name":"p","stock":1}`
	if a := s.ask("POST", "/v1/products", product, cookie); a.status != 403 {
		t.Errorf("a change without the token: %d %s", a.status, a.body)
	}
	if a := s.ask("POST", "/v1/products", product, cookie, csrf); a.status != 201 {
		t.Errorf("a change: %d %s", a.status, a.body)
	}
	acts := s.ask("GET", "/v1/audit", "", cookie)
	for _, part := range []string{`"action":"create-product"`, `"action":"oidc-sign-in"`, `"key_name":"ann@shop.example"`, s.at.URL() + ` ann-1`} {
		if !strings.Contains(acts.body, part) {
			t.Errorf("the admin log lacks %s: %s", part, acts.body)
		}
	}
	key := who.json["key_id"].(string)
	if a := s.ask("POST", "/v1/keys/"+key+"/rotate", `{}`, cookie, csrf); a.status != 409 {
		t.Errorf("rotating a sign-in: %d %s", a.status, a.body)
	}
	item := s.ask("GET", "/v1/sessions", "", asAdmin).json["items"].([]any)[0].(map[string]any)
	if item["name"] != "ann@shop.example" || item["key_id"] != key {
		t.Errorf("%v", item)
	}
	if a := s.ask("DELETE", "/v1/sessions/"+item["id"].(string), "", asAdmin); a.status != 200 {
		t.Errorf("ending: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/session", "", cookie); a.status != 401 {
		t.Errorf("after the end: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/keys/"+key, "", asAdmin); a.json["revoked_at"] == nil || a.json["person"] != s.at.URL()+" ann-1" {
		t.Errorf("the key: %s", a.body)
	}
}

// Over HTTPS the cookies of a sign-in have the prefix that browsers take from this host alone: one that another host
// planted begins nothing here.
func TestPeopleSignInOverHTTPS(t *testing.T) {
	s := newPeople(t, func(c *httpapi.Config) { c.SecureCookies = true })
	begun := s.ask("GET", "/console/oidc", "")
	set := begun.header.Get("Set-Cookie")
	for _, part := range []string{"__Host-dibs_sign_in=", "Path=/;", "HttpOnly", "Secure", "SameSite=Lax"} {
		if !strings.Contains(set, part) {
			t.Errorf("%q lacks %s", set, part)
		}
	}
	cookie, _, _ := strings.Cut(set, ";")
	to, err := url.Parse(begun.header.Get("Location"))
	must(t, err)
	denied := "/console/oidc/callback?error=access_denied&state=" + url.QueryEscape(to.Query().Get("state"))
	for with, want := range map[string]string{cookie: "did not sign you in", strings.TrimPrefix(cookie, "__Host-"): "begun in another browser"} {
		if a := s.ask("GET", denied, "", "Cookie: "+with); a.status != 401 || !strings.Contains(a.body, want) {
			t.Errorf("%.20s: %d %s", with, a.status, a.body)
		}
	}
}

// A sign-in of another browser, or of a person without a role, becomes no session, and is told on a page.
func TestPeopleAreRefused(t *testing.T) {
	s := newPeople(t, nil)
	back := func(b *openid.Browser) string {
		t.Helper()
		u, _, err := b.Until(t.Context(), s.url+"/console/oidc", atCallback)
		must(t, err)
		return u.String()
	}
	refused := func(what string, answer *http.Response, status int, part string) {
		t.Helper()
		text := page(t, answer)
		if answer.StatusCode != status || !strings.Contains(answer.Header.Get("Content-Type"), "text/html") || !strings.Contains(text, part) || sessionOf(answer) != "" {
			t.Errorf("%s: %s %v %s", what, answer.Status, answer.Header, text)
		}
	}
	first := openid.NewBrowser()
	at := back(first)
	refused("another browser", s.get(openid.NewBrowser(), at), 401, "begun in another browser")
	other := openid.NewBrowser()
	back(other)
	refused("another sign-in of the browser", s.get(other, at), 401, "begun in another browser")
	if answer := s.get(first, at); sessionOf(answer) == "" {
		t.Errorf("the browser itself: %s", answer.Status)
	}
	refused("the same address again", s.get(first, at), 401, "begun in another browser")
	late := openid.NewBrowser()
	at = back(late)
	s.pass(11 * time.Minute)
	refused("too late", s.get(late, at), 401, "too long ago")

	denied := openid.NewBrowser()
	u, err := url.Parse(back(denied))
	must(t, err)
	q := u.Query()
	q.Del("code")
	q.Set("error", "access_denied")
	u.RawQuery = q.Encode()
	refused("denied at the provider", s.get(denied, u.String()), 401, "did not sign you in")
	s.at.Is(openid.Person{ID: "eve", Email: "eve@shop.example", Groups: []string{"guests"}})
	refused("no role", s.enter(openid.NewBrowser(), ""), 403, "You are signed in as eve@shop.example, and none of your groups may use this console")
	if acts := s.ask("GET", "/v1/audit", "", asAdmin); !strings.Contains(acts.body, `"key_name":"eve@shop.example"`) || !strings.Contains(acts.body, `"reason":"forbidden"`) {
		t.Errorf("the admin log: %s", acts.body)
	}
	if n := len(s.ask("GET", "/v1/sessions", "", asAdmin).json["items"].([]any)); n != 1 {
		t.Errorf("%d sessions", n)
	}
	answer, err := http.Get(s.outer + "/console/oidc")
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != 404 {
		t.Errorf("for users: %s", answer.Status)
	}
}

// While the provider is away, a page says so, and keys go on; the service was started all the same. Once it is there,
// people sign in.
func TestPeopleWithoutTheProvider(t *testing.T) {
	s := newPeople(t, nil)
	s.at.Down(true)
	answer := s.get(openid.NewBrowser(), s.url+"/console/oidc")
	if text := page(t, answer); answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || !strings.Contains(text, "cannot be reached") {
		t.Errorf("%s %s", answer.Status, text)
	}
	if a := s.ask("GET", "/v1/session", "", asAdmin); a.status != 200 {
		t.Errorf("with a key: %d", a.status)
	}
	s.at.Down(false)
	waitFor(t, func() bool { return s.get(openid.NewBrowser(), s.url+"/console/oidc").StatusCode == 302 })
}

// A link leads through the sign-in to pages of the console only.
func TestSignInLeadsInside(t *testing.T) {
	s := newPeople(t, nil)
	for to, want := range map[string]string{
		"/console/campaigns/x?y=1":              "/console/campaigns/x?y=1",
		"":                                      "/console/",
		"https://evil.example/console/":         "/console/",
		"//evil.example/console/":               "/console/",
		"/\\evil.example":                       "/console/",
		"///evil.example/../console/":           "/console/",
		"/console/../..//evil.example":          "/console/",
		"/console/%2e%2e//evil.example":         "/console/",
		"/console/oidc/callback?state=x":        "/console/",
		"javascript:alert(1)":                   "/console/",
		"/console/\r\nSet-Cookie: a=b":          "/console/",
		"/v1/session":                           "/console/",
		"/console/" + string(make([]byte, 600)): "/console/",
	} {
		if answer := s.enter(openid.NewBrowser(), "?to="+url.QueryEscape(to)); answer.Header.Get("Location") != want {
			t.Errorf("%q leads to %q, not %q", to, answer.Header.Get("Location"), want)
		}
	}
}

// line is a command line that signs in.
type line struct{ verifier, challenge, state string }

func newLine() line {
	l := line{verifier: rand.Text() + rand.Text(), state: rand.Text()}
	sum := sha256.Sum256([]byte(l.verifier))
	l.challenge = base64.RawURLEncoding.EncodeToString(sum[:])
	return l
}

func (l line) query(port string) string {
	return "?" + url.Values{"port": {port}, "challenge": {l.challenge}, "state": {l.state}}.Encode()
}

var signInLink = regexp.MustCompile(`href="(http://127\.0\.0\.1:[^"]+)"`)

// A command line gets a key by a page that asks first, once, and by what only it knows. Signing out revokes the key.
func TestCommandLineSignIn(t *testing.T) {
	s := newPeople(t, nil)
	l := newLine()
	codeOf := func(l line) string {
		t.Helper()
		answer := s.enter(openid.NewBrowser(), l.query("4711"))
		text := page(t, answer)
		m := signInLink.FindStringSubmatch(text)
		if answer.StatusCode != 200 || m == nil || !strings.Contains(text, "ask") || !strings.Contains(text, "ann@shop.example") || sessionOf(answer) != "" || answer.Header.Get("Content-Security-Policy") == "" {
			t.Fatalf("%s %v %s", answer.Status, answer.Header, text)
		}
		u, err := url.Parse(m[1])
		must(t, err)
		if u.Host != "127.0.0.1:4711" || u.Query().Get("state") != l.state {
			t.Fatalf("the link is %s", u)
		}
		return u.Query().Get("code")
	}
	exchange := func(code, verifier string, headers ...string) answer {
		t.Helper()
		return s.ask("POST", "/v1/session/token", `{"code":"`+code+`","verifier":"`+verifier+`"}`, headers...)
	}
	code := codeOf(l)
	for what, a := range map[string]answer{
		"another's verifier": exchange(code, newLine().verifier), "no verifier": exchange(code, ""), "no code": exchange("x", l.verifier),
	} {
		if a.status != 401 {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if a := exchange(code, l.verifier, "Sec-Fetch-Site: cross-site"); a.status != 403 {
		t.Errorf("another site: %d %s", a.status, a.body)
	}
	s.takesNoCodeOfUsers(`{"code":"` + code + `","verifier":"` + l.verifier + `"}`)
	got := exchange(code, l.verifier)
	doc := s.ask("GET", "/openapi.json", "").json
	documented(t, doc, "POST /v1/session/token", got)
	if got.status != 200 || got.json["name"] != "ann@shop.example" || got.json["role"] != "admin" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if a := exchange(code, l.verifier); a.status != 401 || strings.Contains(a.body, "secret") {
		t.Errorf("again: %d %s", a.status, a.body)
	}
	as := "Authorization: Bearer " + got.json["secret"].(string)
	if a := s.ask("GET", "/v1/claims", "", as); a.status != 200 {
		t.Errorf("the key: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/sessions", "", as); len(a.json["items"].([]any)) != 1 {
		t.Errorf("%s", a.body)
	}
	if a := s.ask("DELETE", "/v1/session", "", as); a.status != 200 {
		t.Errorf("signing out: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/claims", "", as); a.status != 401 {
		t.Errorf("after signing out: %d %s", a.status, a.body)
	}
	l = newLine()
	code = codeOf(l)
	s.pass(6 * time.Minute)
	if a := exchange(code, l.verifier); a.status != 401 {
		t.Errorf("too late: %d %s", a.status, a.body)
	}
	for _, bad := range []string{l.query("0"), l.query("70000"), l.query("80@evil.example"), l.query("x"), "?port=80", "?port=80&state=s&challenge=short"} {
		if answer := s.get(openid.NewBrowser(), s.url+"/console/oidc"+bad); answer.StatusCode != 400 {
			t.Errorf("%s: %s", bad, answer.Status)
		}
	}
}

// takesNoCodeOfUsers fails the test unless the listener for users answers an exchange of a good code as a route that it
// does not have.
func (p *people) takesNoCodeOfUsers(body string) {
	p.t.Helper()
	outer := *p.stack
	outer.url = p.outer
	none := outer.ask("POST", "/v1/session/none", "{}")
	for _, headers := range [][]string{nil, {asAdmin}, {"Sec-Fetch-Site: cross-site"}} {
		a := outer.ask("POST", "/v1/session/token", body, headers...)
		if a.status != 404 || a.status != none.status || a.json["detail"] != none.json["detail"] || strings.Contains(a.body, "secret") {
			p.t.Errorf("for users, with %q: %d %s, want %s", headers, a.status, a.body, none.body)
		}
	}
}

// TestADumpMakesNoAdministrator: what one reads in the ledger, the key of sealed cookies among it, is not enough to name
// oneself: a code counts only where a person has been identified.
func TestADumpMakesNoAdministrator(t *testing.T) {
	key := make([]byte, httpapi.SessionKeySize)
	s := newPeople(t, func(c *httpapi.Config) { c.SessionKey = key })
	seals, err := sessions.New(key, false, s.now, nil)
	must(t, err)
	l := newLine()
	forged, err := seals.Seal("dibs login", map[string]any{
		"i": access.NewSessionID(), "p": access.Person{Subject: "nobody", Name: "mallory", Role: access.RoleAdmin}, "c": l.challenge, "u": s.now().Add(time.Minute).Unix(),
	})
	must(t, err)
	if a := s.ask("POST", "/v1/session/token", `{"code":"`+forged+`","verifier":"`+l.verifier+`"}`); a.status != 401 {
		t.Errorf("a code of one's own making: %d %s", a.status, a.body)
	}
}

// A key of a sign-in ends by itself, however it is used.
func TestSignInsEnd(t *testing.T) {
	s := newPeople(t, nil)
	cookie := sessionOf(s.enter(openid.NewBrowser(), ""))
	s.pass(11 * time.Hour)
	if a := s.ask("GET", "/v1/session", "", cookie); a.status != 200 {
		t.Errorf("after eleven hours: %d %s", a.status, a.body)
	}
	s.pass(2 * time.Hour)
	if a := s.ask("GET", "/v1/session", "", cookie); a.status != 401 {
		t.Errorf("after thirteen hours: %d %s", a.status, a.body)
	}
}

// One person is one person, however often they sign in and whatever their address is.
func TestSecondPersonOfPeople(t *testing.T) {
	s := newPeople(t, func(c *httpapi.Config) {
		c.Approvals = access.ApprovalRules{Acts: map[access.Act]bool{access.ActDeposit: true}}
	})
	signIn := func(who openid.Person) []string {
		t.Helper()
		s.at.Is(who)
		cookie := sessionOf(s.enter(openid.NewBrowser(), ""))
		return []string{cookie, "Dibs-Csrf: " + s.ask("GET", "/v1/session", "", cookie).json["csrf_token"].(string)}
	}
	first := signIn(ann)
	asked := s.ask("POST", "/v1/accounts/7/deposits", `{"amount":{"amount":5,"currency":"CNY"},"ref":"r"}`, first...)
	if asked.status != 202 {
		t.Fatalf("%d %s", asked.status, asked.body)
	}
	path := "/v1/approvals/" + asked.json["approval_id"].(string) + "/approve"
	again := signIn(openid.Person{ID: ann.ID, Email: "ann.smith@shop.example", Groups: ann.Groups})
	if a := s.ask("POST", path, `{}`, again...); a.status != 403 {
		t.Errorf("the same person: %d %s", a.status, a.body)
	}
	if a := s.ask("POST", path, `{}`, signIn(openid.Person{ID: "bob", Email: "bob@shop.example", Groups: ann.Groups})...); a.status != 200 {
		t.Errorf("another one: %d %s", a.status, a.body)
	}
}

// No key and no token opens a route of signing in by a provider: each is answered as none is. For users the routes are
// not there.
func TestSecurityMatrixOfPeople(t *testing.T) {
	s := newPeople(t, nil)
	doors := map[string]int{"GET /console/oidc": 302, "GET /console/oidc/callback": 401, "POST /v1/session/token": 401}
	plain := newStack(t, nil).operations()
	tokens := falseTokens(t, adminKey[:len(adminKey)-1])
	tokens["none"], tokens["user"], tokens["admin"] = "", strings.TrimPrefix(jwtFor(t, "42", time.Hour), "Authorization: "), "Bearer "+adminKey
	found := 0
	for _, op := range s.operations() {
		if slices.Contains(plain, op) {
			continue
		}
		found++
		method, path, _ := strings.Cut(op, " ")
		body := ""
		if method == "POST" {
			body = `{"code":"x","verifier":"y"}`
		}
		check := func(with string, a answer, status int) {
			t.Helper()
			if status == 0 || a.status != status || a.header.Get("Cache-Control") != "no-store" || strings.Contains(a.header.Get("Set-Cookie"), "dibs_session=") {
				t.Errorf("%s with %s: %d %v %s, want %d", op, with, a.status, a.header, a.body, status)
			}
			for _, no := range append([]string{"secret", "ann"}, never...) {
				if strings.Contains(a.body, no) {
					t.Errorf("%s with %s shows %q", op, with, no)
				}
			}
		}
		for name, token := range tokens {
			// Sign-ins that fail pause an address.
			s.pass(6 * time.Minute)
			check(name, s.ask(method, path, body, "Authorization: "+token), doors[op])
		}
		s.pass(time.Hour)
		cookie, bySession := sessionOf(s.enter(openid.NewBrowser(), "")), doors[op]
		if method == "POST" {
			// A session changes nothing without its token.
			bySession = 403
		}
		check("a session", s.ask(method, path, body, cookie), bySession)
		outer := *s.stack
		outer.url = s.outer
		if a := outer.ask(method, path, body, asAdmin); a.status != 404 {
			t.Errorf("%s for users: %d %s", op, a.status, a.body)
		}
	}
	if found != len(doors) {
		t.Errorf("%d routes of %d", found, len(doors))
	}
}

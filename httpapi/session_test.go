package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/httpapi"
)

// fakeCodes are login codes with the keys that they stand for.
type fakeCodes map[string]string

func (f *fakeCodes) Take(code string) (string, bool) {
	key, ok := (*f)[code]
	delete(*f, code)
	return key, ok
}

// signIn signs in and returns the cookie as a header line, and the token that changes carry.
func (s *stack) signIn(body string) (cookie, csrf string) {
	s.t.Helper()
	a := s.ask("POST", "/v1/session", body)
	if a.status != http.StatusOK {
		s.t.Fatalf("signing in: %d %s", a.status, a.body)
	}
	set := a.header.Get("Set-Cookie")
	value, _, _ := strings.Cut(set, ";")
	return "Cookie: " + value, "Dibs-Csrf: " + a.json["csrf_token"].(string)
}

const byKey = `{"key":"` + adminKey + `"}`

// A key becomes a cookie that browsers keep from scripts and from other sites, and that does not show the key.
func TestSessionCookie(t *testing.T) {
	s := newStack(t, nil)
	a := s.ask("POST", "/v1/session", byKey)
	set := a.header.Get("Set-Cookie")
	for _, part := range []string{"dibs_session=", "HttpOnly", "SameSite=Strict", "Path=/v1"} {
		if !strings.Contains(set, part) {
			t.Errorf("%q lacks %s", set, part)
		}
	}
	// Twelve hours, less what the answer took.
	session, err := http.ParseSetCookie(set)
	must(t, err)
	if age := session.MaxAge; age > 43200 || age < 43200-60 {
		t.Errorf("the session lasts %d seconds: %q", age, set)
	}
	if strings.Contains(set, "Secure") || strings.Contains(set, adminKey) || strings.Contains(a.body, adminKey) || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%q %s %v", set, a.body, a.header)
	}
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(s.service), JWTSecret: []byte(jwtSecret), SecureCookies: true})
	must(t, err)
	secure := serve(t, s.service, h)
	a = secure.ask("POST", "/v1/session", byKey)
	set = a.header.Get("Set-Cookie")
	for _, part := range []string{"__Host-dibs_session=", "HttpOnly", "SameSite=Strict", "Path=/;", "Secure"} {
		if !strings.Contains(set, part) || strings.Contains(set, "Domain") {
			t.Errorf("under TLS: %q lacks %s, or names a domain", set, part)
		}
	}
	cookie, _, _ := strings.Cut(set, ";")
	if a := secure.ask("GET", "/v1/session", "", "Cookie: "+cookie); a.status != 200 {
		t.Errorf("under TLS: %d %s", a.status, a.body)
	}
	// Another host of the domain can plant a cookie without the prefix.
	if a := secure.ask("GET", "/v1/session", "", "Cookie: "+strings.TrimPrefix(cookie, "__Host-")); a.status != 401 {
		t.Errorf("a planted cookie: %d %s", a.status, a.body)
	}
	out := secure.ask("DELETE", "/v1/session", "", "Cookie: "+cookie, "Dibs-Csrf: "+fmt.Sprint(a.json["csrf_token"])).header.Get("Set-Cookie")
	if !strings.Contains(out, "__Host-dibs_session=;") || !strings.Contains(out, "Max-Age=0") || !strings.Contains(out, "Secure") {
		t.Errorf("signing out under TLS: %q", out)
	}
	if strings.Contains(s.logs.String(), adminKey) {
		t.Error("the key is in the log")
	}
}

// The session speaks for requests that carry it, and for changes with its token alone.
func TestSessionSpeaks(t *testing.T) {
	s := newStackAt(t, inOneMinute(), nil)
	cookie, csrf := s.signIn(byKey)
	draft := `{"id":"by-session","kind":"sale","title":"T","starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","stock":{"units":3}}`
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
	}{
		{"who", "GET", "/v1/session", "", []string{cookie}, 200},
		{"reading", "GET", "/v1/claims", "", []string{cookie}, 200},
		{"no session", "GET", "/v1/claims", "", nil, 401},
		{"a change without the token", "POST", "/v1/campaigns", draft, []string{cookie}, 403},
		{"a change with a false token", "POST", "/v1/campaigns", draft, []string{cookie, "Dibs-Csrf: x"}, 403},
		{"a change by another site", "POST", "/v1/campaigns", draft, []string{cookie, csrf, "Sec-Fetch-Site: cross-site"}, 403},
		{"a change", "POST", "/v1/campaigns", draft, []string{cookie, csrf}, 201},
		{"a cookie that was changed", "GET", "/v1/claims", "", []string{cookie[:len(cookie)-2] + "AA"}, 401},
		{"a cookie that is none", "GET", "/v1/claims", "", []string{"Cookie: dibs_session=%%"}, 401},
		{"a user's token beside it counts", "GET", "/v1/claims", "", []string{cookie, asUser}, 403},
		{"signing in by another site", "POST", "/v1/session", byKey, []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"a false key", "POST", "/v1/session", `{"key":"dibs_no_such_key_0123456789"}`, nil, 401},
		{"key and code", "POST", "/v1/session", `{"key":"a","code":"b"}`, nil, 400},
		{"signing in again with an old cookie", "POST", "/v1/session", byKey, []string{cookie}, 200},
	} {
		if a := s.ask(c.method, c.path, c.body, c.headers...); a.status != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, a.status, c.status, a.body)
		}
	}
	// Three changes without the token are one line of the program's log, which names the session and no secret.
	if logs := s.logs.String(); strings.Count(logs, "a change by a session without its token was refused") != 1 || !strings.Contains(logs, "session=s-") {
		t.Errorf("the log of changes without the token: %s", logs)
	}
	acts := s.ask("GET", "/v1/audit", "", cookie)
	if !strings.Contains(acts.body, "by-session") || strings.Contains(acts.body, adminKey) {
		t.Errorf("the audit log: %s", acts.body)
	}
	out := s.ask("DELETE", "/v1/session", "", cookie, csrf)
	if out.status != 200 || !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("signing out: %d %v", out.status, out.header)
	}
}

// A code signs in once.
func TestSessionByCode(t *testing.T) {
	s := newStack(t, nil)
	if cookie, _ := s.signIn(`{"code":"once"}`); s.ask("GET", "/v1/claims", "", cookie).status != 200 {
		t.Error("the session is worth nothing")
	}
	if a := s.ask("POST", "/v1/session", `{"code":"once"}`); a.status != 401 || a.header.Get("Set-Cookie") != "" {
		t.Errorf("the second time: %d %s", a.status, a.body)
	}
}

// A session ends with its key, and with its time.
func TestSessionEnds(t *testing.T) {
	svc := newService(t)
	var mu sync.Mutex
	clock := time.Now()
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return clock
	}})
	must(t, err)
	s := serve(t, svc, h)
	key, secret, err := svc.Access.CreateKey(context.Background(), "console", access.RoleViewer)
	must(t, err)
	cookie, _ := s.signIn(`{"key":"` + secret + `"}`)
	if a := s.ask("GET", "/v1/session", "", cookie); a.json["role"] != "viewer" || a.json["name"] != "console" {
		t.Errorf("%s", a.body)
	}
	must(t, svc.Access.RevokeKey(context.Background(), key.ID))
	if a := s.ask("GET", "/v1/session", "", cookie); a.status != 401 {
		t.Errorf("after the key was revoked: %d %s", a.status, a.body)
	}
	cookie, _ = s.signIn(byKey)
	mu.Lock()
	clock = clock.Add(13 * time.Hour)
	mu.Unlock()
	if a := s.ask("GET", "/v1/session", "", cookie); a.status != 401 {
		t.Errorf("after its time: %d %s", a.status, a.body)
	}
}

// Nodes with the same key open each other's cookies, others do not; the listener for the world opens none.
func TestSessionKey(t *testing.T) {
	svc := newService(t)
	node := func(key byte) httpapi.Handlers {
		h, err := httpapi.NewHandlers(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), SessionKey: []byte(strings.Repeat(string(rune(key)), httpapi.SessionKeySize))})
		must(t, err)
		return h
	}
	first, second, other := node('a'), node('a'), node('b')
	cookie, _ := serve(t, svc, first.All).signIn(byKey)
	if a := serve(t, svc, second.All).ask("GET", "/v1/claims", "", cookie); a.status != 200 {
		t.Errorf("another node: %d %s", a.status, a.body)
	}
	if a := serve(t, svc, other.All).ask("GET", "/v1/claims", "", cookie); a.status != 401 {
		t.Errorf("another installation: %d %s", a.status, a.body)
	}
	outer := httptest.NewServer(first.Outer)
	t.Cleanup(outer.Close)
	world := &stack{t: t, service: svc, url: outer.URL, logs: &lockedBuffer{}}
	if a := world.ask("GET", "/v1/campaigns", "", cookie); a.status != 200 || strings.Contains(a.body, "draft") {
		t.Errorf("the world's listener: %d %s", a.status, a.body)
	}
	if a := world.ask("GET", "/v1/claims", "", cookie); a.status != 404 {
		t.Errorf("the world's listener, for admins: %d %s", a.status, a.body)
	}
	if _, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), SessionKey: []byte("short")}); err == nil {
		t.Error("a short key was taken")
	}
}

// Guessing a key at the console's sign-in has to wait longer each time, also for the right
// one then.
func TestSignInPauses(t *testing.T) {
	s := newStack(t, nil)
	for i := range 5 {
		if a := s.ask("POST", "/v1/session", fmt.Sprintf(`{"key":"a-guess-of-a-key-%d"}`, i)); a.status != 401 {
			t.Fatalf("guess %d: %d %s", i, a.status, a.body)
		}
	}
	if a := s.ask("POST", "/v1/session", `{"key":"`+adminKey+`"}`); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("after five guesses: %d %s", a.status, a.body)
	}
	waitFor(t, func() bool { return s.ask("POST", "/v1/session", `{"key":"`+adminKey+`"}`).status == 200 })
	told := s.logs.String()
	if strings.Count(told, "a sign-in to the console failed") != 5 || !strings.Contains(told, "an administrator signed in to the console") ||
		strings.Contains(told, "a-guess") || strings.Contains(told, adminKey) {
		t.Errorf("the log: %s", told)
	}
}

// TestPauseOfBegunSignIns: a sign-in that began before its address has to wait is refused when its body comes later, also
// with the right key: many are not sent at once to be judged before the first guess is.
func TestPauseOfBegunSignIns(t *testing.T) {
	at := time.Now()
	s := newStackAt(t, func() time.Time { return at }, nil)
	signIn := func(from string, body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/session", body)
		r.RemoteAddr, r.ContentLength = from, -1
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w
	}
	const guesser, other = "192.0.2.1:1", "192.0.2.2:1"
	begin := func(from string) (end func() *httptest.ResponseRecorder) {
		body, rest := io.Pipe()
		done := make(chan *httptest.ResponseRecorder, 1)
		go func() { done <- signIn(from, body) }()
		// The body is read after the first look at the pauses.
		_, err := io.WriteString(rest, byKey[:1])
		must(t, err)
		return func() *httptest.ResponseRecorder {
			_, err := io.WriteString(rest, byKey[1:])
			must(t, err)
			must(t, rest.Close())
			return <-done
		}
	}
	begun, others := begin(guesser), begin(other)
	for i := range 5 {
		if w := signIn(guesser, strings.NewReader(fmt.Sprintf(`{"key":"a-guess-of-a-key-%d"}`, i))); w.Code != 401 {
			t.Fatalf("guess %d: %d %s", i, w.Code, w.Body)
		}
	}
	if w := begun(); w.Code != 429 || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("one that had begun: %d %s", w.Code, w.Body)
	}
	if w := others(); w.Code != 200 {
		t.Errorf("one of another address: %d %s", w.Code, w.Body)
	}
}

package httpapi_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/webhooks"
)

// The routes that are not for admins alone, written down once more: whatever
// is not here must ask for an API key.
var forOthers = map[string]string{
	"GET /healthz": "open", "GET /readyz": "open", "GET /metrics": "open", "GET /openapi.json": "open", "GET /docs": "open", "GET /v1/time": "open",
	"GET /c/{id}": "open", "GET /": "open", "GET /v1/campaigns/{id}/luck": "public", "POST /v1/dev/payments": "user",
	"GET /console": "open", "POST /v1/session": "open",
	"GET /v1/campaigns": "public", "GET /v1/campaigns/{id}": "public",
	"POST /v1/campaigns/{id}/claims": "claim", "GET /v1/me/claims": "user", "POST /v1/products/{id}/orders": "user",
	"POST /v1/campaigns/{id}/queue": "user", "GET /v1/campaigns/{id}/queue": "user", "DELETE /v1/campaigns/{id}/queue": "user",
	"POST /v1/campaigns/{id}/tickets": "user", "POST /v1/campaigns/{id}/tickets/challenge": "user",
	"POST /v1/campaigns/{id}/lottery/entries": "user", "GET /v1/campaigns/{id}/lottery/result": "user",
	"GET /v1/campaigns/{id}/lottery": "open", "GET /v1/campaigns/{id}/lottery/entries": "open",
	"GET /v1/ws": "open", "GET /v1/campaigns/{id}/events": "open", "POST /v1/ws-tickets": "user",
	"GET /v1/me/balance": "user", "GET /v1/me/balance/entries": "user",
	"GET /v1/claims/{id}": "either", "POST /v1/claims/{id}/cancel": "either",
}

// The least role of routes that need neither viewer, as reading does, nor
// admin, as all else does; written down once more, too.
var forRoles = map[string]access.Role{
	"POST /v1/products": access.RoleEditor, "PATCH /v1/products/{id}": access.RoleEditor,
	"POST /v1/campaigns": access.RoleEditor, "PATCH /v1/campaigns/{id}": access.RoleEditor,
	"POST /v1/campaigns/{id}/publish": access.RolePublisher, "POST /v1/campaigns/{id}/pause": access.RolePublisher,
	"POST /v1/campaigns/{id}/resume": access.RolePublisher, "POST /v1/campaigns/{id}/end": access.RolePublisher,
	"POST /v1/campaigns/{id}/stock": access.RolePublisher, "POST /v1/campaigns/{id}/codes": access.RolePublisher, "GET /v1/campaigns/{id}/codes": access.RolePublisher,
	"PATCH /v1/claims/{id}": access.RolePublisher, "GET /v1/doctor": access.RoleAdmin, "GET /v1/settings": access.RoleAdmin, "POST /v1/claims/{id}/confirm": access.RolePublisher, "POST /v1/claims/{id}/cancel": access.RolePublisher,
	"POST /v1/claims/{id}/refund": access.RolePublisher, "POST /v1/claims/{id}/redeem": access.RolePublisher,
	"POST /v1/claims/{id}/unredeem": access.RolePublisher, "POST /v1/claims/{id}/ship": access.RolePublisher,
	"PUT /v1/audiences/{id}": access.RolePublisher, "POST /v1/merchants/{id}/followers/{user}": access.RolePublisher,
	"DELETE /v1/merchants/{id}/followers/{user}": access.RolePublisher, "POST /v1/merchants/{id}/followers": access.RolePublisher,
	"POST /v1/campaigns/{id}/announcements": access.RolePublisher, "POST /v1/announcements/{id}/pause": access.RolePublisher,
	"POST /v1/announcements/{id}/resume": access.RolePublisher, "POST /v1/announcements/{id}/cancel": access.RolePublisher,
	"DELETE /v1/session": access.RoleViewer, "GET /v1/token-revocations": access.RoleAdmin, "GET /v1/approvals": access.RoleAdmin, "GET /v1/approvals/{id}": access.RoleAdmin, "DELETE /v1/sessions/{id}": access.RoleViewer, "GET /v1/keys": access.RoleAdmin, "GET /v1/keys/{id}": access.RoleAdmin, "GET /v1/audit": access.RoleAdmin, "GET /v1/audit/chain": access.RoleAdmin, "GET /v1/audit/verification": access.RoleAdmin, "GET /v1/users/{user}": access.RoleAdmin, "GET /v1/erasures": access.RoleAdmin, "GET /v1/erasures/{id}": access.RoleAdmin,
}

// roleFor is the least role that may call an operation.
func roleFor(op string) access.Role {
	switch role := forRoles[op]; {
	case role != "":
		return role
	case strings.HasPrefix(op, "GET "):
		return access.RoleViewer
	}
	return access.RoleAdmin
}

// operations lists what the served document describes, as "GET /path".
func (s *stack) operations() []string {
	s.t.Helper()
	paths := s.ask("GET", "/openapi.json", "").json["paths"].(map[string]any)
	var ops []string
	for path, item := range paths {
		for method := range item.(map[string]any) {
			ops = append(ops, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(ops)
	return ops
}

// falseTokens are those that must be worth nothing anywhere.
func falseTokens(t *testing.T, revoked string) map[string]string {
	t.Helper()
	now := time.Now()
	sign := func(m jwt.SigningMethod, key any, c jwt.MapClaims) string {
		token, err := jwt.NewWithClaims(m, c).SignedString(key)
		must(t, err)
		return "Bearer " + token
	}
	good := func(change func(jwt.MapClaims)) jwt.MapClaims {
		c := jwt.MapClaims{"sub": "42", "exp": now.Add(time.Hour).Unix()}
		if change != nil {
			change(c)
		}
		return c
	}
	secret := []byte(jwtSecret)
	valid := sign(jwt.SigningMethodHS256, secret, good(nil))
	return map[string]string{
		"garbage":        "Bearer garbage",
		"empty":          "Bearer ",
		"basic":          "Basic NDI6NDI=",
		"no scheme":      strings.TrimPrefix(valid, "Bearer "),
		"expired":        sign(jwt.SigningMethodHS256, secret, good(func(c jwt.MapClaims) { c["exp"] = now.Add(-time.Hour).Unix() })),
		"not yet":        sign(jwt.SigningMethodHS256, secret, good(func(c jwt.MapClaims) { c["nbf"] = now.Add(time.Hour).Unix() })),
		"without exp":    sign(jwt.SigningMethodHS256, secret, good(func(c jwt.MapClaims) { delete(c, "exp") })),
		"alg none":       sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good(nil)),
		"alg HS512":      sign(jwt.SigningMethodHS512, secret, good(nil)),
		"another secret": sign(jwt.SigningMethodHS256, []byte("another secret of 32 bytes, or so"), good(nil)),
		"no subject":     sign(jwt.SigningMethodHS256, secret, good(func(c jwt.MapClaims) { delete(c, "sub") })),
		"bad subject":    sign(jwt.SigningMethodHS256, secret, good(func(c jwt.MapClaims) { c["sub"] = "a b" })),
		"cut signature":  valid[:len(valid)-3],
		"changed":        strings.Replace(valid, ".", ".e", 1),
		"dev of nobody":  "Bearer dev_",
		"dev of a path":  "Bearer dev_../x",
		"revoked key":    "Bearer " + revoked,
		"key in part":    "Bearer " + adminKey[:20],
	}
}

// matrix asks one operation with every kind of token.
type matrix struct {
	*stack
	t     *testing.T
	claim string
	bad   map[string]string
	// keys are secrets of keys by their role.
	keys map[access.Role]string
	// endpoint is one that there is; the matrix deletes some.
	endpoint string
	// erasure is one that there is.
	erasure string
	// elsewhere is the secret of a key for other campaigns and merchants, inside that of one
	// for those that the matrix asks about.
	elsewhere, inside string
	// cookie is that of a session of an admin's key.
	cookie string
}

func TestSecurityMatrix(t *testing.T) {
	s := newStack(t, nil)
	ctx := context.Background()
	if a := s.ask("PUT", "/v1/audiences/matrix", "42", asAdmin, "Content-Type: text/csv"); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	_, err := s.admin.Products.Create(ctx, dibs.ProductSpec{ID: "matrix", Name: "Secret product"}, "")
	must(t, err)
	s.sale("matrix", 1000, 1000)
	units := int64(1)
	_, err = s.admin.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "draft", Kind: dibs.Sale, Title: "Secret draft", StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour), Stock: dibs.StockSpec{Units: &units},
	}, "")
	must(t, err)
	must(t, s.admin.Followers.Set(ctx, "matrix", "42", 0, true))
	_, err = s.service.Announcements.Create(ctx, "matrix", announce.AnnouncementSpec{ID: "matrix", Merchant: "matrix"})
	must(t, err)
	claim, err := s.service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "matrix", UserID: "42"})
	must(t, err)
	key, revoked, err := s.service.Access.CreateKey(ctx, "old", access.RoleAdmin)
	must(t, err)
	must(t, s.service.Access.RevokeKey(ctx, key.ID))
	erasure, _, err := s.service.Erasures.Erase(ctx, "42", erasure.ErasureSpec{})
	must(t, err)
	m := &matrix{stack: s, erasure: erasure.ID, t: t, claim: claim.Claim.ID, bad: falseTokens(t, revoked), keys: map[access.Role]string{}}
	for _, role := range []access.Role{access.RoleViewer, access.RoleEditor, access.RolePublisher, access.RoleAdmin} {
		if _, m.keys[role], err = s.service.Access.CreateKey(ctx, string(role), role); err != nil {
			t.Fatal(err)
		}
	}
	_, m.elsewhere, err = s.service.Access.AddKey(ctx, access.KeySpec{
		Name: "elsewhere", Role: access.RoleAdmin, Scopes: &access.Scopes{Campaigns: []string{"other", "matri"}, Merchants: []string{"other"}},
	})
	must(t, err)
	_, m.inside, err = s.service.Access.AddKey(ctx, access.KeySpec{
		Name: "inside", Role: access.RoleAdmin, Scopes: &access.Scopes{Campaigns: []string{"matri*", "draft"}, Merchants: []string{"matrix"}},
	})
	must(t, err)
	m.cookie, _ = s.signIn(byKey)
	short, secret, err := s.service.Access.AddKey(ctx, access.KeySpec{Name: "short", Role: access.RoleAdmin, ExpiresAt: time.Now().Add(time.Second)})
	must(t, err)
	waitFor(t, func() bool { return time.Now().After(short.ExpiresAt) })
	m.bad["expired key"] = "Bearer " + secret
	ops := s.operations()
	for _, op := range ops {
		m.try(op)
	}
	for op := range forOthers {
		if !slices.Contains(ops, op) {
			t.Errorf("%s is not documented", op)
		}
	}
	for name, token := range m.bad {
		if _, secret, _ := strings.Cut(token, " "); len(secret) > 12 && strings.Contains(s.logs.String(), secret) {
			t.Errorf("the log shows the token %s", name)
		}
	}
}

// denied checks a refusal, and that it shows nothing.
func (m *matrix) denied(op, name string, a answer, status int) {
	m.t.Helper()
	checkCommon(m.t, a)
	if a.status != status {
		m.t.Errorf("%s with %s: %d %s", op, name, a.status, a.body)
	}
	if a.status == 401 && a.header.Get("WWW-Authenticate") != "Bearer" {
		m.t.Errorf("%s with %s: no WWW-Authenticate", op, name)
	}
	for _, no := range append([]string{"Secret", m.claim}, never...) {
		if strings.Contains(a.body, no) {
			m.t.Errorf("%s with %s shows %q", op, name, no)
		}
	}
}

// allowed checks that a token was good for the operation.
func (m *matrix) allowed(op, name string, a answer) {
	m.t.Helper()
	checkDisposition(m.t, a)
	for _, gate := range []string{"has no waiting room", "has no lottery", "has no tickets", "is no red packet", "no such rehearsal"} {
		if a.status == 404 && strings.Contains(a.body, gate) {
			// The campaign has no gate.
			return
		}
	}
	if a.status == 401 || a.status == 403 || a.status == 404 || a.status >= 500 {
		m.t.Errorf("%s with %s: %d %s", op, name, a.status, a.body)
	}
}

// thing is the id of something that an operation may be about.
func (m *matrix) thing(op string) string {
	m.t.Helper()
	switch {
	case op == "PATCH /v1/campaigns/{id}":
		// TestEditorsAndPublished covers published campaigns.
		return "draft"
	case strings.Contains(op, "/claims/{id}"):
		return m.claim
	case strings.Contains(op, "/erasures/{id}"):
		return m.erasure
	case strings.Contains(op, "/webhook-endpoints/{id}"):
		return m.anEndpoint()
	case strings.Contains(op, "/token-revocations/{id}"):
		r, err := m.service.Revocations.Revoke(m.t.Context(), access.RevocationSpec{JTI: "spare"})
		must(m.t, err)
		return r.ID
	case strings.Contains(op, "/approvals/{id}"):
		a := &access.Approval{Action: "none", Target: "Secret target", Call: []byte(`{}`), AskedBy: "spare", AskedName: "spare"}
		must(m.t, m.service.Approvals.Ask(m.t.Context(), a))
		return a.ID
	case strings.Contains(op, "/sessions/{id}"):
		s, err := m.service.Sessions.Begin(m.t.Context(), &access.APIKey{ID: "spare"}, time.Now().Add(time.Hour), "", "Secret browser")
		must(m.t, err)
		return s.ID
	case strings.Contains(op, "/keys/{id}"):
		k, _, err := m.service.Access.CreateKey(m.t.Context(), "spare", access.RoleViewer)
		must(m.t, err)
		return k.ID
	}
	return "matrix"
}

// goesAway reports whether operations on a thing take it away, so that each call needs one of
// its own.
func goesAway(op string) bool {
	return slices.ContainsFunc([]string{"/webhook-endpoints/{id}", "/token-revocations/{id}", "/approvals/{id}", "/sessions/{id}"}, func(thing string) bool { return strings.Contains(op, thing) })
}

// try asks one operation with every token.
func (m *matrix) try(op string) {
	need := forOthers[op]
	if need == "" {
		need = "admin"
	}
	method, pattern, _ := strings.Cut(op, " ")
	body := ""
	if method != "GET" {
		body = `{}`
	}
	id := m.thing(op)
	ask := func(headers ...string) answer {
		m.t.Helper()
		if goesAway(op) {
			id = m.thing(op)
		}
		return m.ask(method, strings.ReplaceAll(strings.ReplaceAll(pattern, "{id}", id), "{user}", "42"), body, headers...)
	}
	for _, name := range slices.Sorted(maps.Keys(m.bad)) {
		a := ask("Authorization: " + m.bad[name])
		if need == "open" {
			m.allowed(op, name, a)
		} else {
			m.denied(op, name, a, 401)
		}
	}
	for name, headers := range map[string][]string{
		"none": nil, "user": {jwtFor(m.t, "42", time.Hour)},
		"other": {jwtFor(m.t, "7", time.Hour)}, "admin": {asAdmin},
	} {
		a := ask(headers...)
		m.judge(op, name, a, verdicts[need][name])
		if need != "open" && need != "public" && a.header.Get("Cache-Control") != "no-store" {
			m.t.Errorf("%s with %s may be kept by others", op, name)
		}
		if name == "other" && need != "admin" && strings.Contains(a.body, m.claim) {
			m.t.Errorf("%s shows another user's claim", op)
		}
	}
	m.session(op, need, ask)
	if need == "open" {
		return
	}
	for role, key := range m.keys {
		want := verdicts[need]["admin"]
		switch {
		case want != 0:
		case !role.May(roleFor(op)):
			want = 403
		case strings.Contains(op, "/sessions/{id}") && role != access.RoleAdmin:
			// It is another key's.
			want = 404
		}
		m.judge(op, string(role), ask("Authorization: Bearer "+key), want)
	}
	m.scoped(op, need, ask)
}

// judge checks an answer: a refusal of a status, or none for 0.
func (m *matrix) judge(op, name string, a answer, status int) {
	m.t.Helper()
	if status == 0 {
		m.allowed(op, name, a)
	} else {
		m.denied(op, name, a, status)
	}
}

// session asks one operation with a session's cookie alone: it reads as its key does, and
// changes nothing without the session's token, whatever the route.
func (m *matrix) session(op, need string, ask func(...string) answer) {
	m.t.Helper()
	a := ask(m.cookie)
	switch {
	case op == "POST /v1/session":
		// Signing in is not done by a session.
		m.allowed(op, "session", a)
	case !strings.HasPrefix(op, "GET "):
		m.denied(op, "session without its token", a, 403)
	default:
		m.judge(op, "session", a, verdicts[need]["admin"])
	}
}

// scoped asks one operation with keys for some campaigns and merchants: one for others may do
// nothing that is not for everybody, or about itself; one for those of the matrix may do what
// is about them, and nothing that is not.
func (m *matrix) scoped(op, need string, ask func(...string) answer) {
	m.t.Helper()
	outside, inside := ask("Authorization: Bearer "+m.elsewhere), ask("Authorization: Bearer "+m.inside)
	_, path, _ := strings.Cut(op, " ")
	about := strings.HasPrefix(path, "/v1/campaigns/{id}") || strings.HasPrefix(path, "/v1/merchants/{id}") || strings.HasPrefix(path, "/v1/claims/{id}")
	switch {
	case verdicts[need]["admin"] != 0:
		m.denied(op, "scoped key", outside, verdicts[need]["admin"])
		m.denied(op, "key of the scope", inside, verdicts[need]["admin"])
	case need == "public" || strings.HasSuffix(op, " /v1/session") || op == "GET /v1/sessions":
		m.allowed(op, "scoped key", outside)
		if strings.Contains(outside.body, "Secret") {
			m.t.Errorf("%s shows a scoped key more than everybody sees: %s", op, outside.body)
		}
		m.allowed(op, "key of the scope", inside)
	case strings.Contains(op, "/sessions/{id}"):
		m.denied(op, "scoped key", outside, 404)
		m.denied(op, "key of the scope", inside, 404)
	case about:
		m.denied(op, "scoped key", outside, 403)
		m.allowed(op, "key of the scope", inside)
	default:
		m.denied(op, "scoped key", outside, 403)
		m.denied(op, "key of the scope", inside, 403)
	}
}

// anEndpoint is the id of a webhook endpoint that there is.
func (m *matrix) anEndpoint() string {
	m.t.Helper()
	if m.endpoint != "" {
		if _, err := m.service.Webhooks.Get(m.t.Context(), m.endpoint); err == nil {
			return m.endpoint
		}
	}
	e, err := m.service.Webhooks.Create(m.t.Context(), webhooks.EndpointSpec{URL: "https://hooks.example/x", Types: []string{"dev.dibs.claim.granted"}})
	must(m.t, err)
	m.endpoint = e.ID
	return e.ID
}

// verdicts are the refusals of each kind of route; 0 where there is none.
var verdicts = map[string]map[string]int{
	"open":   {},
	"public": {},
	"user":   {"none": 401, "admin": 403},
	"claim":  {"none": 401, "admin": 401},
	"either": {"none": 401, "other": 404},
	"admin":  {"none": 401, "user": 403, "other": 403},
}

func TestTokensInURLsAreNothing(t *testing.T) {
	s := newStack(t, nil)
	for _, q := range []string{"access_token", "token", "authorization"} {
		if a := s.ask("GET", "/v1/me/claims?"+q+"=dev_42", ""); a.status != 401 {
			t.Errorf("%s: %d", q, a.status)
		}
	}
}

// keyCount counts the keys that are looked up.
type keyCount struct {
	httpapi.Keys
	checked atomic.Int64
}

func (k *keyCount) CheckKey(ctx context.Context, secret string) (*access.APIKey, error) {
	k.checked.Add(1)
	return k.Keys.CheckKey(ctx, secret)
}

// A claim with what looks like a key is refused without looking it up, true or
// false: two million of them must not ask the ledger.
func TestClaimsLookNoKeysUp(t *testing.T) {
	keys := &keyCount{}
	s := newStack(t, func(s *httpapi.Services) { keys.Keys, s.Keys = s.Keys, keys })
	s.sale("phone", 5, 1)
	for _, as := range []string{asAdmin, "Authorization: Bearer dibs_made_up_0123456789"} {
		before := keys.checked.Load()
		if a := s.ask("POST", "/v1/campaigns/phone/claims", "", as); a.status != 401 || keys.checked.Load() != before {
			t.Errorf("%d after %d look-ups: %s", a.status, keys.checked.Load()-before, a.body)
		}
	}
}

package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/tokens"
)

// acts lists the audit log, oldest first, as "action target status".
func (s *stack) acts(query string) []string {
	s.t.Helper()
	a := s.ask("GET", "/v1/audit?limit=100"+query, "", asAdmin)
	if a.status != 200 {
		s.t.Fatalf("%d %s", a.status, a.body)
	}
	var list []string
	for _, item := range a.json["items"].([]any) {
		act := item.(map[string]any)
		list = append([]string{fmt.Sprint(act["action"], " ", act["target"], " ", act["status"], " ", act["reason"])}, list...)
	}
	return list
}

// Every change by a key is in the log, once, with before and after; reading and
// users' own calls are not.
func TestAuditLog(t *testing.T) {
	s := newStack(t, nil)
	s.sale("phone", 5, 5)
	key := "Idempotency-Key: the-same"
	for range 2 {
		s.ask("POST", "/v1/campaigns/phone/stock", `{"delta":3,"why":"more"}`, asAdmin, key, "X-Request-Id: req-7")
	}
	claim := s.ask("POST", "/v1/campaigns/phone/claims", "", asUser)
	s.ask("POST", "/v1/claims/"+fmt.Sprint(claim.json["id"])+"/cancel", "", asUser)
	s.ask("PATCH", "/v1/campaigns/phone", `{"title":"Better"}`, asAdmin)
	s.ask("POST", "/v1/campaigns/none/pause", "", asAdmin)
	s.ask("PATCH", "/v1/campaigns/phone", `{"limit_per_user":1}`, asAdmin)
	s.ask("GET", "/v1/campaigns/phone/stats", "", asAdmin)
	e := s.ask("POST", "/v1/webhook-endpoints", `{"url":"https://hooks.example/x"}`, asAdmin)
	s.ask("DELETE", "/v1/webhook-endpoints/"+fmt.Sprint(e.json["id"]), "", asAdmin)
	want := []string{
		"create-campaign /v1/campaigns 201 <nil>",
		"publish-campaign /v1/campaigns/phone/publish 200 <nil>",
		"change-stock /v1/campaigns/phone/stock 200 <nil>",
		"patch-campaign /v1/campaigns/phone 200 <nil>",
		"pause-campaign /v1/campaigns/none/pause 404 not_found",
		"patch-campaign /v1/campaigns/phone 409 invalid_state",
		"create-webhook-endpoint /v1/webhook-endpoints 201 <nil>",
		"delete-webhook-endpoint /v1/webhook-endpoints/" + fmt.Sprint(e.json["id"]) + " 200 <nil>",
	}
	if got := s.acts(""); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := s.acts("&action=patch-campaign&target=/v1/campaigns/phone"); len(got) != 2 {
		t.Errorf("the changes of phone: %v", got)
	}
	stock := s.ask("GET", "/v1/audit?action=change-stock", "", asAdmin).json["items"].([]any)[0].(map[string]any)
	before, after := stock["before"].(map[string]any), stock["after"].(map[string]any)
	if fmt.Sprint(before["stock"], after["stock"]) != "map[units:5] map[units:8]" {
		t.Errorf("before %v, after %v", before["stock"], after["stock"])
	}
	if stock["key_name"] != "tests" || stock["role"] != "admin" || stock["address"] != "127.0.0.1" || stock["request_id"] != "req-7" {
		t.Errorf("%v", stock)
	}
	all := s.ask("GET", "/v1/audit?limit=100", "", asAdmin).body
	if secret := fmt.Sprint(e.json["secret"]); secret == "" || strings.Contains(all, secret) || strings.Contains(all, adminKey) {
		t.Error("the log shows a secret")
	}
}

// unlogged is a log that cannot be written.
type unlogged struct{ httpapi.AdminLog }

func (unlogged) BeginAct(context.Context, *dibs.Act) error {
	return dibs.Unavail(dibs.EffectNone, errors.New("the ledger is away"))
}

// campaignService is embedded by its own name: Campaigns is also a method.
type campaignService = httpapi.Campaigns

// publishing notes that a campaign was published.
type publishing struct {
	campaignService
	published bool
}

func (p *publishing) Publish(ctx context.Context, id string) (*dibs.Campaign, error) {
	p.published = true
	return p.campaignService.Publish(ctx, id)
}

// What cannot be noted does not happen.
func TestNoActWithoutItsEntry(t *testing.T) {
	p := &publishing{}
	s := newStack(t, func(s *httpapi.Services) {
		p.campaignService = s.Campaigns
		s.Campaigns, s.AdminLog = p, unlogged{s.AdminLog}
	})
	a := s.ask("POST", "/v1/campaigns/phone/publish", "", asAdmin)
	if a.status != 503 || a.json["effect"] != "none" || p.published {
		t.Errorf("%d %s, published %v", a.status, a.body, p.published)
	}
}

// An editor changes drafts, and nothing that is on offer.
func TestEditorsAndPublished(t *testing.T) {
	s := newStack(t, nil)
	_, editor, err := s.service.CreateKey(t.Context(), "ed", dibs.RoleEditor)
	must(t, err)
	as := "Authorization: Bearer " + editor
	spec := fmt.Sprintf(`{"id":"c","kind":"sale","title":"T","starts_at":%q,"ends_at":%q,"stock":{"units":5}}`,
		time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339))
	for _, step := range []struct {
		method, path, body, as string
		status                 int
	}{
		{"POST", "/v1/campaigns", spec, as, 201},
		{"PATCH", "/v1/campaigns/c", `{"title":"U"}`, as, 200},
		{"PATCH", "/v1/campaigns/none", `{"title":"U"}`, as, 404},
		{"POST", "/v1/campaigns/c/publish", "", as, 403},
		{"POST", "/v1/campaigns/c/publish", "", asAdmin, 200},
		{"PATCH", "/v1/campaigns/c", `{"title":"V"}`, as, 403},
		{"GET", "/v1/campaigns/c", "", as, 200},
	} {
		if a := s.ask(step.method, step.path, step.body, step.as); a.status != step.status {
			t.Errorf("%s %s: %d %s", step.method, step.path, a.status, a.body)
		}
	}
	if v := s.ask("GET", "/v1/campaigns/c", "", as); v.json["title"] != "U" {
		t.Errorf("the title is %v", v.json["title"])
	}
}

// keyCount counts the keys that are looked up.
type keyCount struct {
	httpapi.Keys
	checked atomic.Int64
}

func (k *keyCount) CheckKey(ctx context.Context, secret string) (*dibs.APIKey, error) {
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

// The listener of the world has nothing for administrators, and their keys are
// worth nothing there: a true one is answered as a false one is, unseen.
func TestOuterListener(t *testing.T) {
	svc := newService(t)
	_, err := svc.CreateProduct(t.Context(), dibs.ProductSpec{ID: "matrix", Name: "Secret product"})
	must(t, err)
	keys := &keyCount{Keys: svc}
	services := httpapi.ServicesOf(svc)
	services.Keys = keys
	h, err := httpapi.NewHandlers(httpapi.Config{Services: services, JWTSecret: []byte(jwtSecret), AllowDevTokens: true})
	must(t, err)
	s := serve(t, svc, h.All)
	s.sale("matrix", 10, 1)
	ops := s.operations()
	server := httptest.NewServer(h.Outer)
	t.Cleanup(server.Close)
	outer := &stack{t: t, service: svc, url: server.URL, logs: s.logs}
	keys.checked.Store(0)
	for _, op := range ops {
		method, path, _ := strings.Cut(op, " ")
		path = strings.NewReplacer("{id}", "matrix", "{user}", "42").Replace(path)
		a := outer.ask(method, path, "", asAdmin)
		want := map[string]int{"open": 200, "user": 401, "claim": 401, "public": 401, "either": 401, "": 404}[forOthers[op]]
		if op == "GET /metrics" {
			want = 404
		}
		if a.status == 404 && want == 200 && strings.Contains(a.body, "has no lottery") {
			// The route is there; this campaign has no lottery.
			continue
		}
		if a.status != want || strings.Contains(a.body, "Secret") {
			t.Errorf("%s: %d, want %d: %s", op, a.status, want, a.body)
		}
	}
	if a := outer.ask("POST", "/v1/campaigns/matrix/claims", "", "Authorization: Bearer dibs_no_such_key"); a.status != 401 {
		t.Errorf("a claim with a false key: %d %s", a.status, a.body)
	}
	if n := keys.checked.Load(); n != 0 {
		t.Errorf("%d keys were looked up for the world", n)
	}
	if a := s.ask("POST", "/v1/campaigns/matrix/claims", "", asAdmin); a.status != 401 || !strings.Contains(a.body, "is not a user's") {
		t.Errorf("a claim with a key, on the listener of admins: %d %s", a.status, a.body)
	}
	if a := outer.ask("GET", "/v1/campaigns/matrix", ""); a.status != 200 {
		t.Errorf("a campaign: %d", a.status)
	}
	if a := outer.ask("POST", "/v1/campaigns/matrix/claims", "", asUser); a.status != 201 {
		t.Errorf("a claim: %d %s", a.status, a.body)
	}
}

func TestCrossOrigin(t *testing.T) {
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Origins: []string{"https://shop.example"}})
	must(t, err)
	s := serve(t, svc, h)
	preflight := func(origin string) http.Header {
		return s.ask("OPTIONS", "/v1/campaigns/x/claims", "", "Origin: "+origin, "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: authorization,content-type,idempotency-key").header
	}
	if h := preflight("https://shop.example"); h.Get("Access-Control-Allow-Origin") != "https://shop.example" ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "idempotency-key") || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%v", h)
	}
	if h := preflight("https://evil.example"); h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %v", h)
	}
	a := s.ask("GET", "/v1/time", "", "Origin: https://shop.example")
	if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "https://shop.example" || !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Retry-After") {
		t.Errorf("%d %v", a.status, a.header)
	}
	if a := newStack(t, nil).ask("GET", "/v1/time", "", "Origin: https://shop.example"); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("an origin is allowed that nobody named")
	}
	for _, bad := range []string{"shop.example", "https://shop.example/", "https://*.example", "HTTPS://shop.example", "https://u@shop.example", "null", ""} {
		if _, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Origins: []string{bad}}); err == nil {
			t.Errorf("the origin %q is taken", bad)
		}
	}
}

// A token that was remembered is refused as soon as its secret is taken away.
func TestRememberedTokensRotate(t *testing.T) {
	svc := newService(t)
	v, err := tokens.Open(t.Context(), tokens.Config{Secrets: [][]byte{[]byte(jwtSecret)}})
	must(t, err)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), Users: v, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	must(t, err)
	s := serve(t, svc, h)
	token := jwtFor(t, "42", time.Hour)
	for range 2 {
		if a := s.ask("GET", "/v1/me/claims", "", token); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	v.SetSecrets([][]byte{[]byte("the next secret, of 32 bytes too")})
	if a := s.ask("GET", "/v1/me/claims", "", token); a.status != 401 {
		t.Errorf("under a secret that was taken away: %d", a.status)
	}
}

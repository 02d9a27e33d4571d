package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
)

// A key is made, used, rotated with an overlap and revoked over HTTP; it is shown once,
// and is in no log.
func TestKeysOverHTTP(t *testing.T) {
	s := newStack(t, nil)
	made := s.ask("POST", "/v1/keys", `{"name":"till","role":"viewer","expires_at":"2036-01-01T00:00:00Z"}`, asAdmin, "Idempotency-Key: once")
	id, secret := fmt.Sprint(made.json["id"]), fmt.Sprint(made.json["secret"])
	if made.status != 201 || !strings.HasPrefix(secret, "dibs_") || made.header.Get("Location") != "/v1/keys/"+id || made.json["expires_at"] != "2036-01-01T00:00:00Z" {
		t.Fatalf("%d %s", made.status, made.body)
	}
	if again := s.ask("POST", "/v1/keys", `{"name":"till","role":"viewer","expires_at":"2036-01-01T00:00:00Z"}`, asAdmin, "Idempotency-Key: once"); again.status != 200 || again.json["id"] != id || again.json["secret"] != nil {
		t.Errorf("a repeat: %d %s", again.status, again.body)
	}
	asKey := "Authorization: Bearer " + secret
	if a := s.ask("GET", "/v1/keys/"+id, "", asAdmin); a.json["last_used_at"] != nil {
		t.Errorf("before it was used: %s", a.body)
	}
	if a := s.ask("GET", "/v1/products", "", asKey); a.status != 200 {
		t.Errorf("its use: %d", a.status)
	}
	if a := s.ask("GET", "/v1/keys/"+id, "", asAdmin); a.json["last_used_at"] == nil {
		t.Errorf("after it was used: %s", a.body)
	}

	rotated := s.ask("POST", "/v1/keys/"+id+"/rotate", `{"overlap":"1h"}`, asAdmin)
	asNext := "Authorization: Bearer " + fmt.Sprint(rotated.json["secret"])
	if rotated.status != 201 || rotated.json["name"] != "till" || rotated.json["role"] != "viewer" || rotated.json["id"] == id {
		t.Fatalf("%d %s", rotated.status, rotated.body)
	}
	for what, as := range map[string]string{"the old key": asKey, "the new key": asNext} {
		// A program is told that its key ends soon; the new one does not.
		if a := s.ask("GET", "/v1/products", "", as); a.status != 200 || (a.header.Get("Dibs-Key-Expires") != "") != (as == asKey) {
			t.Errorf("%s in the overlap: %d, %v", what, a.status, a.header)
		}
	}
	old := s.ask("GET", "/v1/keys/"+id, "", asAdmin)
	if ends, err := time.Parse(time.RFC3339, fmt.Sprint(old.json["expires_at"])); err != nil || time.Until(ends) > time.Hour {
		t.Errorf("the old key ends at %v, %v", ends, err)
	}
	if a := s.ask("POST", "/v1/keys/"+fmt.Sprint(rotated.json["id"])+"/rotate", `{"overlap":"0s"}`, asAdmin); a.status != 201 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/products", "", asNext); a.status != 401 {
		t.Errorf("a key that was rotated without overlap: %d", a.status)
	}

	if a := s.ask("DELETE", "/v1/keys/"+id, "", asAdmin); a.status != 200 || a.json["revoked_at"] == nil {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/products", "", asKey); a.status != 401 {
		t.Errorf("a revoked key: %d", a.status)
	}
	if a := s.ask("POST", "/v1/keys/"+id+"/rotate", "{}", asAdmin); a.status != 409 || a.json["reason"] != "invalid_state" {
		t.Errorf("rotating a revoked key: %d %s", a.status, a.body)
	}
	first := s.ask("GET", "/v1/keys?limit=2", "", asAdmin)
	rest := s.ask("GET", "/v1/keys?limit=2&cursor="+fmt.Sprint(first.json["next_cursor"]), "", asAdmin)
	if n := len(first.json["items"].([]any)) + len(rest.json["items"].([]any)); n != 4 || rest.json["next_cursor"] != "" {
		t.Errorf("%d keys in two pages: %s, %s", n, first.body, rest.body)
	}
	audit := s.ask("GET", "/v1/audit?limit=100", "", asAdmin).body
	for _, shown := range []string{audit, s.logs.String(), first.body + rest.body} {
		if strings.Contains(shown, secret) || strings.Contains(shown, "hash") {
			t.Errorf("a key is shown: %s", shown)
		}
	}
	if !strings.Contains(audit, `"create-key"`) || !strings.Contains(audit, `"rotate-key"`) || !strings.Contains(audit, `"revoke-key"`) {
		t.Errorf("the log lacks an act: %s", audit)
	}
}

var keyFaults = []scenario{
	{name: "no name", method: "POST", path: "/v1/keys", body: `{"role":"viewer"}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/name"`}},
	{name: "no such role", method: "POST", path: "/v1/keys", body: `{"name":"x","role":"root"}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/role"`}},
	{name: "over already", method: "POST", path: "/v1/keys", body: `{"name":"x","role":"viewer","expires_at":"2020-01-01T00:00:00Z"}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/expires_at"`}},
	{name: "bad scope", method: "POST", path: "/v1/keys", body: `{"name":"x","role":"viewer","scopes":{"campaigns":["a b"]}}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/scopes/campaigns"`}},
	{name: "no such action", method: "POST", path: "/v1/keys", body: `{"name":"x","role":"admin","scopes":{"actions":["ship-claim","ship-clams"]}}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/scopes/actions"`, `ship-clams`}},
	{name: "actions by their beginning", method: "POST", path: "/v1/keys", body: `{"name":"x","role":"admin","scopes":{"actions":["ship-*"]}}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/scopes/actions"`, `operationId`}},
	{name: "a long overlap", method: "POST", path: "/v1/keys/x/rotate", body: `{"overlap":"9999h"}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/overlap"`}},
	{name: "a cursor", method: "GET", path: "/v1/keys?cursor=x", headers: []string{asAdmin}, status: 400, contains: []string{`"/cursor"`}},
	{name: "no key", method: "GET", path: "/v1/keys/none", headers: []string{asAdmin}, status: 404},
}

func TestKeyFaults(t *testing.T) { newStack(t, nil).run(t, keyFaults) }

// A key with scopes does what they name, and nothing else: not by another campaign's
// claim, not by a search of all, and not by making a key.
func TestScopedKeys(t *testing.T) {
	s := newStack(t, nil)
	claims := map[string]string{}
	for _, id := range []string{"mine-1", "other"} {
		s.sale(id, 5, 5)
		claims[id] = fmt.Sprint(s.ask("POST", "/v1/campaigns/"+id+"/claims", "", asUser).json["id"])
	}
	units := int64(1)
	_, err := s.admin.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "draft", Kind: dibs.Sale, Title: "Secret draft", StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour), Stock: dibs.StockSpec{Units: &units},
	}, "")
	must(t, err)
	key := func(scopes access.Scopes) string {
		_, secret, err := s.service.Access.AddKey(t.Context(), access.KeySpec{Name: "scoped", Role: access.RoleAdmin, Scopes: &scopes})
		must(t, err)
		return "Authorization: Bearer " + secret
	}
	for _, merchant := range []string{"mine", "theirs"} {
		must(t, s.admin.Followers.Set(t.Context(), merchant, "42", 0, true))
	}
	s.sale("mine-2", 5, 5)
	if a := s.ask("PATCH", "/v1/campaigns/mine-2", `{"gate":{"audience":{"followers_of":"theirs"}}}`, asAdmin); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	shop := key(access.Scopes{Campaigns: []string{"mine-*", "draft"}, Merchants: []string{"mine"}})
	one, act := key(access.Scopes{Campaigns: []string{"mine-*"}}), key(access.Scopes{Actions: []string{"ship-claim", "create-key"}})
	patcher := key(access.Scopes{Actions: []string{"patch-campaign"}})
	for _, c := range []struct {
		as, method, path, body string
		status                 int
	}{
		{one, "GET", "/v1/campaigns/mine-1/stats", "", 200},
		{one, "GET", "/v1/campaigns/other/stats", "", 403},
		{one, "GET", "/v1/claims/" + claims["mine-1"], "", 200},
		{one, "GET", "/v1/claims/" + claims["other"], "", 403},
		{one, "POST", "/v1/claims/" + claims["other"] + "/refund", "{}", 403},
		{one, "GET", "/v1/claims?campaign_id=mine-1", "", 200},
		{one, "GET", "/v1/claims?campaign_id=other", "", 403},
		{one, "GET", "/v1/claims", "", 403},
		{one, "GET", "/v1/campaigns/draft", "", 404},
		{one, "GET", "/v1/products", "", 403},
		{one, "POST", "/v1/campaigns/mine-1/pause", "", 200},
		{one, "POST", "/v1/keys", `{"name":"x","role":"admin"}`, 403},
		{act, "POST", "/v1/claims/" + claims["other"] + "/ship", `{"carrier":"c","tracking_no":"1"}`, 200},
		{act, "POST", "/v1/claims/" + claims["other"] + "/cancel", "", 403},
		{act, "POST", "/v1/keys", `{"name":"x","role":"admin"}`, 403},
		{act, "GET", "/v1/session", "", 200},
		// A merchant that a body names is within the scopes too, also where they name campaigns alone.
		{shop, "POST", "/v1/campaigns/mine-1/announcements", `{"merchant":"theirs"}`, 403},
		{shop, "POST", "/v1/campaigns/mine-1/announcements", `{"merchant":"mine"}`, 201},
		{shop, "POST", "/v1/campaigns/mine-2/announcements", `{"merchant":"theirs"}`, 201},
		{shop, "PATCH", "/v1/campaigns/draft", `{"gate":{"audience":{"followers_of":"theirs"}}}`, 403},
		{shop, "PATCH", "/v1/campaigns/draft", `{"gate":{"audience":{"followers_of":"mine"}}}`, 200},
		{shop, "PATCH", "/v1/campaigns/draft", `{"title":"Another title"}`, 200},
		{shop, "POST", "/v1/campaigns", `{"id":"mine-3","gate":{"audience":{"followers_of":"theirs"}}}`, 403},
		{one, "PATCH", "/v1/campaigns/mine-1", `{"gate":{"audience":{"followers_of":"theirs"}}}`, 403},
		{one, "PATCH", "/v1/campaigns/mine-2", `{"gate":{"audience":{"followers_of":"theirs"}}}`, 200},
		{one, "POST", "/v1/campaigns/mine-1/announcements", `{"merchant":"theirs"}`, 403},
		{one, "POST", "/v1/campaigns/mine-2/announcements", `{"id":"ours","merchant":"theirs"}`, 201},
		{patcher, "PATCH", "/v1/campaigns/mine-1", `{"gate":{"audience":{"followers_of":"theirs"}}}`, 200},
	} {
		if a := s.ask(c.method, c.path, c.body, c.as); a.status != c.status {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, a.status, c.status, a.body)
		}
	}
}

package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/access"
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

func (unlogged) BeginAct(context.Context, *access.Act) error {
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

// An act that cannot be logged does not happen.
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

// The log notes that codes, which are worth money, were read, and does not have them.
func TestAuditHasNoCodes(t *testing.T) {
	s := newStack(t, nil)
	spec := fmt.Sprintf(`{"id":"spring","kind":"coupon","title":"T","starts_at":%q,"ends_at":%q,"stock":{"items":["SECRET-1","SECRET-2"]}}`,
		time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339))
	for _, step := range [][2]string{{"/v1/campaigns", spec}, {"/v1/campaigns/spring/publish", ""}} {
		if a := s.ask("POST", step[0], step[1], asAdmin); a.status >= 300 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	claim := s.ask("POST", "/v1/campaigns/spring/claims", "{}", asUser)
	if a := s.ask("POST", "/v1/claims/"+fmt.Sprint(claim.json["id"])+"/redeem", `{"ref":"o1"}`, asAdmin); a.status != 200 || !strings.Contains(a.body, "SECRET-1") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, format := range []string{"json", "csv"} {
		if a := s.ask("GET", "/v1/campaigns/spring/codes?format="+format, "", asAdmin); a.status != 200 || !strings.Contains(a.body, "SECRET-2") {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	log := s.ask("GET", "/v1/audit?limit=100", "", asAdmin).body
	if strings.Contains(log, "SECRET") || strings.Count(log, `"unclaimed-codes"`) != 2 || !strings.Contains(log, "redeem") {
		t.Errorf("the log has %s", log)
	}
}

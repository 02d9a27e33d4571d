package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
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

// inOneMinute returns a clock that stands still: what is logged once a minute is there once.
func inOneMinute() func() time.Time {
	at := time.Now()
	return func() time.Time { return at }
}

// Reads of users' data and refused calls leave a trace, once a minute for the same thing,
// and none of it is data of users. Paths are encoded, so that none forges a row.
func TestTracesOfReads(t *testing.T) {
	s := newStackAt(t, inOneMinute(), nil)
	s.sale("phone", 5, 5)
	claim := fmt.Sprint(s.ask("POST", "/v1/campaigns/phone/claims", "", asUser).json["id"])
	// The record of a user without settled claims is empty, and its trace is without the id.
	for empty := true; empty; {
		record, err := s.service.Erasures.Record(t.Context(), "42")
		must(t, err)
		empty = record.Empty()
	}
	_, viewer, err := s.service.Access.CreateKey(t.Context(), "viewer", access.RoleViewer)
	must(t, err)
	asViewer := "Authorization: Bearer " + viewer
	for range 3 {
		s.ask("GET", "/v1/users/42", "", asAdmin)
		s.ask("GET", "/v1/claims?user_id=42&payment_ref=secret-ref&limit=1", "", asAdmin)
		s.ask("GET", "/v1/claims/"+claim, "", asAdmin)
		s.ask("GET", "/v1/claims/"+claim, "", asUser)
		s.ask("GET", "/v1/campaigns/phone/claims?format=csv", "", asViewer)
		s.ask("GET", "/v1/accounts/42", "", asAdmin)
		s.ask("GET", "/v1/events?after=-1", "", asAdmin)
		s.ask("GET", "/v1/webhook-endpoints/shop/deliveries", "", asAdmin)
		s.ask("GET", "/v1/token-revocations", "", asAdmin)
		s.ask("POST", "/v1/campaigns/phone/pause", "", asViewer)
		s.ask("POST", "/v1/campaigns/cup/pause", "", asViewer)
		s.ask("GET", "/v1/users/42", "", asViewer)
	}
	s.ask("PATCH", "/v1/campaigns/x%0A2026-11-22%20boss%1B%5B2J", `{"title":"t"}`, asAdmin)
	want := []string{
		"create-campaign /v1/campaigns 201 <nil>",
		"publish-campaign /v1/campaigns/phone/publish 200 <nil>",
		"get-user /v1/users/42 200 <nil>",
		"orders /v1/claims?user_id=42 200 <nil>",
		"get-claim /v1/claims/" + claim + " 200 <nil>",
		"campaign-claims /v1/campaigns/phone/claims?format=csv 200 <nil>",
		"get-account /v1/accounts/42 200 <nil>",
		"list-events /v1/events 200 <nil>",
		"list-webhook-deliveries /v1/webhook-endpoints/shop/deliveries 404 not_found",
		"list-token-revocations /v1/token-revocations 200 <nil>",
		"pause-campaign /v1/campaigns/phone/pause 403 forbidden",
		"pause-campaign /v1/campaigns/cup/pause 403 forbidden",
		"get-user /v1/users/42 403 forbidden",
		"patch-campaign /v1/campaigns/x%0A2026-11-22%20boss%1B%5B2J 404 not_found",
	}
	if got := s.acts(""); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if a := s.ask("GET", "/v1/audit?action=get-claim", "", asAdmin); strings.Contains(a.body, "before") || strings.Contains(a.body, "after") {
		t.Errorf("what was read is in the log: %s", a.body)
	}
	for range 2 {
		s.ask("GET", "/v1/products", "", "Authorization: Bearer dibs_a_key_that_there_is_not")
	}
	if n := strings.Count(s.logs.String(), "an unknown API key was refused"); n != 1 || strings.Contains(s.logs.String(), "dibs_a_key_that") {
		t.Errorf("%d lines of an unknown key:\n%s", n, s.logs)
	}
}

// A key that is refused on many things in a minute does not fill the log: it has twenty of them, and by operation that
// there were more.
func TestTracesOfRefusals(t *testing.T) {
	s := newStackAt(t, inOneMinute(), nil)
	_, viewer, err := s.service.Access.CreateKey(t.Context(), "viewer", access.RoleViewer)
	must(t, err)
	for i := range 30 {
		s.ask("POST", fmt.Sprintf("/v1/campaigns/c%d/pause", i), "", "Authorization: Bearer "+viewer)
	}
	s.ask("GET", "/v1/users/42", "", "Authorization: Bearer "+viewer)
	got := s.acts("")
	if len(got) != 22 || got[0] != "pause-campaign /v1/campaigns/c0/pause 403 forbidden" || got[19] != "pause-campaign /v1/campaigns/c19/pause 403 forbidden" ||
		got[20] != "pause-campaign /v1/campaigns/{id}/pause 403 forbidden" || got[21] != "get-user /v1/users/{user} 403 forbidden" {
		t.Errorf("the log has:\n%s", strings.Join(got, "\n"))
	}
}

// A read of a record that is still empty does not name the user, and does not hide the
// read of what is there later.
func TestTraceOfAnEmptyRecord(t *testing.T) {
	s := newStackAt(t, inOneMinute(), nil)
	s.sale("phone", 5, 5)
	for range 2 {
		s.ask("GET", "/v1/users/42", "", asAdmin)
	}
	s.ask("POST", "/v1/campaigns/phone/claims", "", asUser)
	s.eventually("settled", "/v1/users/42", shows(`"phone"`), asAdmin)
	want := "get-user /v1/users/{user} 200 <nil>\nget-user /v1/users/42 200 <nil>"
	if got := strings.Join(s.acts("&action=get-user"), "\n"); got != want {
		t.Errorf("the log has:\n%s\nwant:\n%s", got, want)
	}
}

// The console has a text, in both languages, for each call that the log may have: those of keys, and those of users, which are
// refused to a key.
func TestActsHaveTexts(t *testing.T) {
	raw, err := os.ReadFile("../web/text/console.json")
	must(t, err)
	var texts map[string][2]string
	must(t, json.Unmarshal(raw, &texts))
	paths := newStack(t, nil).ask("GET", "/openapi.json", "").json["paths"].(map[string]any)
	named := 0
	for _, item := range paths {
		for _, op := range item.(map[string]any) {
			is := op.(map[string]any)
			// Anyone may make the other calls, and a key by the same right.
			if asks, _ := is["security"].([]any); len(asks) == 0 || slices.ContainsFunc(asks, func(of any) bool { return len(of.(map[string]any)) == 0 }) {
				continue
			}
			named++
			if text := texts["did."+fmt.Sprint(is["operationId"])]; text[0] == "" || text[1] == "" {
				t.Errorf("the log of the console has no text for %v", is["operationId"])
			}
		}
	}
	if named < 80 {
		t.Errorf("%d calls need a token", named)
	}
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

func (unlogged) BeginAction(context.Context, *access.AdminAction) error {
	return dibs.Unavail(dibs.EffectNone, errors.New("the ledger is away"))
}

// campaignService is embedded by its own name: Campaigns is also a method.
type campaignService = httpapi.Campaigns

// publishing notes that a campaign was published.
type publishing struct {
	campaignService
	published bool
}

func (p *publishing) PublishVersion(ctx context.Context, id string, version *int64) (*dibs.Campaign, error) {
	p.published = true
	return p.campaignService.PublishVersion(ctx, id, version)
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

// The chain over the log can be listed page by page, checked by anyone, and by the server.
func TestChainOfActs(t *testing.T) {
	s := newStack(t, nil)
	s.sale("phone", 5, 5)
	check, cursor := access.ChainCheck{}, ""
	for {
		l, err := s.admin.Audit.Chain(t.Context(), dibs.Page{Limit: 2, Cursor: cursor})
		must(t, err)
		for i := range l.Items {
			link := l.Items[i].Link()
			check.Add(&link)
		}
		if cursor = l.NextCursor; cursor == "" {
			break
		}
	}
	mine := check.Report(nil)
	theirs, err := s.admin.Audit.VerifyLog(t.Context(), access.ChainPoint{N: mine.Last, Hash: mine.Head})
	must(t, err)
	// A start, and two acts that began and ended.
	if !mine.Whole || !theirs.Whole || mine.Last != 5 || mine.Entries != 2 || theirs.Head != mine.Head {
		t.Errorf("%+v and %+v", mine, theirs)
	}
	for path, status := range map[string]int{"/v1/audit/verification?known=5": 400, "/v1/audit/chain?cursor=x": 400} {
		if a := s.ask("GET", path, "", asAdmin); a.status != status {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

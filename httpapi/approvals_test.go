package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/httpapi"
)

// twoPersons is a stack on which all acts that may need a second person do, refunds above 1.00
// CNY, and the credentials of a second administrator and of one of the same name as the first.
func twoPersons(t *testing.T) (s *stack, asSecond, asNamesake string) {
	t.Helper()
	return twoPersonsWith(t, func(*httpapi.Services) {})
}

// twoPersonsWith is twoPersons with services that the test changes.
func twoPersonsWith(t *testing.T, change func(*httpapi.Services)) (s *stack, asSecond, asNamesake string) {
	t.Helper()
	svc := newService(t)
	services := httpapi.ServicesOf(svc)
	change(&services)
	h, err := httpapi.New(httpapi.Config{
		Services: services, JWTSecret: []byte(jwtSecret), AllowDevTokens: true,
		Approvals: access.ApprovalRules{
			Acts:         map[access.Act]bool{access.ActDeposit: true, access.ActRefund: true, access.ActErasure: true, access.ActPublicValue: true, access.ActAbandon: true, access.ActRedPacket: true},
			RefundsAbove: &dibs.Money{Amount: 100, Currency: "CNY"},
		},
	})
	must(t, err)
	s = serve(t, svc, h)
	key := func(name string) string {
		_, secret, err := svc.Access.CreateKey(t.Context(), name, access.RoleAdmin)
		must(t, err)
		return "Authorization: Bearer " + secret
	}
	return s, key("second"), key("tests")
}

// waiting asks for an act that waits, and returns the approval's id.
func (s *stack) waiting(method, path, body string, headers ...string) string {
	s.t.Helper()
	a := s.ask(method, path, body, append(headers, asAdmin)...)
	if a.status != 202 || a.json["state"] != "pending" || strings.Contains(a.body, "/v1/") {
		s.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return fmt.Sprint(a.json["approval_id"])
}

// A deposit waits for another administrator: not for the one who asked, nor for another key of
// the same name, and is made once.
func TestSecondPerson(t *testing.T) {
	s, asSecond, asNamesake := twoPersons(t)
	const deposit = `{"amount":{"amount":500,"currency":"CNY"},"ref":"transfer-1"}`
	id := s.waiting("POST", "/v1/accounts/42/deposits", deposit, "Idempotency-Key: once")
	// Clients tell by the status what is done from what waits: the repeat waits as the first one does.
	if a := s.ask("POST", "/v1/accounts/42/deposits", deposit, asAdmin, "Idempotency-Key: once"); a.status != 202 || a.json["approval_id"] != id {
		t.Errorf("the repeat: %d %s", a.status, a.body)
	}
	balance := func(want string) {
		t.Helper()
		if a := s.ask("GET", "/v1/accounts/42", "", asAdmin); strings.Contains(a.body, "500") != (want != "") {
			t.Errorf("the account: %s", a.body)
		}
	}
	balance("")
	// A key that the one who asked has made is no second person, nor one that such a key made, nor another person's key
	// whose successor the one who asked was shown.
	made := func(path, body, as string) (id, header string) {
		t.Helper()
		a := s.ask("POST", path, body, as)
		if a.status != 201 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		return fmt.Sprint(a.json["id"]), "Authorization: Bearer " + fmt.Sprint(a.json["secret"])
	}
	_, child := made("/v1/keys", `{"name":"child","role":"admin"}`, asAdmin)
	_, grandchild := made("/v1/keys", `{"name":"grandchild","role":"admin"}`, child)
	spare, _ := made("/v1/keys", `{"name":"spare","role":"admin"}`, asSecond)
	_, successor := made("/v1/keys/"+spare+"/rotate", `{}`, asAdmin)
	shown := s.ask("GET", "/v1/approvals/"+id, "", asSecond)
	if shown.status != 200 || shown.json["asked_name"] != "tests" || !strings.Contains(shown.body, `"ref":"transfer-1"`) || !strings.Contains(shown.body, "/v1/accounts/42/deposits") {
		t.Errorf("what waits: %s", shown.body)
	}
	for _, c := range []struct {
		name, as string
		status   int
	}{{"the one who asked", asAdmin, 403}, {"a namesake", asNamesake, 403}, {"a key of the one who asked", child, 403},
		{"a key of that key", grandchild, 403}, {"a key that the one who asked rotated", successor, 403}, {"a second person", asSecond, 200}, {"again", asSecond, 409}} {
		if a := s.ask("POST", "/v1/approvals/"+id+"/approve", `{"why":"checked"}`, c.as); a.status != c.status {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
	}
	balance("500")
	done := s.ask("GET", "/v1/approvals/"+id, "", asSecond)
	if done.json["state"] != "done" || done.json["decided_name"] != "second" || strings.Contains(done.body, "42") && strings.Contains(done.body, "/v1/accounts/42") {
		t.Errorf("what was done: %s", done.body)
	}
	acts := strings.Join(s.acts(""), "\n")
	for _, want := range []string{"deposit /v1/accounts/42/deposits 202", "approve /v1/approvals/" + id + "/approve 200", "deposit /v1/accounts/42/deposits 200"} {
		if !strings.Contains(acts, want) {
			t.Errorf("the log lacks %s:\n%s", want, acts)
		}
	}
}

// A rejected act is not done; the one who asked may take it back; an approved act that is
// refused says how, and is not done later.
func TestSecondPersonRejects(t *testing.T) {
	s, asSecond, _ := twoPersons(t)
	const deposit = `{"amount":{"amount":500,"currency":"CNY"},"ref":"%s"}`
	for as, who := range map[string]string{asSecond: "a second person", asAdmin: "the one who asked"} {
		id := s.waiting("POST", "/v1/accounts/42/deposits", fmt.Sprintf(deposit, "r"))
		if a := s.ask("POST", "/v1/approvals/"+id+"/reject", `{"why":"twice the sum"}`, as); a.status != 200 || a.json["state"] != "rejected" {
			t.Errorf("%s: %d %s", who, a.status, a.body)
		}
		if a := s.ask("POST", "/v1/approvals/"+id+"/approve", `{}`, asSecond); a.status != 409 {
			t.Errorf("after the rejection: %d %s", a.status, a.body)
		}
	}
	first, again := s.waiting("POST", "/v1/accounts/42/deposits", fmt.Sprintf(deposit, "same")), s.waiting("POST", "/v1/accounts/7/deposits", fmt.Sprintf(deposit, "same"))
	if a := s.ask("POST", "/v1/approvals/"+first+"/approve", `{}`, asSecond); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	refused := s.ask("POST", "/v1/approvals/"+again+"/approve", `{}`, asSecond)
	if refused.status != 409 && refused.status != 400 {
		t.Errorf("a ref of another user: %d %s", refused.status, refused.body)
	}
	if a := s.ask("GET", "/v1/approvals/"+again, "", asSecond); a.json["state"] != "failed" || a.json["status"] != float64(refused.status) {
		t.Errorf("%s", a.body)
	}
	if a := s.ask("GET", "/v1/approvals?limit=3", "", asSecond); len(a.json["items"].([]any)) != 3 || a.json["next_cursor"] == "" {
		t.Errorf("the list: %s", a.body)
	}
}

// One person refunds up to the bound, all refunds of a claim together; erasures and public values
// wait always, and an erasure that waits names the user in the approval alone.
func TestSecondPersonForRefunds(t *testing.T) {
	s, asSecond, _ := twoPersons(t)
	claim, path := s.paidClaim(t, 1000)
	refund := func(amount string) string { return `{"amount":{"amount":` + amount + `,"currency":"CNY"}}` }
	if a := s.ask("POST", path, refund("60"), asAdmin); a.status != 200 {
		t.Errorf("below the bound: %d %s", a.status, a.body)
	}
	// With what went back before it is above the bound.
	s.waiting("POST", path, refund("60"))
	rest := s.waiting("POST", path, `{}`)
	if a := s.ask("POST", "/v1/approvals/"+rest+"/approve", `{}`, asSecond); a.status != 200 {
		t.Errorf("the rest: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/claims/"+claim, "", asAdmin); a.json["status"] != "refunded" {
		t.Errorf("%s", a.body)
	}
	erase := s.waiting("POST", "/v1/users/seven/erasure", `{}`)
	if a := s.ask("GET", "/v1/audit?action=erase-user", "", asAdmin); strings.Contains(a.body, "seven") {
		t.Errorf("the log names the user: %s", a.body)
	}
	if a := s.ask("POST", "/v1/approvals/"+erase+"/approve", `{}`, asSecond); a.status != 200 || a.json["status"] != 202.0 {
		t.Errorf("the erasure: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/erasures", "", asAdmin); len(a.json["items"].([]any)) != 1 {
		t.Errorf("%s", a.body)
	}
	if asks := asksInChain(s); len(asks) != 1 || asks[0].KeyName != "second" {
		t.Errorf("the chain has %+v", asks)
	}
}

// TestRefundsAtOnceStayWithinTheBound: refunds that are sent at once, each below what one person may refund, bring no more
// than that back together.
func TestRefundsAtOnceStayWithinTheBound(t *testing.T) {
	s, _, _ := twoPersons(t)
	claim, refunds := s.paidClaim(t, 1000)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			a := s.ask("POST", refunds, `{"amount":{"amount":60,"currency":"CNY"}}`, asAdmin, fmt.Sprint("Idempotency-Key: r", i))
			if a.status != 200 && a.status != 202 && a.status != 409 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	found, err := s.service.Claims.Find(t.Context(), claim)
	must(t, err)
	if found.Payment.Refunded != 60 {
		t.Errorf("%d went back without a second person, whose bound is 100", found.Payment.Refunded)
	}
}

// TestRepeatedRefundNeedsNoSecondPerson: a refund that was made by one person, and whose answer was lost as after a crash in
// between, is known when it is sent again. A second person would make it twice.
func TestRepeatedRefundNeedsNoSecondPerson(t *testing.T) {
	s, _, _ := twoPersonsWith(t, func(s *httpapi.Services) { s.Memory = forgetful{} })
	claim, path := s.paidClaim(t, 1000)
	const refund = `{"amount":{"amount":60,"currency":"CNY"}}`
	for i := range 2 {
		a := s.ask("POST", path, refund, asAdmin, "Idempotency-Key: r")
		if a.status != 200 || (a.header.Get("Idempotent-Replayed") == "true") != (i == 1) {
			t.Errorf("the refund, sent %d times: %d %s", i+1, a.status, a.body)
		}
	}
	found, err := s.service.Claims.Find(t.Context(), claim)
	must(t, err)
	if found.Payment.Refunded != 60 {
		t.Errorf("%d went back", found.Payment.Refunded)
	}
	s.waiting("POST", path, refund, "Idempotency-Key: another")
}

// TestRefundOfWhatCountsAsPaid: a claim that had nothing to wait for counts as paid in full, and one person refunds up to
// the bound of it; what cost nothing has no bound.
func TestRefundOfWhatCountsAsPaid(t *testing.T) {
	s, _, _ := twoPersons(t)
	claimed := func(id, price string) (refunds string) {
		a := s.ask("POST", "/v1/campaigns", fmt.Sprintf(`{"id":%q,"kind":"sale","title":"P","starts_at":"2020-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z",
			"stock":{"units":9}%s}`, id, price), asAdmin)
		if a.status != 201 || s.ask("POST", "/v1/campaigns/"+id+"/publish", "", asAdmin).status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return "/v1/claims/" + fmt.Sprint(s.ask("POST", "/v1/campaigns/"+id+"/claims", "", asUser).json["id"]) + "/refund"
	}
	const part = `{"amount":{"amount":60,"currency":"CNY"}}`
	path := claimed("given", `,"price":{"amount":1000,"currency":"CNY"}`)
	if a := s.ask("POST", path, part, asAdmin); a.status != 200 {
		t.Errorf("below the bound: %d %s", a.status, a.body)
	}
	s.waiting("POST", path, part)
	s.waiting("POST", claimed("whole", `,"price":{"amount":1000,"currency":"CNY"}`), `{}`)
	if a := s.ask("POST", claimed("free", ""), `{"restock":true}`, asAdmin); a.status != 200 {
		t.Errorf("without a price: %d %s", a.status, a.body)
	}
}

// paidClaim makes a claim that was paid, and returns its id and the path of its refunds.
func (s *stack) paidClaim(t *testing.T, amount int) (claim, refunds string) {
	t.Helper()
	a := s.ask("POST", "/v1/campaigns", fmt.Sprintf(`{"id":"paid","kind":"sale","title":"P","starts_at":"2020-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","stock":{"units":9},
		"price":{"amount":%d,"currency":"CNY"},"pay_within":"15m"}`, amount), asAdmin)
	if a.status != 201 || s.ask("POST", "/v1/campaigns/paid/publish", "", asAdmin).status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	claim = fmt.Sprint(s.ask("POST", "/v1/campaigns/paid/claims", "", asUser).json["id"])
	waitFor(t, func() bool {
		body := fmt.Sprintf(`{"amount":{"amount":%d,"currency":"CNY"},"payment_ref":"p"}`, amount)
		return s.ask("POST", "/v1/claims/"+claim+"/confirm", body, asAdmin).status == 200
	})
	return claim, "/v1/claims/" + claim + "/refund"
}

// Giving up a shard waits, and is asked for the same shard when it is approved: one whose deployment answers is kept
// then, and one that there is not is not found.
func TestSecondPersonForAbandoning(t *testing.T) {
	s, asSecond, _ := twoPersons(t)
	s.sale("c", 5, 1)
	for shard, status := range map[string]int{"0": 409, "1": 404} {
		path := "/v1/campaigns/c/shards/" + shard + "/abandon"
		id := s.waiting("POST", path, `{"yes":true}`)
		if a := s.ask("GET", "/v1/approvals/"+id, "", asSecond); !strings.Contains(a.body, path) || !strings.Contains(a.body, `"yes":true`) {
			t.Errorf("what waits: %s", a.body)
		}
		if a := s.ask("POST", "/v1/approvals/"+id+"/approve", `{}`, asSecond); a.status != status {
			t.Errorf("shard %s: %d %s", shard, a.status, a.body)
		}
		if acts := strings.Join(s.acts(""), "\n"); !strings.Contains(acts, fmt.Sprintf("abandon-shard %s %d", path, status)) {
			t.Errorf("the log: %s", acts)
		}
	}
}

// draftPacket drafts a red packet, and returns its path.
func (s *stack) draftPacket(id string) string {
	s.t.Helper()
	a := s.ask("POST", "/v1/campaigns", fmt.Sprintf(`{"id":%q,"kind":"redpacket","title":"P","starts_at":"2020-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z",
		"stock":{"redpacket":{"total":{"amount":100,"currency":"CNY"},"count":2}}}`, id), asAdmin)
	if a.status != 201 {
		s.t.Fatalf("%d %s", a.status, a.body)
	}
	return "/v1/campaigns/" + id
}

// TestSecondPersonForRedPackets: money does not leave by a red packet of one person, to themselves or from another user's
// account: publishing waits, in the version that was asked for, and so does opening a published one to others. Other
// campaigns do not wait, nor does what changes nothing about money.
func TestSecondPersonForRedPackets(t *testing.T) {
	s, asSecond, _ := twoPersons(t)
	approve := func(id string, status int) {
		t.Helper()
		if a := s.ask("POST", "/v1/approvals/"+id+"/approve", `{}`, asSecond); a.status != status {
			t.Errorf("approving: %d, want %d: %s", a.status, status, a.body)
		}
	}
	is := func(path, state string) {
		t.Helper()
		if a := s.ask("GET", path, "", asAdmin); a.json["state"] != state {
			t.Errorf("%s is not %s: %s", path, state, a.body)
		}
	}
	path := s.draftPacket("rain")
	asked := s.waiting("POST", path+"/publish", "")
	is(path, "draft")
	// A version that the draft has yet to reach would be approved for whatever the draft becomes.
	for _, ahead := range []int{1, 2} {
		version := s.ask("GET", path, "", asAdmin).json["version"].(float64)
		a := s.ask("POST", path+"/publish", fmt.Sprintf(`{"version":%v}`, version+float64(ahead)), asAdmin)
		if a.status != 400 || !strings.Contains(a.body, `"/version"`) {
			t.Errorf("a version %d ahead of the draft: %d %s", ahead, a.status, a.body)
		}
	}
	if a := s.ask("GET", "/v1/approvals", "", asAdmin); len(a.json["items"].([]any)) != 1 {
		t.Errorf("what waits: %s", a.body)
	}
	if a := s.ask("PATCH", path, `{"sender_id":"42","title":"Another"}`, asAdmin); a.status != 400 {
		t.Errorf("the sender is changed: %d %s", a.status, a.body)
	}
	if a := s.ask("PATCH", path, `{"gate":{"audience":{"followers_of":"me"}}}`, asAdmin); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	approve(asked, 409)
	is(path, "draft")
	approve(s.waiting("POST", path+"/publish", ""), 200)
	is(path, "published")
	// Whoever it was approved for has it.
	for _, gate := range []string{`{"gate":{}}`, `{"gate":null}`} {
		asked = s.waiting("PATCH", path, gate)
	}
	approve(asked, 200)
	if a := s.ask("GET", path, "", asAdmin); a.json["gate"] != nil {
		t.Errorf("the gate is still there: %s", a.body)
	}
	// One user may have no more of it than was approved.
	asked = s.waiting("PATCH", path, `{"limit_per_user":2}`)
	if a := s.ask("GET", path, "", asAdmin); a.json["limit_per_user"] != 1.0 {
		t.Errorf("the limit was raised: %s", a.body)
	}
	approve(asked, 200)
	if a := s.ask("GET", path, "", asAdmin); a.json["limit_per_user"] != 2.0 {
		t.Errorf("the limit was not raised: %s", a.body)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", path + "/publish", ""}, {"PATCH", path, `{"title":"Rain"}`}, {"POST", path + "/end", ""},
	} {
		if a := s.ask(c.method, c.path, c.body, asAdmin); a.status != 200 {
			t.Errorf("%+v: %d %s", c, a.status, a.body)
		}
	}
	s.sale("phone", 5, 5)
	if a := s.ask("PATCH", "/v1/campaigns/phone", `{"gate":{"limits":[{"per":"user","rate":5}]}}`, asAdmin); a.status != 200 {
		t.Errorf("a sale: %d %s", a.status, a.body)
	}
}

// publishedMeanwhile has others publish a campaign at the last moment before it is patched.
type publishedMeanwhile struct{ campaignService }

func (p publishedMeanwhile) PatchIf(ctx context.Context, id string, patch dibs.CampaignPatch, may func(*dibs.Campaign) error) (*dibs.Campaign, error) {
	if _, err := p.campaignService.PublishVersion(ctx, id, nil); err != nil {
		return nil, err
	}
	return p.campaignService.PatchIf(ctx, id, patch, may)
}

// TestPatchThatStraddlesThePublication: what a caller may do, and do alone, is decided about the campaign that is changed,
// not about the draft that it was shortly before.
func TestPatchThatStraddlesThePublication(t *testing.T) {
	s, asSecond, _ := twoPersonsWith(t, func(s *httpapi.Services) { s.Campaigns = publishedMeanwhile{s.Campaigns} })
	_, secret, err := s.service.Access.CreateKey(t.Context(), "editor", access.RoleEditor)
	must(t, err)
	for i, c := range []struct {
		body   string
		waits  bool
		member string
	}{
		{`{"gate":{"limits":[{"per":"user","rate":5}]}}`, true, "gate"}, {`{"gate":null}`, true, ""}, {`{"limit_per_user":2}`, true, "limit_per_user"}, {`{"title":"Another"}`, false, "title"},
	} {
		path := s.draftPacket(fmt.Sprint("by-an-editor-", i))
		if a := s.ask("PATCH", path, c.body, "Authorization: Bearer "+secret); a.status != 403 {
			t.Errorf("%s by an editor: %d %s", c.body, a.status, a.body)
		}
		path = s.draftPacket(fmt.Sprint("by-an-admin-", i))
		before := s.ask("GET", path, "", asAdmin)
		a := s.ask("PATCH", path, c.body, asAdmin)
		if !c.waits {
			if a.status != 200 {
				t.Errorf("%s: %d %s", c.body, a.status, a.body)
			}
			continue
		}
		after := s.ask("GET", path, "", asAdmin)
		if a.status != 409 || after.json["state"] != "published" || fmt.Sprint(after.json[c.member]) != fmt.Sprint(before.json[c.member]) {
			t.Errorf("%s: %d %s, the campaign is %s", c.body, a.status, a.body, after.body)
		}
		// The next one waits, and is done when it is approved.
		asked := s.waiting("PATCH", path, c.body)
		if a := s.ask("POST", "/v1/approvals/"+asked+"/approve", `{}`, asSecond); a.status != 200 {
			t.Errorf("%s, approved: %d %s", c.body, a.status, a.body)
		}
		if after := s.ask("GET", path, "", asAdmin); c.member != "" && fmt.Sprint(after.json[c.member]) == fmt.Sprint(before.json[c.member]) {
			t.Errorf("%s, approved: %s", c.body, after.body)
		}
	}
}

// TestPublishOfAVersion: a draft that was changed since is not published.
func TestPublishOfAVersion(t *testing.T) {
	s := newStack(t, nil)
	const path = "/v1/campaigns/draft"
	a := s.ask("POST", "/v1/campaigns", `{"id":"draft","kind":"sale","title":"D","starts_at":"2020-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","stock":{"units":9}}`, asAdmin)
	seen := a.json["version"]
	if a = s.ask("PATCH", path, `{"title":"Another"}`, asAdmin); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := s.ask("POST", path+"/publish", fmt.Sprintf(`{"version":%v}`, seen), asAdmin); a.status != 409 || !strings.Contains(a.body, `"/version"`) {
		t.Errorf("an old version: %d %s", a.status, a.body)
	}
	if a := s.ask("POST", path+"/publish", fmt.Sprintf(`{"version":%v}`, a.json["version"]), asAdmin); a.status != 200 || a.json["state"] != "published" {
		t.Errorf("the current version: %d %s", a.status, a.body)
	}
}

// TestApprovalExpires: what nobody decides about is not done later.
func TestApprovalExpires(t *testing.T) {
	a := access.Approval{State: access.ApprovalPending, Call: []byte("{}"), ExpiresAt: time.Unix(60, 0)}
	if v := a.View(time.Unix(59, 0)); v.State != access.ApprovalPending || v.Call == nil {
		t.Errorf("%+v", v)
	}
	if v := a.View(time.Unix(60, 0)); v.State != "expired" || v.Call != nil {
		t.Errorf("%+v", v)
	}
}

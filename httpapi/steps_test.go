package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestClaimLife walks a claim through its steps over HTTP: who may take them,
// what a repeat says, and what users do not see.
func TestClaimLife(t *testing.T) {
	s := newStack(t, nil)
	ctx := context.Background()
	units, within, now := int64(10), dibs.Duration(15*time.Minute), time.Now()
	_, err := s.service.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "life", Kind: dibs.Sale, Title: "Life", StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Price: &dibs.Money{Amount: 500, Currency: "CNY"}, PayWithin: &within, Limit: new(int64(5)),
	})
	must(t, err)
	_, err = s.service.Campaigns.Publish(ctx, "life")
	must(t, err)
	var ids []string
	for _, key := range []string{"1", "2"} {
		res, err := s.service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "life", UserID: "42", Key: key})
		must(t, err)
		ids = append(ids, res.Claim.ID)
	}
	const pay = `{"payment_ref":"p1","amount":{"amount":500,"currency":"CNY"}}`
	other := jwtFor(t, "7", time.Hour)
	for _, x := range []struct {
		path, body string
		headers    []string
		status     int
		contains   string
		replayed   bool
	}{
		{ids[0] + "/confirm", pay, []string{asUser}, 403, `"reason":"forbidden"`, false},
		{ids[0] + "/confirm", `{"payment_ref":"p1","amount":{"amount":501,"currency":"CNY"}}`, []string{asAdmin}, 400, `"pointer":"/amount"`, false},
		{ids[0] + "/confirm", `{"amount":{"amount":500,"currency":"CNY"}}`, []string{asAdmin}, 400, `payment_ref`, false},
		{ids[0] + "/confirm", `{"payment_ref":"p1","amount":{"amount":-1,"currency":"CNY"}}`, []string{asAdmin}, 400, `"pointer":"/amount/amount"`, false},
		{ids[0] + "/confirm", pay, []string{asAdmin}, 200, `"status":"confirmed"`, false},
		{ids[0] + "/confirm", pay, []string{asAdmin}, 200, `"status":"confirmed"`, true},
		{ids[0] + "/confirm", strings.Replace(pay, "p1", "p2", 1), []string{asAdmin}, 409, `"code":30010`, false},
		{ids[0] + "/cancel", "", []string{asUser}, 409, `"reason":"invalid_state"`, false},
		{ids[1] + "/cancel", "", []string{other}, 404, `"reason":"not_found"`, false},
		{ids[1] + "/cancel", "", []string{asUser, "Idempotency-Key: c"}, 200, `"status":"released","status_code":-1`, false},
		{ids[1] + "/cancel", "", []string{asUser, "Idempotency-Key: c"}, 200, `"status":"released","status_code":-1`, true},
		// Another user's key is another key, although it reads the same.
		{ids[1] + "/cancel", "", []string{other, "Idempotency-Key: c"}, 404, `"reason":"not_found"`, false},
		{ids[0] + "/redeem", `{"ref":"o1"}`, []string{asAdmin}, 409, `only coupons`, false},
		{ids[0] + "/ship", `{"carrier":"SF","tracking_no":"1"}`, []string{asAdmin}, 200, `"shipment":{"carrier":"SF"`, false},
		{ids[0] + "/refund", `{"amount":{"amount":200,"currency":"USD"}}`, []string{asAdmin}, 400, `currency`, false},
		{ids[0] + "/refund", `{"amount":{"amount":200,"currency":"CNY"}}`, []string{asAdmin, "Idempotency-Key: r"}, 200, `"refunded":{"amount":200`, false},
		{ids[0] + "/refund", `{"amount":{"amount":200,"currency":"CNY"}}`, []string{asAdmin, "Idempotency-Key: r"}, 200, `"refunded":{"amount":200`, true},
		{ids[0] + "/refund", `{"amount":{"amount":301,"currency":"CNY"}}`, []string{asAdmin}, 409, `only 3.00 CNY`, false},
		{ids[0] + "/refund", `{"restock":true}`, []string{asAdmin}, 200, `"status":"refunded","status_code":2`, false},
		{"0000000000000000/confirm", pay, []string{asAdmin}, 404, `"reason":"not_found"`, false},
	} {
		a := s.ask("POST", "/v1/claims/"+x.path, x.body, x.headers...)
		if a.status != x.status || !strings.Contains(a.body, x.contains) || (a.header.Get("Idempotent-Replayed") == "true") != x.replayed {
			t.Errorf("%s %s: %d %s, want %d with %s", x.path, x.body, a.status, a.body, x.status, x.contains)
		}
	}
	if a := s.ask("GET", "/v1/claims/"+ids[0], "", asAdmin); !strings.Contains(a.body, `"events":[{"step":"confirm"`) {
		t.Errorf("an admin sees no events: %s", a.body)
	}
	if a := s.ask("GET", "/v1/claims/"+ids[0], "", asUser); strings.Contains(a.body, `"events"`) || !strings.Contains(a.body, `"status":"refunded"`) {
		t.Errorf("a user sees: %s", a.body)
	}
	if a := s.ask("POST", "/v1/claims/"+ids[1]+"/confirm", pay, asAdmin, "Accept-Language: zh"); !strings.Contains(a.body, `"refund_due":true`) {
		t.Errorf("a payment of a cancelled claim: %s", a.body)
	}
	due := func() string { return s.ask("GET", "/v1/claims?refund_due=true", "", asAdmin).body }
	if body := due(); strings.Count(body, `"refund_due":true`) != 1 || strings.Count(body, `"user_id"`) != 1 {
		t.Errorf("refunds due: %s", body)
	}
	if a := s.ask("POST", "/v1/claims/"+ids[1]+"/refund", "{}", asAdmin); a.status != 200 || strings.Contains(due(), `"user_id"`) {
		t.Errorf("after the refund: %d %s %s", a.status, a.body, due())
	}
}

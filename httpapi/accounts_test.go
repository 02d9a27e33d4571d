package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/funds"
)

// TestAccounts walks money over HTTP: who may move it, what a repeat says, what is
// refused, and that no user sees another's.
func TestAccounts(t *testing.T) {
	s := newStack(t, nil)
	const path, in = "/v1/accounts/host/deposits", `{"amount":{"amount":500,"currency":"CNY"},"ref":"d1"}`
	for _, x := range []struct {
		body, header string
		status       int
		contains     string
		replayed     bool
	}{
		{in, asUser, 403, `"reason":"forbidden"`, false},
		{in, asAdmin, 200, `"balances":[{"amount":500,"currency":"CNY"}]`, false},
		{in, asAdmin, 200, `"balances":[{"amount":500,"currency":"CNY"}]`, true},
		{strings.Replace(in, "500", "501", 1), asAdmin, 409, `"reason":"already_exists"`, false},
		{strings.Replace(in, "CNY", "USD", 1), asAdmin, 409, `"reason":"already_exists"`, false},
		{strings.Replace(in, "CNY", "yuan", 1), asAdmin, 400, `"pointer":"/amount/currency"`, false},
		{strings.Replace(in, "500", "0", 1), asAdmin, 400, `"pointer":"/amount/amount"`, false},
		{strings.Replace(in, "500", "-500", 1), asAdmin, 400, `"pointer":"/amount/amount"`, false},
		{strings.Replace(in, "500", "5.5", 1), asAdmin, 400, `"pointer":"/amount/amount"`, false},
		{strings.Replace(in, "500", "9007199254740992", 1), asAdmin, 400, `"pointer":"/amount/amount"`, false},
		{strings.Replace(in, "500", "99999999999999999999", 1), asAdmin, 400, `/amount`, false},
		{strings.Replace(strings.Replace(in, "500", "9007199254740991", 1), "d1", "d2", 1), asAdmin, 400, `"pointer":"/amount/amount"`, false},
		{`{"amount":{"amount":500,"currency":"CNY"}}`, asAdmin, 400, `ref`, false},
		{strings.Replace(in, `"ref"`, `"user_id":"42","ref"`, 1), asAdmin, 400, `user_id`, false},
	} {
		a := s.ask("POST", path, x.body, x.header)
		if a.status != x.status || !strings.Contains(a.body, x.contains) || (a.header.Get("Idempotent-Replayed") == "true") != x.replayed {
			t.Errorf("%s: %d %s", x.body, a.status, a.body)
		}
	}
	if a := s.ask("POST", "/v1/accounts/a%20b/deposits", in, asAdmin); a.status != 400 || !strings.Contains(a.body, `"pointer":"/user"`) {
		t.Errorf("a deposit to a user that there cannot be: %d %s", a.status, a.body)
	}
	for path, want := range map[string]string{
		"/v1/accounts/host": `{"balances":[{"amount":500,"currency":"CNY"}]}`, "/v1/accounts/nobody": `{"balances":[]}`,
		"/v1/accounts/host/entries": `"kind":"deposit","amount":{"amount":500,"currency":"CNY"},"ref":"d1"`,
	} {
		if a := s.ask("GET", path, "", asAdmin); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	host := jwtFor(t, "host", time.Hour)
	if a := s.ask("GET", "/v1/me/balance", "", host); a.status != 200 || a.body != `{"balances":[{"amount":500,"currency":"CNY"}]}` {
		t.Errorf("my balance: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/v1/me/balance", "/v1/me/balance/entries"} {
		if a := s.ask("GET", path, "", asUser); a.status != 200 || strings.Contains(a.body, "500") {
			t.Errorf("%s of another user: %d %s", path, a.status, a.body)
		}
	}
}

// TestRedPacketAnswers holds the answers of a red packet against the result codes of the
// usual script in Redis.
func TestRedPacketAnswers(t *testing.T) {
	s := newStack(t, nil)
	ctx := context.Background()
	now := time.Now().UTC().Format(time.RFC3339)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	spec := `{"id":"rain","kind":"redpacket","title":"Rain","starts_at":"` + now + `","ends_at":"` + later + `","sender_id":"host",` +
		`"stock":{"redpacket":{"total":{"amount":300,"currency":"CNY"},"count":2,"split":"equal"}}}`
	for change, field := range map[string]string{
		`"count":2|"count":301`: "/stock/redpacket/total/amount", `"amount":300|"amount":-1`: "/stock/redpacket/total/amount",
		`"amount":300|"amount":9007199254740992`: "/stock/redpacket/total/amount", `"count":2|"count":2,"min":151`: "/stock/redpacket/min",
		`"count":2|"count":2,"max":149`: "/stock/redpacket/max", `"kind":"redpacket"|"kind":"sale"`: "/stock/redpacket",
		`"sender_id":"host"|"sender_id":"a b"`: "/sender_id", `"title":"Rain"|"title":"Rain","pay_within":"5m"`: "/pay_within",
		`"title":"Rain"|"title":"Rain","price":{"amount":1,"currency":"CNY"}`: "/price",
		`"kind":"redpacket"|"kind":"redpacket","shards":3`:                    "/shards",
	} {
		from, to, _ := strings.Cut(change, "|")
		if a := s.ask("POST", "/v1/campaigns", strings.Replace(spec, from, to, 1), asAdmin); a.status != 400 || !strings.Contains(a.body, `"pointer":"`+field+`"`) {
			t.Errorf("%s: %d %s", change, a.status, a.body)
		}
	}
	if a := s.ask("POST", "/v1/campaigns", spec, asAdmin); a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := s.ask("POST", "/v1/campaigns/rain/publish", "", asAdmin); a.status != 409 || !strings.Contains(a.body, `"reason":"insufficient_funds","code":30012`) {
		t.Errorf("publish without funds: %d %s", a.status, a.body)
	}
	_, _, err := s.service.Funds.Deposit(ctx, "host", funds.DepositSpec{Amount: dibs.Money{Amount: 300, Currency: "CNY"}, Ref: "d"})
	must(t, err)
	if a := s.ask("POST", "/v1/campaigns/rain/publish", "", asAdmin); a.status != 200 || !strings.Contains(a.body, `"escrow":{"amount":300,"currency":"CNY"}`) {
		t.Fatalf("publish: %d %s", a.status, a.body)
	}
	ask := func(user, key string, status int, parts ...string) {
		t.Helper()
		a := s.ask("POST", "/v1/campaigns/rain/claims", "", jwtFor(t, user, time.Hour), "Idempotency-Key: "+key)
		for _, part := range parts {
			if a.status != status || !strings.Contains(a.body, part) {
				t.Errorf("%s with %s: %d %s, want %d with %s", user, key, a.status, a.body, status, part)
			}
		}
	}
	share := []string{`"result_code":"0"`, `"amount":{"amount":150,"currency":"CNY"}`, `"items":["1"]`, `"kind":"redpacket"`}
	ask("ann", "1", 201, share...)
	ask("ann", "1", 200, share...)
	ask("ann", "2", 409, `"result_code":"1"`, `"reason":"limit_reached"`)
	ask("bob", "1", 201, `"result_code":"0"`, `"items":["2"]`)
	ask("cid", "1", 409, `"result_code":"-1"`, `"reason":"sold_out"`)
	ask("ann", "2", 409, `"result_code":"1"`, `"reason":"limit_reached"`)
	a := s.ask("GET", "/v1/campaigns/rain", "")
	if strings.Contains(a.body, "funds") || strings.Contains(a.body, "host") || !strings.Contains(a.body, `"redpacket":{"total":{"amount":300,"currency":"CNY"},"count":2}`) {
		t.Errorf("the public view: %s", a.body)
	}
	claims, err := s.service.Claims.OfUser(ctx, "ann", dibs.Page{})
	must(t, err)
	for _, step := range []string{"refund", "cancel"} {
		if a := s.ask("POST", "/v1/claims/"+claims.Items[0].ID+"/"+step, "{}", asAdmin); a.status != 409 || !strings.Contains(a.body, "the user's money") {
			t.Errorf("%s: %d %s", step, a.status, a.body)
		}
	}
}

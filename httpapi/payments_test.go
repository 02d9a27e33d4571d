package httpapi_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
)

// The simulator pays in time, too late and twice, what is the user's own; production has none.
func TestSimulatedPayments(t *testing.T) {
	s := newStack(t, nil)
	units, limit := int64(10), int64(3)
	for how, within := range map[string]time.Duration{"now": time.Hour, "late": 5 * time.Second, "twice": time.Hour} {
		_, err := s.admin.Campaigns.Create(context.Background(), dibs.CampaignSpec{
			ID: "paid-" + how, Kind: dibs.Sale, Title: "paid", StartsAt: time.Now().Add(-time.Second), EndsAt: time.Now().Add(time.Hour), Limit: &limit,
			Stock: dibs.StockSpec{Units: &units}, Price: &dibs.Money{Amount: 500, Currency: "CNY"}, PayWithin: new(dibs.Duration(within)),
		}, "")
		must(t, err)
		_, err = s.admin.Campaigns.Publish(context.Background(), "paid-"+how)
		must(t, err)
	}
	for how, want := range map[string]string{
		"now":   "[confirm:done]",
		"late":  "[confirm:done]",
		"twice": "[confirm:done repeat:done second:invalid_state]",
	} {
		id := s.ask("POST", "/v1/campaigns/paid-"+how+"/claims", "{}", asUser).json["id"].(string)
		body := fmt.Sprintf(`{"claim_id":%q,"how":%q}`, id, how)
		if a := s.ask("POST", "/v1/dev/payments", body, "Authorization: Bearer dev_7"); a.status != 404 {
			t.Errorf("somebody else's: %d %s", a.status, a.body)
		}
		if how == "late" {
			if a := s.ask("POST", "/v1/dev/payments", body, asUser); a.status != 409 {
				t.Errorf("before its time is over: %d %s", a.status, a.body)
			}
			s.eventually("the time to pay is over", "/v1/claims/"+id, func(a answer) bool { return a.json["status"] == "released" }, asUser)
		}
		a := s.ask("POST", "/v1/dev/payments", body, asUser)
		got := []string{}
		last := ""
		for _, x := range a.json["steps"].([]any) {
			step := x.(map[string]any)
			got = append(got, fmt.Sprint(step["what"], ":", step["outcome"]))
			if id, ok := step["claim_id"].(string); ok {
				last = id
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", how, got, want)
		}
		// A late payment takes stock again, as another claim.
		if paid := s.ask("GET", "/v1/claims/"+last, "", asUser); paid.json["status"] != "confirmed" || (how == "late") != (last != id) {
			t.Errorf("%s: %s", how, paid.body)
		}
	}
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret)})
	must(t, err)
	if a := serve(t, svc, h).ask("POST", "/v1/dev/payments", `{}`, jwtFor(t, "42", time.Hour)); a.status != 404 {
		t.Errorf("production: %d %s", a.status, a.body)
	}
}

package httpapi_test

import (
	"strings"
	"testing"
)

func TestMetricsCountEveryAnswer(t *testing.T) {
	s := newStack(t, nil)
	s.sale("noon", 1, 1)
	for range 3 {
		s.ask("POST", "/v1/campaigns/noon/claims", "", asUser, "Idempotency-Key: k")
	}
	s.ask("POST", "/v1/campaigns/noon/claims", "", "Authorization: Bearer dev_7")
	s.ask("POST", "/v1/campaigns/noon/claims", "", "Authorization: Bearer dev_8")
	s.ask("POST", "/v1/campaigns/noon/claims", "")
	s.ask("GET", "/v1/time", "")
	s.ask("GET", "/nope/"+strings.Repeat("x", 30), "")
	a := s.ask("GET", "/metrics", "")
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, line := range []string{
		`dibs_claim_seconds_count{outcome="granted"} 1`, `dibs_claim_seconds_count{outcome="replayed"} 2`,
		`dibs_claim_seconds_count{outcome="sold_out"} 2`, `dibs_claim_seconds_count{outcome="unauthenticated"} 1`,
		`dibs_http_requests_total{route="GET /v1/time",status="200"} 1`, `dibs_http_requests_total{route="other",status="404"} 1`,
		`dibs_granted_total 1`, `dibs_quarantined_entries 0`, `dibs_campaign_remaining{campaign="noon"} 0`, `dibs_campaign_refused_total{campaign="noon",reason="sold_out"} 2`,
		"go_goroutines",
	} {
		if !strings.Contains(a.body, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if strings.Contains(a.body, "xxx") {
		t.Error("an address of a caller became a label")
	}
}

package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
)

type clientFilter = client.ClaimFilter

// forgetful loses the answers that it should remember.
type forgetful struct{}

func (forgetful) Remember(_ context.Context, _, _ string, _ []byte, do func() (int, []byte, error)) (dibs.StoredRequest, bool, error) {
	status, body, err := do()
	return dibs.StoredRequest{Status: status, Body: body}, false, err
}

// broken are services whose calls end in what fail returns.
type broken struct{ fail func() error }

// brokenCampaigns and brokenHealth are broken in one way each.
type (
	brokenCampaigns struct {
		campaignService
		broken
	}
	brokenHealth struct{ httpapi.Operations }
)

func (b broken) Claim(context.Context, dibs.ClaimRequest) (dibs.Result, error) {
	return dibs.Result{}, b.fail()
}

func (b brokenCampaigns) Stats(context.Context, string) (dibs.StatsView, error) {
	return dibs.StatsView{}, b.fail()
}

func (b brokenCampaigns) PatchCampaign(context.Context, string, dibs.CampaignPatch) (*dibs.Campaign, error) {
	return nil, b.fail()
}

func (brokenHealth) Health(context.Context) dibs.HealthView {
	return dibs.HealthView{Durability: "durable", Dependencies: map[string]dibs.DependencyView{"ledger": {Error: "gone"}}}
}

func TestFailuresShowNothingInside(t *testing.T) {
	cause := errors.New("dial tcp 10.9.8.7:3306: the password was hunter2")
	var fail func() error
	s := newStack(t, func(s *httpapi.Services) {
		b := broken{func() error { return fail() }}
		s.Claimer, s.Campaigns, s.Operations = b, brokenCampaigns{s.Campaigns, b}, brokenHealth{s.Operations}
	})
	for name, c := range map[string]struct {
		fail    func() error
		status  int
		reason  string
		effect  any
		retry   string
		logged  bool
		noCause bool
	}{
		"unavailable, unknown": {func() error { return dibs.Unavail(dibs.EffectUnknown, cause) }, 503, "unavailable", "unknown", "1", true, true},
		"unavailable, none":    {func() error { return dibs.Unavail(dibs.EffectNone, cause) }, 503, "unavailable", "none", "1", true, true},
		"overloaded": {func() error {
			return &dibs.Error{Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: 1500 * time.Millisecond, Cause: cause}
		}, 503, "overloaded", "none", "2", false, true},
		"effect not said": {func() error { return &dibs.Error{Reason: dibs.Unavailable, Cause: cause} }, 503, "unavailable", "unknown", "1", true, true},
		"rate limited":    {func() error { return &dibs.Error{Reason: dibs.RateLimited, RetryAfter: time.Minute} }, 429, "rate_limited", nil, "60", false, true},
		"deadline":        {func() error { return context.DeadlineExceeded }, 503, "unavailable", "unknown", "1", true, true},
		"some error":      {func() error { return cause }, 500, "internal", nil, "", true, true},
		"panic":           {func() error { panic(cause) }, 500, "internal", nil, "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			fail = c.fail
			for _, q := range [][]string{
				{"POST", "/v1/campaigns/x/claims", "{}", asUser}, {"GET", "/v1/campaigns/x/stats", "", asAdmin}, {"PATCH", "/v1/campaigns/x", `{"title":"x"}`, asAdmin},
			} {
				a := s.ask(q[0], q[1], q[2], q[3])
				checkCommon(t, a)
				if a.status != c.status || a.json["reason"] != c.reason || a.json["effect"] != c.effect || a.header.Get("Retry-After") != c.retry {
					t.Errorf("%s: %d, Retry-After %q: %s", q[1], a.status, a.header.Get("Retry-After"), a.body)
				}
				for _, no := range append([]string{"hunter2", "10.9.8.7"}, never...) {
					if strings.Contains(a.body, no) {
						t.Errorf("%s shows %q: %s", q[1], no, a.body)
					}
				}
				id, _ := a.json["request_id"].(string)
				if got := strings.Contains(s.logs.String(), id+" "); got != c.logged {
					t.Errorf("%s: logged %v, want %v", q[1], got, c.logged)
				}
			}
		})
	}
	if logs := s.logs.String(); !strings.Contains(logs, "hunter2") || strings.Contains(logs, adminKey) || strings.Contains(logs, "dev_42") {
		t.Errorf("the log must have the causes and no tokens")
	}
	a := s.ask("GET", "/readyz", "")
	if a.status != 503 || a.json["ready"] != false || a.json["dependencies"].(map[string]any)["ledger"].(map[string]any)["ok"] != false {
		t.Errorf("readyz: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("healthz: %d", a.status)
	}
}

// midway has a list of claims that breaks on the second page.
type midway struct{ httpapi.Claims }

func (m midway) CampaignClaims(_ context.Context, _ string, _ dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error) {
	if page.Cursor != "" {
		return dibs.List[dibs.Claim]{}, errors.New("the ledger is gone")
	}
	return dibs.List[dibs.Claim]{Items: make([]dibs.Claim, 100), NextCursor: "more"}, nil
}

func TestBrokenCSVIsNoWholeCSV(t *testing.T) {
	s := newStack(t, func(s *httpapi.Services) { s.Claims = midway{s.Claims} })
	req, err := http.NewRequest("GET", s.url+"/v1/campaigns/x/claims?format=csv", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+adminKey)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		must(t, resp.Body.Close())
	}
	if err == nil {
		t.Error("half a CSV arrived as a whole one")
	}
	if err := s.admin.CampaignClaimsCSV(context.Background(), "x", clientFilter{}, io.Discard); err == nil {
		t.Error("the client took half a CSV for a whole one")
	}
}

// slow bodies and bodies cut off are refused, not waited for.
func TestBodyCutOff(t *testing.T) {
	s := newStack(t, nil)
	body, w := io.Pipe()
	req, err := http.NewRequest("POST", s.url+"/v1/campaigns/x/claims", body)
	must(t, err)
	req.Header.Set("Authorization", "Bearer dev_42")
	req.ContentLength = 100
	go func() {
		_, _ = w.Write([]byte(`{"quan`))
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	}()
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
		must(t, resp.Body.Close())
		if resp.StatusCode < 400 {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}

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

package httpapi_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/api"
)

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

func (b brokenCampaigns) Stats(context.Context, string) (api.StatsView, error) {
	return api.StatsView{}, b.fail()
}

func (b brokenCampaigns) PatchIf(context.Context, string, dibs.CampaignPatch, func(*dibs.Campaign) error) (*dibs.Campaign, error) {
	return nil, b.fail()
}

func (brokenHealth) Health(context.Context) api.HealthView {
	return api.HealthView{Durability: "durable", Dependencies: map[string]api.DependencyView{"ledger": {Error: "gone", ErrorZH: "不可用"}}}
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
	if zh := s.ask("GET", "/readyz", "", inChinese).body; !strings.Contains(a.body, `"error":"gone"`) || !strings.Contains(zh, `"error":"不可用"`) {
		t.Errorf("readyz: %s, in Chinese %s", a.body, zh)
	}
	if a := s.ask("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("healthz: %d", a.status)
	}
}

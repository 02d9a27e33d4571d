package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/limit"
)

// A claim beyond the server's limit is told which limit, and when to come back; the
// others are told what is left.
func TestLimitHeaders(t *testing.T) {
	svc := newService(t)
	limits, err := limit.New(limit.Config{User: &dibs.LimitSpec{Rate: 2, Every: dibs.Duration(time.Minute)}})
	must(t, err)
	t.Cleanup(limits.Close)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Limits: limits})
	must(t, err)
	s := serve(t, svc, h)
	s.sale("phone", 5, 5)
	claim := func() answer { return s.ask("POST", "/v1/campaigns/phone/claims", "", asUser, "Accept-Language: zh") }
	for i := range 2 {
		a := claim()
		if want := fmt.Sprintf(`"user";r=%d;t=%d`, 1-i, 30*(i+1)); a.status != 201 || a.header.Get("RateLimit") != want || a.header.Get("RateLimit-Policy") != `"user";q=2;w=60` {
			t.Errorf("claim %d: %d, RateLimit %s, want %s, policy %s", i, a.status, a.header.Get("RateLimit"), want, a.header.Get("RateLimit-Policy"))
		}
	}
	a := claim()
	if a.status != 429 || a.json["reason"] != "rate_limited" || a.json["detail"] != "您的请求过于频繁" || a.json["retryable"] != true {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a.header.Get("Retry-After") != "30" || a.header.Get("RateLimit") != `"user";r=0;t=60` {
		t.Errorf("Retry-After %s, RateLimit %s", a.header.Get("Retry-After"), a.header.Get("RateLimit"))
	}
	if a := s.ask("POST", "/v1/campaigns/phone/claims", "", "Authorization: Bearer dev_7"); a.status != 201 {
		t.Errorf("another user: %d", a.status)
	}
}

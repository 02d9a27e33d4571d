package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/limit"
)

// A claim beyond the limit of the server hears which one, and when to come
// back; the others hear what is left.
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

// A campaign for a list lets those of the list through, and after another
// import those of that one; who is not among them hears so.
func TestAudience(t *testing.T) {
	s := newStack(t, nil)
	csv := "Content-Type: text/csv"
	spec := func(gate string) string {
		return fmt.Sprintf(`{"id":"vips","kind":"sale","title":"T","starts_at":%q,"ends_at":%q,"limit_per_user":100,"stock":{"units":500},"gate":%s}`,
			time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339), gate)
	}
	const gate = `{"audience":{"list":"vip"}}`
	if a := s.ask("POST", "/v1/campaigns", spec(gate), asAdmin); a.status != 400 || !strings.Contains(a.body, "/gate/audience/list") {
		t.Errorf("for a list that there is not: %d %s", a.status, a.body)
	}
	if a := s.ask("PUT", "/v1/audiences/vip", "user\n42\n", asAdmin, csv); a.status != 200 || fmt.Sprint(a.json["users"], a.json["duplicates"]) != "1 0" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := s.ask("PUT", "/v1/audiences/vip", "user\n42\n4 2\n", asAdmin, csv); a.status != 400 || !strings.Contains(a.body, "/lines/3") {
		t.Errorf("with a broken line: %d %s", a.status, a.body)
	}
	for _, step := range []string{"", "/vips/publish"} {
		if a := s.ask("POST", "/v1/campaigns"+step, map[bool]string{true: spec(gate)}[step == ""], asAdmin); a.status > 201 {
			t.Fatalf("%s: %d %s", step, a.status, a.body)
		}
	}
	want := func(user string, status int) answer {
		t.Helper()
		over := time.After(time.Minute)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			a := s.ask("POST", "/v1/campaigns/vips/claims", "", "Authorization: Bearer dev_"+user)
			if a.status == status {
				return a
			}
			if a.status == 503 && a.json["effect"] != "none" {
				t.Fatalf("%s", a.body)
			}
			select {
			case <-tick.C:
			case <-over:
				t.Fatalf("user %s: %d, want %d: %s", user, a.status, status, a.body)
			}
		}
	}
	want("42", 201)
	if a := want("7", 403); a.json["reason"] != "not_eligible" || a.json["code"] != float64(30009) {
		t.Errorf("%s", a.body)
	}
	if a := s.ask("PUT", "/v1/audiences/vip", "7\n", asAdmin, csv); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	want("7", 201)
	want("42", 403)
}

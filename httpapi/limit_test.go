package httpapi_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/node"
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

// A regular order passes the lists and limits that a claim passes, and no user holds the
// whole stock without paying.
func TestLimitsOfOrders(t *testing.T) {
	svc, _ := newServiceWith(t, func(c *node.ServiceConfig) { c.OrderHeld = 5 })
	limits, err := limit.New(limit.Config{
		User: &dibs.LimitSpec{Rate: 4, Every: dibs.Duration(time.Hour)}, Lists: limit.Lists{BlockedDevices: []string{"bot"}},
	})
	must(t, err)
	t.Cleanup(limits.Close)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Limits: limits})
	must(t, err)
	s := serve(t, svc, h)
	order := func(user, product string, quantity int, headers ...string) answer {
		return s.ask("POST", "/v1/products/"+product+"/orders", fmt.Sprintf(`{"quantity":%d}`, quantity), append(headers, "Authorization: Bearer dev_"+user)...)
	}
	for id, within := range map[string]time.Duration{"mug": 15 * time.Minute, "free": 0} {
		spec := dibs.ProductSpec{ID: id, Name: id, Stock: 1000}
		if within > 0 {
			spec.PayWithin = new(dibs.Duration(within))
		}
		_, err := s.admin.Products.Create(t.Context(), spec, "")
		must(t, err)
	}
	if a := order("bad", "mug", 1, "Dibs-Device: bot"); a.status != 403 || a.json["reason"] != "forbidden" {
		t.Errorf("from a blocked device: %d %s", a.status, a.body)
	}
	first := order("ann", "mug", 3)
	if first.status != 201 || first.header.Get("RateLimit") == "" {
		t.Fatalf("%d %s, RateLimit %q", first.status, first.body, first.header.Get("RateLimit"))
	}
	a := order("ann", "mug", 3)
	if ids, _ := a.json["claim_ids"].([]any); a.status != 409 || a.json["reason"] != "limit_reached" || len(ids) != 1 || ids[0] != first.json["id"] {
		t.Errorf("6 of 5 units: %d %s", a.status, a.body)
	}
	if a := order("ann", "mug", 2); a.status != 201 {
		t.Errorf("5 of 5 units: %d %s", a.status, a.body)
	}
	_, _, err = s.admin.Orders.Confirm(t.Context(), first.json["id"].(string), dibs.PaymentSpec{PaymentRef: "p"})
	must(t, err)
	if a := order("ann", "mug", 3); a.status != 201 {
		t.Errorf("3 units more, with 3 paid: %d %s", a.status, a.body)
	}
	if a := order("ann", "mug", 1); a.status != 429 || a.json["reason"] != "rate_limited" || a.header.Get("Retry-After") == "" {
		t.Errorf("a fifth order: %d %s", a.status, a.body)
	}
	if a := order("bob", "free", 5); a.status != 201 {
		t.Errorf("nothing to pay: %d %s", a.status, a.body)
	}
	if a := order("bob", "free", 1); a.status != 409 {
		t.Errorf("6 of 5 units with nothing to pay: %d %s", a.status, a.body)
	}
	if a := order("cat", "free", 6); a.status != 409 || a.json["reason"] != "limit_reached" {
		t.Errorf("6 of 5 units at once: %d %s", a.status, a.body)
	}
}

// Calls besides claims are bounded per user: one who asks too often is refused, others are
// not, and administrators are not counted.
func TestLimitOfCalls(t *testing.T) {
	svc := newService(t)
	limits, err := limit.New(limit.Config{User: &dibs.LimitSpec{Rate: 3, Every: dibs.Duration(time.Hour)}})
	must(t, err)
	t.Cleanup(limits.Close)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Calls: limits})
	must(t, err)
	s := serve(t, svc, h)
	s.sale("phone", 5, 5)
	for _, path := range []string{"/v1/me/claims", "/v1/me/balance", "/v1/me/claims?status=pending"} {
		if a := s.ask("GET", path, "", asUser); a.status != 200 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if a := s.ask("GET", "/v1/me/claims", "", asUser); a.status != 429 || a.json["reason"] != "rate_limited" || a.header.Get("Retry-After") == "" {
		t.Errorf("a fourth call: %d %s", a.status, a.body)
	}
	if a := s.ask("POST", "/v1/campaigns/phone/claims", "", asUser); a.status != 201 {
		t.Errorf("a claim counts as a call: %d", a.status)
	}
	if a := s.ask("GET", "/v1/me/claims", "", "Authorization: Bearer dev_7"); a.status != 200 {
		t.Errorf("another user: %d", a.status)
	}
	for range 5 {
		if a := s.ask("GET", "/v1/claims", "", asAdmin); a.status != 200 {
			t.Errorf("an administrator: %d", a.status)
		}
	}
}

// Calls without a token are bounded for each address, where more than memory answers them;
// users, administrators, health and this machine are not counted with them.
func TestLimitOfStrangers(t *testing.T) {
	svc := newService(t)
	limits, err := limit.New(limit.Config{Address: &dibs.LimitSpec{Rate: 3, Every: dibs.Duration(time.Hour)}})
	must(t, err)
	t.Cleanup(limits.Close)
	h, err := httpapi.New(httpapi.Config{
		Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Strangers: limits, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	must(t, err)
	s := serve(t, svc, h)
	s.sale("phone", 5, 5)
	const paged, at = "/v1/campaigns?limit=1", fromOne
	for _, path := range []string{paged, "/v1/campaigns/phone/luck", "/v1/campaigns/phone/lottery"} {
		if a := s.ask("GET", path, "", at); a.status == 429 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if a := s.ask("GET", paged, "", at); a.status != 429 || a.json["reason"] != "rate_limited" || a.header.Get("Retry-After") == "" {
		t.Errorf("a fourth call: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/campaigns/phone/lottery/entries", "", at); a.status != 429 {
		t.Errorf("a list of a lottery, as a fifth call: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", paged, "", "X-Forwarded-For: 203.0.113.10"); a.status != 200 {
		t.Errorf("another address: %d %s", a.status, a.body)
	}
	for _, c := range []struct{ path, from, as string }{
		{paged, at, asUser},
		{paged, at, asAdmin},
		{paged, "Accept: */*", ""},
		{"/v1/campaigns", at, ""},
		{"/v1/campaigns/phone", at, ""},
		{"/healthz", at, ""},
		{"/readyz", at, ""},
		{"/v1/time", at, ""},
	} {
		headers := []string{c.from}
		if c.as != "" {
			headers = append(headers, c.as)
		}
		for range 5 {
			if a := s.ask("GET", c.path, "", headers...); a.status != 200 {
				t.Errorf("%+v: %d %s", c, a.status, a.body)
			}
		}
	}
}

// TestLimitOfTriedTickets: tickets of WebSockets that are tried count as calls of their address, though no connection
// is made; a connection that begins without one asks no more than memory, and counts as none.
func TestLimitOfTriedTickets(t *testing.T) {
	svc := newService(t)
	limits, err := limit.New(limit.Config{Address: &dibs.LimitSpec{Rate: 3, Every: dibs.Duration(time.Hour)}})
	must(t, err)
	t.Cleanup(limits.Close)
	h, err := httpapi.New(httpapi.Config{
		Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Strangers: limits, Gateway: newShortGateway(),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	must(t, err)
	s := serve(t, svc, h)
	const at = "X-Forwarded-For: 203.0.113.9"
	for i := range 3 {
		if a := s.ask("GET", "/v1/ws?ticket=guessed", "", at); a.status != 400 {
			t.Errorf("try %d: %d %s", i, a.status, a.body)
		}
	}
	if a := s.ask("GET", "/v1/ws?ticket=guessed", "", at); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("a fourth try: %d %s", a.status, a.body)
	}
	for _, other := range []struct{ path, from string }{
		{"/v1/ws", at}, {"/v1/ws?ticket=mine", "X-Forwarded-For: 203.0.113.10"}, {"/v1/ws?ticket=mine", "Accept: */*"},
	} {
		if a := s.ask("GET", other.path, "", other.from); a.status != 400 {
			t.Errorf("%+v: %d %s", other, a.status, a.body)
		}
	}
}

// shortTokens are tokens of users that end at a moment.
type shortTokens struct{ until time.Time }

func (s shortTokens) Verify(string) (string, time.Time, error) { return "42", s.until, nil }

// waits lets each claim through once its token has ended.
type waits struct{ until time.Time }

func (w waits) Enter(ctx context.Context, _ *dibs.ClaimRequest) (dibs.Result, bool) {
	select {
	case <-time.After(time.Until(w.until)):
	case <-ctx.Done():
	}
	return dibs.Result{}, true
}

// A token that ends while its claim waits for its turn claims nothing.
func TestTokenThatEndsWhileItWaits(t *testing.T) {
	svc := newService(t)
	until := time.Now().Add(500 * time.Millisecond)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), Users: shortTokens{until}, Limits: waits{until}})
	must(t, err)
	s := serve(t, svc, h)
	s.sale("phone", 5, 5)
	if a := s.ask("POST", "/v1/campaigns/phone/claims", "", "Authorization: Bearer eyJ.a.b"); a.status != 401 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if stats := s.ask("GET", "/v1/campaigns/phone/stats", "", asAdmin); stats.json["granted"] != 0.0 {
		t.Errorf("%s", stats.body)
	}
}

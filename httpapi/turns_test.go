package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/httpapi"
)

const (
	fromOne   = "X-Forwarded-For: 203.0.113.9"
	fromOther = "X-Forwarded-For: 203.0.113.10"
)

// threeForStrangers is a stack on which an address may make three calls an hour without a token. Its clients name their
// address.
func threeForStrangers(t *testing.T) *stack {
	t.Helper()
	svc := newService(t)
	limits, err := limit.New(limit.Config{Address: &dibs.LimitSpec{Rate: 3, Every: dibs.Duration(time.Hour)}})
	must(t, err)
	t.Cleanup(limits.Close)
	h, err := httpapi.New(httpapi.Config{
		Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), AllowDevTokens: true, Strangers: limits, Gateway: newShortGateway(),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	must(t, err)
	return serve(t, svc, h)
}

// TestMadeUpCampaignsAreCounted: an id that somebody makes up may ask the ledger, so it counts as a call of their
// address, and so does an event stream of it; a campaign with a page costs nothing.
func TestMadeUpCampaignsAreCounted(t *testing.T) {
	for _, begin := range []string{"/v1/campaigns/none-", "/c/none-"} {
		s := threeForStrangers(t)
		for i := range 3 {
			if a := s.ask("GET", fmt.Sprint(begin, i), "", fromOne); a.status != 404 {
				t.Errorf("%s%d: %d %s", begin, i, a.status, a.body)
			}
		}
		if a := s.ask("GET", begin+"3", "", fromOne); a.status != 429 || a.header.Get("Retry-After") == "" || a.header.Get("RateLimit") == "" {
			t.Errorf("a fourth %s: %d %s", begin, a.status, a.body)
		}
		if a := s.ask("GET", begin+"3", "", fromOther); a.status != 404 {
			t.Errorf("%s of another address: %d %s", begin, a.status, a.body)
		}
	}
	s := threeForStrangers(t)
	s.sale("phone", 5, 5)
	for range 5 {
		for _, path := range []string{"/v1/campaigns/phone", "/c/phone"} {
			if a := s.ask("GET", path, "", fromOne); a.status != 200 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
	// The first page was one call. Event streams of a campaign with a page are none.
	for i, want := range []int{200, 200, 200, 200} {
		if a := s.ask("GET", "/v1/campaigns/phone/events", "", fromOne); a.status != want {
			t.Errorf("event stream %d: %d %s", i, a.status, a.body)
		}
	}
	for i, want := range []int{200, 200, 429} {
		if a := s.ask("GET", "/v1/campaigns/none/events", "", fromOne); a.status != want {
			t.Errorf("event stream %d of a made-up one: %d %s", i, a.status, a.body)
		}
	}
}

// TestRequestsOfAnAddress: over HTTP/2 an address has a bounded number of requests under way, whatever the number of its
// connections; one that ends makes room. Over HTTP/1.1 nothing is counted.
func TestRequestsOfAnAddress(t *testing.T) {
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, RequestsPerAddress: 2})
	must(t, err)
	s := serve(t, svc, h)
	s.sale("phone", 50, 50)
	claim := func(major int, from string, body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/campaigns/phone/claims", body)
		r.ProtoMajor, r.RemoteAddr, r.ContentLength = major, from, -1
		r.Header.Set("Authorization", "Bearer dev_42")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const one, other = "203.0.113.9:1", "203.0.113.10:1"
	var all sync.WaitGroup
	slow := func(major int) (end func()) {
		body, rest := io.Pipe()
		all.Go(func() {
			if w := claim(major, one, body); w.Code != 201 {
				t.Errorf("over HTTP/%d: %d %s", major, w.Code, w.Body)
			}
		})
		// The handler reads it: the request is under way.
		_, err := rest.Write([]byte("{"))
		must(t, err)
		return func() {
			_, err := rest.Write([]byte("}"))
			must(t, err)
			must(t, rest.Close())
		}
	}
	ends := []func(){slow(1), slow(1), slow(1), slow(2), slow(2)}
	if w := claim(2, one, http.NoBody); w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "under way") {
		t.Errorf("one more: %d %s", w.Code, w.Body)
	}
	for _, c := range []struct {
		major int
		from  string
	}{{1, one}, {2, other}, {2, "127.0.0.1:1"}} {
		if w := claim(c.major, c.from, http.NoBody); w.Code != 201 {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
	for _, end := range ends {
		end()
	}
	all.Wait()
	if w := claim(2, one, http.NoBody); w.Code != 201 {
		t.Errorf("after the others: %d %s", w.Code, w.Body)
	}
}

// TestParametersComeOnce: a parameter that is there twice is refused by its name, unless it is a list.
func TestParametersComeOnce(t *testing.T) {
	s := newStack(t, nil)
	s.sale("phone", 5, 5)
	for path, status := range map[string]int{
		"/v1/claims?campaign_id=phone&campaign_id=other":            400,
		"/v1/claims?campaign_id=phone&limit=1&campaign_id=other":    400,
		"/v1/claims?campaign_id=phone&limit=1":                      200,
		"/v1/campaigns?limit=1&limit=2":                             400,
		"/v1/verify?campaign=phone&campaign=phone":                  200,
		"/v1/audit?since=2026-01-01T00:00:00Z&key=a&key=b&limit=20": 400,
	} {
		a := s.ask("GET", path, "", asAdmin)
		if a.status != status || status == 400 && !strings.Contains(a.body, "may be there once") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := s.ask("GET", "/v1/ws?ticket=a&ticket=b", ""); a.status != 400 || !strings.Contains(a.body, "may be there once") {
		t.Errorf("tickets of WebSockets: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/claims?user_id=1&user_id=2", ""); a.status != 401 {
		t.Errorf("a stranger: %d %s", a.status, a.body)
	}
}

// TestBodiesOfUsers: bodies of users and strangers have a smaller bound than those of administrators.
func TestBodiesOfUsers(t *testing.T) {
	s := newStack(t, nil)
	s.sale("phone", 5, 5)
	long := "{" + strings.Repeat(" ", 20<<10) + "}"
	for _, c := range []struct {
		path, as string
		status   int
	}{
		{"/v1/campaigns/phone/claims", asUser, 413},
		{"/v1/ws-tickets", asUser, 413},
		{"/v1/session", "Accept: */*", 413},
		{"/v1/campaigns/phone/pause", asAdmin, 200},
	} {
		if a := s.ask("POST", c.path, long, c.as); a.status != c.status {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
	}
}

// slowOperations compares until it is told to go on.
type slowOperations struct {
	httpapi.Operations
	begun, goOn chan struct{}
}

func (o slowOperations) Verify(ctx context.Context, ids ...string) (*audit.Report, error) {
	o.begun <- struct{}{}
	<-o.goOn
	return o.Operations.Verify(ctx, ids...)
}

// TestVerificationsAtATime: a node makes two comparisons at a time, repairs among them; more are told when to come back.
func TestVerificationsAtATime(t *testing.T) {
	const most = 2
	slow := slowOperations{begun: make(chan struct{}, most+1), goOn: make(chan struct{})}
	s := newStack(t, func(services *httpapi.Services) {
		slow.Operations = services.Operations
		services.Operations = slow
	})
	var all sync.WaitGroup
	for range most {
		all.Go(func() {
			if a := s.ask("GET", "/v1/verify", "", asAdmin); a.status != 200 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
		<-slow.begun
	}
	for _, c := range []struct{ method, body string }{{"GET", ""}, {"POST", `{"repair":true}`}} {
		if a := s.ask(c.method, "/v1/verify", c.body, asAdmin); a.status != 503 || a.json["reason"] != "overloaded" || a.header.Get("Retry-After") == "" {
			t.Errorf("one more %s: %d %s", c.method, a.status, a.body)
		}
	}
	close(slow.goOn)
	all.Wait()
	if a := s.ask("POST", "/v1/verify", `{"repair":true}`, asAdmin); a.status != 200 {
		t.Errorf("after the others: %d %s", a.status, a.body)
	}
}

package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
)

// The listener of the world has nothing for administrators, and their keys are
// worth nothing there: a true one is answered as a false one is, unseen.
func TestOuterListener(t *testing.T) {
	svc := newService(t)
	_, err := svc.Products.Create(t.Context(), dibs.ProductSpec{ID: "matrix", Name: "Secret product"})
	must(t, err)
	keys := &keyCount{Keys: svc.Access}
	services := httpapi.ServicesOf(svc)
	services.Keys = keys
	h, err := httpapi.NewHandlers(httpapi.Config{Services: services, JWTSecret: []byte(jwtSecret), AllowDevTokens: true})
	must(t, err)
	s := serve(t, svc, h.All)
	s.sale("matrix", 10, 1)
	ops := s.operations()
	server := httptest.NewServer(h.Outer)
	t.Cleanup(server.Close)
	outer := &stack{t: t, service: svc, url: server.URL, logs: s.logs}
	keys.checked.Store(0)
	for _, op := range ops {
		method, path, _ := strings.Cut(op, " ")
		path = strings.NewReplacer("{id}", "matrix", "{user}", "42").Replace(path)
		if op == "GET /console" {
			path = "/console/"
		}
		a := outer.ask(method, path, "", asAdmin)
		want := map[string]int{"open": 200, "user": 401, "claim": 401, "public": 401, "either": 401, "": 404}[forOthers[op]]
		if op == "GET /metrics" || op == "GET /console" || op == "POST /v1/session" {
			want = 404
		}
		if a.status == 404 && want == 200 && strings.Contains(a.body, "has no lottery") {
			// The route is there; this campaign has no lottery.
			continue
		}
		if a.status != want || strings.Contains(a.body, "Secret") {
			t.Errorf("%s: %d, want %d: %s", op, a.status, want, a.body)
		}
	}
	if a := outer.ask("POST", "/v1/campaigns/matrix/claims", "", "Authorization: Bearer dibs_no_such_key"); a.status != 401 {
		t.Errorf("a claim with a false key: %d %s", a.status, a.body)
	}
	if n := keys.checked.Load(); n != 0 {
		t.Errorf("%d keys were looked up for the world", n)
	}
	if a := s.ask("POST", "/v1/campaigns/matrix/claims", "", asAdmin); a.status != 401 || !strings.Contains(a.body, "is not a user's") {
		t.Errorf("a claim with a key, on the listener of admins: %d %s", a.status, a.body)
	}
	// No body is read there.
	if a := outer.ask("POST", "/v1/session", "{"); a.status != 404 {
		t.Errorf("a broken sign-in: %d %s", a.status, a.body)
	}
	if a := outer.ask("GET", "/v1/campaigns/matrix", ""); a.status != 200 {
		t.Errorf("a campaign: %d", a.status)
	}
	if a := outer.ask("POST", "/v1/campaigns/matrix/claims", "", asUser); a.status != 201 {
		t.Errorf("a claim: %d %s", a.status, a.body)
	}
}

func TestCrossOrigin(t *testing.T) {
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Origins: []string{"https://shop.example"}})
	must(t, err)
	s := serve(t, svc, h)
	preflight := func(origin string) http.Header {
		return s.ask("OPTIONS", "/v1/campaigns/x/claims", "", "Origin: "+origin, "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: authorization,content-type,idempotency-key").header
	}
	if h := preflight("https://shop.example"); h.Get("Access-Control-Allow-Origin") != "https://shop.example" ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "idempotency-key") || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%v", h)
	}
	if h := preflight("https://evil.example"); h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %v", h)
	}
	a := s.ask("GET", "/v1/time", "", "Origin: https://shop.example")
	if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "https://shop.example" || !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Retry-After") {
		t.Errorf("%d %v", a.status, a.header)
	}
	if a := newStack(t, nil).ask("GET", "/v1/time", "", "Origin: https://shop.example"); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("an origin is allowed that the config does not name")
	}
	for _, bad := range []string{"shop.example", "https://shop.example/", "https://*.example", "HTTPS://shop.example", "https://u@shop.example", "null", ""} {
		if _, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Origins: []string{bad}}); err == nil {
			t.Errorf("the origin %q is taken", bad)
		}
	}
}

// The bounds of a connection are set: a server without them can be held open.
func TestServerHasBounds(t *testing.T) {
	s := httpapi.NewServer("127.0.0.1:0", http.NotFoundHandler())
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("%+v", s)
	}
	if h2 := s.HTTP2; h2 == nil || h2.MaxConcurrentStreams <= 0 || h2.MaxReceiveBufferPerConnection < 65535 || h2.MaxReceiveBufferPerStream <= 0 {
		t.Errorf("HTTP/2: %+v", h2)
	}
}

// Calls whose work takes longer than an answer may take are answered all the same, and so are files that take long to
// arrive: when they are too large, and when they were imported before.
func TestLongCallsAreAnswered(t *testing.T) {
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), MaxBody: 1 << 10, MaxAdminBody: 1 << 10})
	must(t, err)
	s := serve(t, svc, h)
	const codes, once = "/v1/campaigns/spring/codes", "Idempotency-Key: once"
	for _, a := range []answer{s.ask("POST", "/v1/campaigns", emptyBody, asAdmin), s.ask("POST", codes, "A1\n", asAdmin, asCSV, once)} {
		if a.status >= 300 {
			t.Fatal(a.body)
		}
	}
	server := httptest.NewUnstartedServer(h)
	server.Config = httpapi.NewServer("", h)
	// All work takes longer.
	server.Config.WriteTimeout = time.Nanosecond
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
	}{
		{"GET", "/v1/verify", "", nil, 200},
		{"POST", "/v1/verify", `{"repair":true}`, nil, 200},
		{"POST", "/v1/verify", `{"repair":false}`, nil, 400},
		{"GET", "/v1/audit/verification", "", nil, 200},
		{"GET", "/v1/users/42", "", nil, 200},
		{"POST", codes, "A1\n", []string{asCSV, once}, 200},
		{"POST", codes, strings.Repeat("x", 2000), []string{asCSV}, 413},
	} {
		if a := s.ask(c.method, c.path, c.body, append(c.headers, asAdmin)...); a.status != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
	}
}

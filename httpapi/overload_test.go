package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/overload"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/node"
)

// slowEngine is an engine behind which claims queue: two at a time, each for a
// while.
type slowEngine struct {
	dibs.Engine
	places chan struct{}
	each   time.Duration
}

func (e *slowEngine) Claim(ctx context.Context, c dibs.EngineClaim) (dibs.Decision, error) {
	e.places <- struct{}{}
	<-time.After(e.each)
	<-e.places
	return e.Engine.Claim(ctx, c)
}

// pressers press a button until they are told to stop.
type pressers struct {
	s    *stack
	stop chan struct{}
	all  sync.WaitGroup
	// granted and shed count answers; last is a claim that was granted.
	granted, shed atomic.Int64
	last          atomic.Pointer[string]
}

func press(s *stack, n int) *pressers {
	p := &pressers{s: s, stop: make(chan struct{})}
	for i := range n {
		p.all.Go(func() {
			for k := 0; ; k++ {
				p.claim(fmt.Sprintf("u%d-%d", i, k))
				select {
				case <-p.stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	return p
}

// claim claims as a user, and checks the answer.
func (p *pressers) claim(user string) {
	a := p.s.ask("POST", "/v1/campaigns/phone/claims", "", "Authorization: Bearer dev_"+user)
	switch a.status {
	case http.StatusCreated:
		id := fmt.Sprint(a.json["id"])
		p.last.Store(&id)
		p.granted.Add(1)
	case http.StatusServiceUnavailable:
		if a.json["reason"] != "overloaded" || a.json["effect"] != "none" || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "answered in time") {
			p.s.t.Errorf("%s", a.body)
		}
		p.shed.Add(1)
	default:
		p.s.t.Errorf("%d %s", a.status, a.body)
	}
}

// waitFor waits until something is so.
func (s *stack) waitFor(what string, is func() bool) {
	s.t.Helper()
	over := time.After(2 * time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); !is(); {
		select {
		case <-tick.C:
		case <-over:
			s.t.Fatalf("two minutes later it is not so: %s", what)
		}
	}
}

// More claims come than the engine can answer: few are let in at a time, the others
// are refused at once, other routes go on, and what was granted is there. /readyz
// reports the overload, and later its end.
func TestOverload(t *testing.T) {
	guard, err := overload.New(overload.Config{Target: 50 * time.Millisecond, Max: 60, Min: 4, After: 300 * time.Millisecond})
	must(t, err)
	defer guard.Close()
	slow := &slowEngine{places: make(chan struct{}, 2), each: 20 * time.Millisecond}
	svc, _ := newServiceWith(t, func(c *node.ServiceConfig) {
		slow.Engine = c.Engine
		c.Engine, c.Guard = slow, guard
	})
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Overload: guard, Collectors: []prometheus.Collector{guard}})
	must(t, err)
	s := serve(t, svc, h)
	s.sale("phone", 1_000_000, 1)
	if a := s.ask("GET", "/readyz", ""); a.status != 200 || !strings.Contains(a.body, `"overload":{"overloaded":false,"in_flight":0,"limit":60`) {
		t.Fatalf("before: %d %s", a.status, a.body)
	}
	p := press(s, 70)
	ready := func() int { return s.ask("GET", "/readyz", "").status }
	s.waitFor("/readyz says that it is too much", func() bool { return ready() == 503 })
	a := s.ask("GET", "/readyz", "")
	if why := a.json["overload"].(map[string]any)["why"]; a.status == 503 && !strings.Contains(fmt.Sprint(why), "claims are refused") {
		t.Errorf("%s", a.body)
	}
	// Sixty at a time would take 600ms, with two at a time and 20ms for each. A server
	// that can hardly serve more than the engine, on a busy machine, is overloaded too.
	s.waitFor("what is let in is answered in time", func() bool {
		v := guard.View()
		return v.Limit <= 40 && v.LatencyMS > 0 && v.LatencyMS <= 2*v.TargetMS && v.ShedPerSecond > 0
	})
	enough := p.granted.Load() + 20
	s.waitFor("claims are granted all the while", func() bool { return p.granted.Load() > enough })
	for _, q := range [][3]string{
		{"GET", "/healthz"},
		{"GET", "/metrics"},
		{"GET", "/v1/campaigns/phone"},
		{"GET", "/v1/campaigns/phone/stats"},
		{"POST", "/v1/claims/" + *p.last.Load() + "/ship", `{"carrier":"SF","tracking_no":"1"}`},
	} {
		if a := s.ask(q[0], q[1], q[2], asAdmin); a.status != 200 {
			t.Errorf("%s %s under load: %d %s", q[0], q[1], a.status, a.body)
		}
	}
	close(p.stop)
	p.all.Wait()
	s.waitFor("/readyz is well again", func() bool { return ready() == 200 })
	p.claim("late")
	metrics := s.ask("GET", "/metrics", "").body
	for _, line := range []string{"dibs_overload_state 0", "dibs_overload_in_flight", "dibs_overload_limit", fmt.Sprintf("dibs_overload_shed_total %d", p.shed.Load())} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	stats, err := svc.Stats(t.Context(), "phone")
	must(t, err)
	if stats.Granted != p.granted.Load() || p.shed.Load() == 0 {
		t.Errorf("%d were told yes, %d are granted; %d were refused", p.granted.Load(), stats.Granted, p.shed.Load())
	}
	report, err := svc.Audit.Verify(t.Context())
	must(t, err)
	if !report.OK {
		t.Errorf("%+v", report)
	}
}

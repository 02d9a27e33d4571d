package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/node"
)

var errAway = errors.New("away")

// awayEngine and awayLedger are parts of a node that can be away.
type awayEngine struct {
	dibs.Engine
	away atomic.Bool
}

func (e *awayEngine) Ping(ctx context.Context) error {
	if e.away.Load() {
		return errAway
	}
	return e.Engine.Ping(ctx)
}

type awayLedger struct {
	live.Ledger
	database ledger.Database
	away     atomic.Bool
}

func (l *awayLedger) Ping(ctx context.Context) error {
	if l.away.Load() {
		return errAway
	}
	return l.database.Ping(ctx)
}

func (l *awayLedger) Secret(ctx context.Context, name string, size int) ([]byte, error) {
	return l.database.Secret(ctx, name, size)
}

func (l *awayLedger) Close() error { return l.database.Close() }

func (l *awayLedger) Settle(ctx context.Context, batches []live.Batch) error {
	if l.away.Load() {
		return dibs.Unavail(dibs.EffectNone, errAway)
	}
	return l.Ledger.Settle(ctx, batches)
}

// busy is an overload that is always there.
type busy struct{ memoryFull bool }

func (busy) Full() bool { return false }

func (busy) CountRefused() {}

func (b busy) View() api.OverloadView {
	return api.OverloadView{Overloaded: true, Why: "claims are refused", MemoryFull: b.memoryFull, InFlight: 7}
}

// /readyz names what is away, and not what follows from it.
func TestReadyzNamesTheCause(t *testing.T) {
	for _, c := range []struct {
		engine, ledger, ledgered, memory bool
		overloaded                       bool
		settling                         string
	}{
		{overloaded: true},
		{memory: true, overloaded: true},
		{engine: true},
		{engine: true, memory: true, overloaded: true},
		{ledger: true, overloaded: true, settling: "waits for the ledger"},
		{ledger: true, ledgered: true, settling: "waits for the ledger"},
		{engine: true, ledger: true, settling: "waits for the engine"},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			engine, ledger := &awayEngine{}, &awayLedger{}
			svc, _ := newServiceWith(t, func(cfg *node.ServiceConfig) {
				engine.Engine, ledger.Ledger, ledger.database = cfg.Engine, cfg.Ledger.Live, cfg.Ledger.Database
				cfg.Engine, cfg.Ledger.Live, cfg.Ledger.Database, cfg.Ledgered = engine, ledger, ledger, c.ledgered
			})
			h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Overload: busy{c.memory}})
			must(t, err)
			s := serve(t, svc, h)
			s.sale("phone", 5, 5)
			engine.away.Store(c.engine)
			ledger.away.Store(c.ledger)
			// At ledgered it is answered when the ledger is back.
			var claim sync.WaitGroup
			claim.Go(func() { s.ask("POST", "/v1/campaigns/phone/claims", "", asUser) })
			part := func(a answer, name, member string) string {
				return fmt.Sprint(a.json["dependencies"].(map[string]any)[name].(map[string]any)[member])
			}
			var a answer
			s.waitFor("settling fails when the ledger is away", func() bool {
				a = s.ask("GET", "/readyz", "")
				return part(a, "settling", "ok") == fmt.Sprint(!c.ledger)
			})
			over := a.json["overload"].(map[string]any)
			if a.status != 503 || over["overloaded"] != c.overloaded || (over["why"] != nil) != c.overloaded || over["in_flight"] != 7.0 {
				t.Errorf("overloaded must be %v: %d %s", c.overloaded, a.status, a.body)
			}
			if c.settling != "" && part(a, "settling", "error") != c.settling {
				t.Errorf("settling must say %q: %s", c.settling, a.body)
			}
			if part(a, "engine", "ok") != fmt.Sprint(!c.engine) || part(a, "ledger", "ok") != fmt.Sprint(!c.ledger) {
				t.Errorf("%s", a.body)
			}
			ledger.away.Store(false)
			claim.Wait()
		})
	}
}

// fakeDiagnosis finds one thing of each standing.
type fakeDiagnosis struct{}

func (fakeDiagnosis) Settings() []httpapi.SettingView {
	return []httpapi.SettingView{{Key: "admin_key", Value: "******** (24 bytes)", From: "env DIBS_ADMIN_KEY"}}
}

func (fakeDiagnosis) Examine(context.Context) []httpapi.DiagnosisView {
	return []httpapi.DiagnosisView{
		{Area: "machine", Standing: dibs.StandingWarn, Subject: "open files", Found: "1024", Wanted: "more", Remedy: "ulimit -n 65536"},
	}
}

// Settings and findings are shown to administrators without scopes alone.
func TestDiagnosis(t *testing.T) {
	s := newStack(t, nil)
	_, scoped, err := s.service.Access.AddKey(t.Context(), access.KeySpec{Name: "scoped", Role: access.RoleAdmin, Scopes: &access.Scopes{Actions: []string{"list-settings", "examine"}}})
	must(t, err)
	for path, want := range map[string]string{"/v1/settings": `"value":"******** (24 bytes)"`, "/v1/doctor": `"remedy":"ulimit -n 65536"`} {
		if a := s.ask("GET", path, "", asAdmin); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		if a := s.ask("GET", path, "", asUser); a.status != 403 {
			t.Errorf("%s as a user: %d", path, a.status)
		}
		if a := s.ask("GET", path, "", "Authorization: Bearer "+scoped); a.status != 403 {
			t.Errorf("%s with scopes: %d", path, a.status)
		}
		if a := s.ask("GET", path, ""); a.status != 401 {
			t.Errorf("%s as nobody: %d", path, a.status)
		}
	}
}

// countedHealth counts the checks of the dependencies, and lets each wait.
type countedHealth struct {
	httpapi.Operations
	asked atomic.Int64
	wait  chan struct{}
}

func (c *countedHealth) Health(ctx context.Context) api.HealthView {
	c.asked.Add(1)
	<-c.wait
	return c.Operations.Health(ctx)
}

// However many strangers ask whether the node is ready, its engine and its ledger are asked
// once for all of them.
func TestReadyzIsCheckedOnce(t *testing.T) {
	health := &countedHealth{wait: make(chan struct{})}
	s := newStack(t, func(s *httpapi.Services) { health.Operations, s.Operations = s.Operations, health })
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if a := s.ask("GET", "/readyz", ""); a.status != 200 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	s.waitFor("the first check has begun", func() bool { return health.asked.Load() == 1 })
	close(health.wait)
	all.Wait()
	// On a slow machine some come when the others have had their answer for long.
	if n := health.asked.Load(); n > 25 {
		t.Errorf("%d checks for 50 calls", n)
	}
	s.waitFor("a later call is told anew", func() bool {
		before := health.asked.Load()
		return s.ask("GET", "/readyz", "").status == 200 && health.asked.Load() > before
	})
}

// The address for users alone does not say which version of dibs runs there.
func TestVersionIsForAdministrators(t *testing.T) {
	svc := newService(t)
	h, err := httpapi.NewHandlers(httpapi.Config{Services: httpapi.ServicesOf(svc), AllowDevTokens: true, Version: "9.8.7-secret"})
	must(t, err)
	inside, outside := serve(t, svc, h.All), serve(t, svc, h.Outer)
	for _, path := range []string{"/openapi.json", "/docs", "/healthz"} {
		if a := inside.ask("GET", path, ""); a.status != 200 || !strings.Contains(a.body, "9.8.7-secret") {
			t.Errorf("administrators do not see the version at %s: %d", path, a.status)
		}
		if a := outside.ask("GET", path, ""); a.status != 200 || strings.Contains(a.body, "9.8.7") || strings.Contains(fmt.Sprint(a.header), "9.8.7") {
			t.Errorf("users see the version at %s: %d", path, a.status)
		}
	}
}

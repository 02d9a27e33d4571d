package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"

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

func (l *awayLedger) Settle(ctx context.Context, batches []dibs.Batch) error {
	if l.away.Load() {
		return dibs.Unavail(dibs.EffectNone, errAway)
	}
	return l.Ledger.Settle(ctx, batches)
}

// busy is an overload that is always there.
type busy struct{ memoryFull bool }

func (busy) Full() bool { return false }

func (busy) Refused() {}

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

package testnode

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/engine/memengine"
	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/fresh"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// ErrInjected is the cause of the failures that tests ask for.
var ErrInjected = errors.New("injected fault")

// Parts is a service on a real engine and a real ledger, whose calls a test can
// stand in between.
// Hooks may be set and taken back while the service runs.
type Parts struct {
	*testing.T
	*node.Service
	Engine *Engine
	Ledger *Ledger
}

// Ledger is a real ledger. The hook, when it is set, is called instead of
// the method, and calls it or not.
// It is safe for concurrent use, as the hook has to be.
type Ledger struct {
	live.Ledger
	OnSettle atomic.Pointer[func(ctx context.Context, batches []live.Batch) error]
}

// Settle calls the hook when there is one.
func (l *Ledger) Settle(ctx context.Context, batches []live.Batch) error {
	if f := l.OnSettle.Load(); f != nil {
		return (*f)(ctx, batches)
	}
	return l.Ledger.Settle(ctx, batches)
}

// Engine is a real engine with hooks like that of Ledger.
type Engine struct {
	dibs.Engine
	OnAdjust atomic.Pointer[func(ctx context.Context, a dibs.Adjustment) error]
	OnStats  atomic.Pointer[func(ctx context.Context, shard dibs.ShardID) (dibs.ShardStats, error)]
}

// Stats calls the hook when there is one.
func (e *Engine) Stats(ctx context.Context, shard dibs.ShardID) (dibs.ShardStats, error) {
	if f := e.OnStats.Load(); f != nil {
		return (*f)(ctx, shard)
	}
	return e.Engine.Stats(ctx, shard)
}

// Adjust calls the hook when there is one.
func (e *Engine) Adjust(ctx context.Context, a dibs.Adjustment) error {
	if f := e.OnAdjust.Load(); f != nil {
		return (*f)(ctx, a)
	}
	return e.Engine.Adjust(ctx, a)
}

// NewParts starts a service on an engine in memory and a SQLite ledger in a new
// folder, and ends it with the test.
// Engine and ledger are closed after the service, so that it can settle to its end.
func NewParts(t *testing.T, cfg node.ServiceConfig) *Parts {
	t.Helper()
	ctx := context.Background()
	dir := fresh.Folder(t, "ledger", func(dir string) error {
		l, err := sqlledger.OpenSQLite(ctx, filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
		if err != nil {
			return err
		}
		return l.Close()
	})
	ledger, err := sqlledger.OpenSQLite(ctx, filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
	must(t, err)
	t.Cleanup(func() { must(t, ledger.Close()) })
	journal, err := sqlledger.OpenSQLiteJournal(ctx, filepath.Join(dir, "journal.db"), sqlledger.Options{Migrate: true})
	must(t, err)
	engine, err := memengine.Open(ctx, memengine.Config{Store: journal, Owner: "test"})
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close(ctx)) })
	ids, err := idgen.ForClaims(ctx, ledger)
	must(t, err)
	p := &Parts{T: t, Engine: &Engine{Engine: engine}, Ledger: &Ledger{Ledger: ledger}}
	cfg.Engine, cfg.Ledger, cfg.IDs = p.Engine, ledger.Parts(), ids
	cfg.Ledger.Live = p.Ledger
	p.Service, err = node.NewService(cfg)
	must(t, err)
	must(t, p.Start(ctx))
	t.Cleanup(func() { must(t, p.Close(ctx)) })
	return p
}

// Draft drafts a sale that is open for an hour.
func (p *Parts) Draft(id string, units int64) *dibs.Campaign {
	p.Helper()
	now := time.Now()
	c, err := p.Campaigns.Create(p.Context(), dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units},
	})
	must(p, err)
	return c
}

// Publish drafts a sale and publishes it.
func (p *Parts) Publish(id string, units int64) {
	p.Helper()
	p.Draft(id, units)
	_, err := p.Campaigns.Publish(p.Context(), id)
	must(p, err)
}

// Settling has every settlement fail, or none.
// Failures have no effect, so the service tries again for as long as they last.
func (p *Parts) Settling(fails bool) {
	if !fails {
		p.Ledger.OnSettle.Store(nil)
		return
	}
	f := func(context.Context, []live.Batch) error { return dibs.Unavail(dibs.EffectNone, ErrInjected) }
	p.Ledger.OnSettle.Store(&f)
}

// Eventually waits until a condition holds; the service works behind the test.
func (p *Parts) Eventually(what string, holds func() bool) {
	p.Helper()
	eventually(p.T, what, holds)
}

// Whole waits until all is settled and sent, and verifies every promise.
// It returns the numbers that it verified.
func (p *Parts) Whole(id string) api.StatsView {
	p.Helper()
	var st api.StatsView
	p.Eventually("all is settled", func() bool {
		var err error
		if st, err = p.Stats(p.Context(), id); err != nil {
			p.Fatal(err)
		}
		waiting, err := p.Ledger.Commands(p.Context(), 0, 1)
		must(p, err)
		return st.JournalBacklog == 0 && len(waiting) == 0
	})
	report, err := p.Audit.Verify(p.Context(), id)
	must(p, err)
	if !report.OK {
		p.Errorf("a promise is broken: %+v", report)
	}
	return st
}

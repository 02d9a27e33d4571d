package node_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/fresh"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/memengine"
	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/node"
)

var errInjected = errors.New("injected fault")

// parts is a service on a real engine and a real ledger, whose calls a test can
// stand in between.
type parts struct {
	*testing.T
	*node.Service
	engine *betweenEngine
	ledger *betweenLedger
}

// betweenLedger is a real ledger. The hook, when it is set, is called instead of
// the method, and calls it or not.
type betweenLedger struct {
	live.Ledger
	settle atomic.Pointer[func(ctx context.Context, batches []dibs.Batch) error]
}

func (l *betweenLedger) Settle(ctx context.Context, batches []dibs.Batch) error {
	if f := l.settle.Load(); f != nil {
		return (*f)(ctx, batches)
	}
	return l.Ledger.Settle(ctx, batches)
}

// betweenEngine is a real engine with a hook like that of betweenLedger.
type betweenEngine struct {
	dibs.Engine
	adjust atomic.Pointer[func(ctx context.Context, a dibs.Adjustment) error]
}

func (e *betweenEngine) Adjust(ctx context.Context, a dibs.Adjustment) error {
	if f := e.adjust.Load(); f != nil {
		return (*f)(ctx, a)
	}
	return e.Engine.Adjust(ctx, a)
}

func newParts(t *testing.T, cfg node.ServiceConfig) *parts {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := fresh.Folder(t, "ledger", func(dir string) error {
		l, err := sqlledger.OpenSQLite(ctx, filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
		if err != nil {
			return err
		}
		return l.Close()
	})
	ledger, err := sqlledger.OpenSQLite(ctx, filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
	must(err)
	t.Cleanup(func() { must(ledger.Close()) })
	journal, err := sqlledger.OpenSQLiteJournal(ctx, filepath.Join(dir, "journal.db"), sqlledger.Options{Migrate: true})
	must(err)
	engine, err := memengine.Open(ctx, memengine.Config{Store: journal, Owner: "test"})
	must(err)
	t.Cleanup(func() { must(engine.Close(ctx)) })
	ids, err := idgen.ForClaims(ctx, ledger)
	must(err)
	p := &parts{T: t, engine: &betweenEngine{Engine: engine}, ledger: &betweenLedger{Ledger: ledger}}
	cfg.Engine, cfg.Ledger, cfg.IDs = p.engine, ledger.Parts(), ids
	cfg.Ledger.Live = p.ledger
	p.Service, err = node.NewService(cfg)
	must(err)
	must(p.Start(ctx))
	t.Cleanup(func() { must(p.Close(ctx)) })
	return p
}

// draft drafts a sale that is open for an hour, publish publishes one too.
func (p *parts) draft(id string, units int64) *dibs.Campaign {
	p.Helper()
	now := time.Now()
	c, err := p.Campaigns.Create(p.Context(), dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units},
	})
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func (p *parts) publish(id string, units int64) {
	p.Helper()
	p.draft(id, units)
	if _, err := p.Campaigns.Publish(p.Context(), id); err != nil {
		p.Fatal(err)
	}
}

// settling has every settlement fail, or none.
func (p *parts) settling(fails bool) {
	if !fails {
		p.ledger.settle.Store(nil)
		return
	}
	f := func(context.Context, []dibs.Batch) error { return dibs.Unavail(dibs.EffectNone, errInjected) }
	p.ledger.settle.Store(&f)
}

// eventually waits until a condition holds; the service works behind the test.
func (p *parts) eventually(what string, holds func() bool) {
	p.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			p.Fatalf("%s: not within 20s", what)
		}
	}
}

// whole waits until all is settled and sent, and verifies every promise.
func (p *parts) whole(id string) api.StatsView {
	p.Helper()
	var st api.StatsView
	p.eventually("all is settled", func() bool {
		var err error
		if st, err = p.Stats(p.Context(), id); err != nil {
			p.Fatal(err)
		}
		waiting, err := p.ledger.Commands(p.Context(), 0, 1)
		if err != nil {
			p.Fatal(err)
		}
		return st.JournalBacklog == 0 && len(waiting) == 0
	})
	report, err := p.Audit.Verify(p.Context(), id)
	if err != nil {
		p.Fatal(err)
	}
	if !report.OK {
		p.Errorf("a promise is broken: %+v", report)
	}
	return st
}

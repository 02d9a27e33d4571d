package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// opener closes at the test's end what open returns.
func opener[T any](t *testing.T, what string, open func() T, closes func(T) error) func() T {
	return func() T {
		opened := open()
		t.Cleanup(func() {
			if err := closes(opened); err != nil {
				t.Errorf("close the %s: %v", what, err)
			}
		})
		return opened
	}
}

// fixture is one test's ledger. open opens the same ledger once more, as
// another node would, and l is the one opened first. Helpers that fail end the
// test at once; checks (same, wants, refuses) let it go on, so that one run
// shows all that differs.
type fixture struct {
	t    *testing.T
	open func() ledger.Ledger
	l    ledger.Ledger
}

// ledger opens the ledger once and returns it.
func (f *fixture) ledger() ledger.Ledger {
	if f.l.Live == nil {
		f.l = f.open()
	}
	return f.l
}

// campaign returns a published sale of units that is not stored yet. Its limit
// is 5 units a user, and its window is two hours from start.
func campaign(id string, stock int64) *dibs.Campaign {
	return &dibs.Campaign{
		ID: id, Kind: dibs.Sale, Title: "Phone at noon 手机", StartsAt: start, EndsAt: start.Add(2 * time.Hour),
		State: dibs.Published, Stock: dibs.Stock{Kind: dibs.Units, Total: stock}, LimitPerUser: 5,
		LatePayment: dibs.Reclaim, Shards: 1, Version: 1, CreatedAt: start, UpdatedAt: start,
	}
}

// values returns n different items.
func values(prefix string, n int) []string {
	vs := make([]string, n)
	for i := range vs {
		vs[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return vs
}

// inShards makes a campaign one of several shards.
func inShards(shards int, c *dibs.Campaign) *dibs.Campaign {
	c.Shards = shards
	return c
}

// insert stores a campaign with a stock of units, or of the items that are given; an
// empty list of them, which is not nil, is a stock of items that has none yet.
func (f *fixture) insert(c *dibs.Campaign, items ...string) *dibs.Campaign {
	f.t.Helper()
	if items != nil {
		c.Stock = dibs.Stock{Kind: dibs.Items, Total: int64(len(items))}
	}
	f.must(f.ledger().Campaigns.InsertCampaign(f.t.Context(), c, items))
	return c
}

// loaded is insert, and then load for the campaign's first shard.
func (f *fixture) loaded(c *dibs.Campaign, items ...string) (*dibs.Campaign, *script) {
	f.t.Helper()
	f.insert(c, items...)
	_, s := f.load(c, 0)
	return c, s
}

// load loads a shard and returns the load with a script that continues it.
// Every load raises the shard's epoch; the script begins with the opening entry
// of that epoch and goes on at the settled position.
func (f *fixture) load(c *dibs.Campaign, shard uint8) (*dibs.ShardLoad, *script) {
	f.t.Helper()
	return f.loadBy(c, shard, live.Opener{})
}

// loadBy is load by an opener.
func (f *fixture) loadBy(c *dibs.Campaign, shard uint8, by live.Opener) (*dibs.ShardLoad, *script) {
	f.t.Helper()
	id := dibs.ShardID{Campaign: c.Number, Shard: shard}
	load := try(f.ledger().Live.LoadShard(f.t.Context(), c, id, by)).must(f.t)
	s := &script{c: c, shard: id, from: load.Position, last: load.Position}
	s.reopen(load.Epoch)
	return load, s
}

// loadAll loads the first shards of a campaign.
func (f *fixture) loadAll(c *dibs.Campaign, shards int) (scripts []*script) {
	f.t.Helper()
	for i := range shards {
		_, s := f.load(c, uint8(i))
		f.settle(s)
		scripts = append(scripts, s)
	}
	return scripts
}

// settle settles what the scripts hold. All of them go into one transaction. A
// script that holds nothing gives an empty batch, which must be no error.
func (f *fixture) settle(scripts ...*script) {
	f.t.Helper()
	var batches []live.Batch
	for _, s := range scripts {
		batches = append(batches, s.batch())
	}
	f.must(f.ledger().Live.Settle(f.t.Context(), batches))
}

// totals reads a shard's sums.
func (f *fixture) totals(c *dibs.Campaign, shard uint8) live.ShardTotals {
	f.t.Helper()
	got := try(f.ledger().Live.Totals(f.t.Context(), dibs.ShardID{Campaign: c.Number, Shard: shard})).must(f.t)
	return got
}

// clean audits the campaign and fails on anything amiss. It is called at the
// end of most tests: whatever a test does, claims, sums, items and stock must
// agree. An implementation that updates sums apart from their rows fails here,
// also where the test itself looks at neither.
func (f *fixture) clean(c *dibs.Campaign) *audit.CampaignAudit {
	f.t.Helper()
	a := try(f.ledger().Audit.Audit(f.t.Context(), c)).must(f.t)
	if len(a.OverLimit)+len(a.BadItems)+len(a.BadTotals)+len(a.BadLives) > 0 || a.BeyondPosition != 0 {
		f.t.Errorf("the audit of %s: over limit %v, items %v, totals %v, lives %v, beyond the position %d",
			c.ID, a.OverLimit, a.BadItems, a.BadTotals, a.BadLives, a.BeyondPosition)
	}
	// Each unit is left, held by a claim, or withheld by an entry in quarantine.
	if a.Stock != a.StockLeft+a.Held+a.Withheld || !a.SumsAgree {
		f.t.Errorf("the audit of %s: stock %d is not left %d, held %d and withheld %d; the sums agree: %t",
			c.ID, a.Stock, a.StockLeft, a.Held, a.Withheld, a.SumsAgree)
	}
	return a
}

// commands are those that wait for the engine.
func (f *fixture) commands() []live.Command {
	f.t.Helper()
	return try(f.ledger().Live.Commands(f.t.Context(), 0, 100)).must(f.t)
}

// together runs do for each number below n at the same moment, as nodes do, and
// fails the test at once on an error of any.
func (f *fixture) together(n int, do func(i int) error) {
	f.t.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	f.must(errors.Join(errs...))
}

// oneWins runs do with every ledger at the same moment. It succeeds by one of them,
// and the others find that the position has moved.
func (f *fixture) oneWins(ledgers []ledger.Ledger, do func(ledger.Ledger) error) {
	f.t.Helper()
	var won atomic.Int64
	f.together(len(ledgers), func(i int) error {
		err := do(ledgers[i])
		if errors.Is(err, dibs.ErrPositionMoved) {
			return nil
		}
		won.Add(1)
		return err
	})
	same(f.t, "those that won", won.Load(), 1)
}

// must fails the test at once on an error.
func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// tried is what a call returned.
type tried[T any] struct {
	value T
	err   error
}

// try takes what a call returns: try(call).must(t) is its value.
func try[T any](value T, err error) tried[T] { return tried[T]{value, err} }

// must fails the test at once on the call's error, and returns its value.
func (r tried[T]) must(t *testing.T) T {
	t.Helper()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.value
}

// errOf is the error alone of what a call returns.
func errOf[T any](_ T, err error) error { return err }

// wants checks that an error is the wanted one. The test goes on.
func wants(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// refuses checks that there is an error. Which error it is, is the
// implementation's choice.
func refuses(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
	}
}

// same checks that two values are alike, by their printed form. Times, pointers
// and nested values are compared as they are printed, so pointers are taken out
// by the caller.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

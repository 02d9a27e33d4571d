package livestats

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/live"
)

// world is a campaign of one shard that a test moves.
type world struct {
	mu      sync.Mutex
	stats   api.StatsView
	engine  dibs.ShardStats
	open    bool
	away    error
	ledger  live.ShardTotals
	journal []dibs.Entry
	tally   dibs.Tally
	reads   int
}

func (w *world) Get(_ context.Context, id string) (*dibs.Campaign, error) {
	if id != "c" {
		return nil, dibs.ErrNotFound
	}
	return &dibs.Campaign{ID: id, Number: 1, Shards: 1, State: dibs.Published}, nil
}

func (w *world) Now(ctx context.Context, id string) (*dibs.Campaign, error) { return w.Get(ctx, id) }

func (w *world) lock() func() { w.mu.Lock(); return w.mu.Unlock }

type serviceOf struct{ *world }

func (s serviceOf) Stats(context.Context, string) (api.StatsView, error) {
	defer s.lock()()
	s.reads++
	return s.stats, nil
}

func (w *world) refused(string) map[string]int64 {
	defer w.lock()()
	return maps.Clone(w.stats.Refused)
}

func (w *world) times() dibs.Tally {
	defer w.lock()()
	return w.tally
}

type engineOf struct{ *world }

func (e engineOf) Stats(context.Context, dibs.ShardID) (dibs.ShardStats, error) {
	defer e.lock()()
	if e.away != nil {
		return dibs.ShardStats{}, e.away
	}
	if !e.open {
		return dibs.ShardStats{}, dibs.ErrNotOpen
	}
	return e.engine, nil
}

func (e engineOf) ReadJournal(_ context.Context, _ dibs.ShardID, after dibs.Cursor, most int) ([]dibs.Entry, error) {
	defer e.lock()()
	var tail []dibs.Entry
	for _, entry := range e.journal {
		if after.Before(entry.Cursor) && len(tail) < most {
			tail = append(tail, entry)
		}
	}
	return tail, nil
}

type ledgerOf struct{ *world }

func (l ledgerOf) Totals(context.Context, dibs.ShardID) (live.ShardTotals, error) {
	defer l.lock()()
	return l.ledger, nil
}

func metersOf(w *world) *Meters {
	return New(Config{Campaigns: w, Stats: serviceOf{w}, EngineTimes: w.times, Refused: w.refused, Engine: engineOf{w}, Ledger: ledgerOf{w}})
}

// fresh is a world of a hundred units, ten of them granted, of which the ledger has seven.
func fresh() *world {
	w := &world{open: true, tally: dibs.Tally{Bounds: []int64{1e6, 10e6}, Counts: []int64{0, 0, 0}}}
	w.stats = api.StatsView{CampaignID: "c", Stock: 100, Remaining: 90, Granted: 10, Refused: map[string]int64{"sold_out": 5}, SettleLagMS: 40}
	w.engine = dibs.ShardStats{Granted: 10, Remaining: 90, Head: dibs.Cursor{Epoch: 1, Seq: 11}}
	w.ledger = live.ShardTotals{Position: dibs.Cursor{Epoch: 1, Seq: 8}, Epoch: 1, Stock: 100, StockLeft: 93}
	for seq := range uint32(12) {
		kind := dibs.EntryGrant
		if seq == 0 {
			kind = dibs.EntryOpen
		}
		w.journal = append(w.journal, dibs.Entry{Cursor: dibs.Cursor{Epoch: 1, Seq: seq + 1}, Kind: kind, Quantity: 1})
	}
	return w
}

// The three witnesses are counted apart: what the engine said a moment ago is compared with the ledger and the journal up
// to that moment, and not beyond it.
func TestSums(t *testing.T) {
	ptr := func(n int64) *int64 { return &n }
	yes, no := true, false
	for name, c := range map[string]struct {
		change func(*world)
		want   Sums
	}{
		"on its way":               {func(*world) {}, Sums{Engine: 10, Journal: ptr(10), Ledger: 7, OnTheWay: 3, Agree: &yes}},
		"settled":                  {func(w *world) { w.ledger.Position.Seq, w.ledger.StockLeft = 11, 90 }, Sums{Engine: 10, Journal: ptr(10), Ledger: 10, Agree: &yes}},
		"the engine counts more":   {func(w *world) { w.engine.Granted = 12 }, Sums{Engine: 12, Journal: ptr(10), Ledger: 7, OnTheWay: 5, Agree: &no}},
		"the journal lacks some":   {func(w *world) { w.journal = w.journal[:9] }, Sums{Engine: 10, Ledger: 7, OnTheWay: 3}},
		"the ledger is ahead":      {func(w *world) { w.ledger.Position.Seq, w.ledger.StockLeft = 12, 89 }, Sums{Engine: 10, Ledger: 11}},
		"it has left the engine":   {func(w *world) { w.open = false }, Sums{Engine: 7, Journal: ptr(7), Ledger: 7}},
		"its deployment is away":   {func(w *world) { w.away = &live.DeploymentError{Number: 2, Cause: live.ErrAway} }, Sums{Engine: 7, Ledger: 7}},
		"a withdrawal in the tail": {func(w *world) { w.journal[10].Kind = dibs.EntryAdjust; w.engine.Granted = 9 }, Sums{Engine: 9, Journal: ptr(9), Ledger: 7, OnTheWay: 2, Agree: &yes}},
	} {
		w := fresh()
		c.change(w)
		got, err := metersOf(w).sums(t.Context(), &dibs.Campaign{Number: 1, Shards: 1})
		if err != nil || got.Engine != c.want.Engine || got.Ledger != c.want.Ledger || got.OnTheWay != c.want.OnTheWay ||
			!equal(got.Journal, c.want.Journal) || !equal(got.Agree, c.want.Agree) {
			t.Errorf("%s: %+v (%v), want %+v, %v", name, got, got.Journal, c.want, err)
		}
	}
}

func equal[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

var errEnough = errors.New("enough")

// Followers of a campaign share its readings; rates are those of the last second; after the last one nothing is read.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fresh()
		m := metersOf(w)
		if err := m.Follow(t.Context(), "none", func(Measure) error { return nil }); !errors.Is(err, dibs.ErrNotFound) {
			t.Errorf("a campaign that there is not: %v", err)
		}
		var group sync.WaitGroup
		seen := make([][]Measure, 3)
		for i := range seen {
			group.Go(func() {
				err := m.Follow(t.Context(), "c", func(v Measure) error {
					seen[i] = append(seen[i], v)
					if len(seen[i]) == 3 {
						return errEnough
					}
					return nil
				})
				if !errors.Is(err, errEnough) {
					t.Error(err)
				}
			})
		}
		<-time.After(1500 * time.Millisecond)
		w.mu.Lock()
		w.stats.Granted, w.stats.Released = 25, 5
		w.stats.Refused = map[string]int64{"sold_out": 105, "paused": 1}
		w.tally = dibs.Tally{Bounds: w.tally.Bounds, Counts: []int64{98, 1, 1}}
		w.mu.Unlock()
		group.Wait()
		for _, s := range seen {
			last := s[2]
			if last.PerSecond.Granted != 20 || last.PerSecond.Refused["sold_out"] != 100 || last.PerSecond.Refused["paused"] != 1 {
				t.Errorf("rates %+v", last.PerSecond)
			}
			if last.Latency != (Latency{Count: 100, P50: 1, P90: 1, P99: 10}) {
				t.Errorf("latencies %+v", last.Latency)
			}
			if s[1].PerSecond.Granted != 0 || last.Sums.AgeMS != 40 {
				t.Errorf("%+v", s[1])
			}
		}
		w.mu.Lock()
		reads := w.reads
		w.mu.Unlock()
		if reads > 4 {
			t.Errorf("%d readings for three followers of three seconds", reads)
		}
		<-time.After(10 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.reads > reads+1 || len(m.watched) > 0 {
			t.Errorf("%d readings after the last follower left", w.reads-reads)
		}
	})
}

// A difference is told once it lasts: what goes from the ledger to the engine takes a moment.
func TestDifferencesThatLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fresh()
		w.engine.Granted = 12
		var told []*bool
		err := metersOf(w).Follow(t.Context(), "c", func(v Measure) error {
			if told = append(told, v.Sums.Agree); len(told) == believed+2 {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		if told[2] != nil || told[believed+1] == nil || *told[believed+1] {
			t.Errorf("told %v", told)
		}
	})
}

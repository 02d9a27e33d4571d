package live

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// counting is an engine of which only the counts are asked.
type counting struct {
	dibs.Engine
	shared bool
	stats  map[dibs.ShardID]dibs.ShardStats
}

func (c *counting) Shared() bool { return c.shared }

func (c *counting) Stats(_ context.Context, id dibs.ShardID) (dibs.ShardStats, error) {
	st, ok := c.stats[id]
	if !ok {
		return st, dibs.ErrNotOpen
	}
	return st, nil
}

// Settling rests while claims queue anywhere, to be decided or for their
// commit, unless the backlog has to become smaller.
func TestClaimsRush(t *testing.T) {
	idle := dibs.ShardStats{Remaining: 5, Granted: 7, Head: dibs.Cursor{Epoch: 1, Seq: 9}}
	queued, waiting := idle, idle
	queued.Queued, waiting.Waiting = 1, 1
	for name, c := range map[string]struct {
		shards  []dibs.ShardStats
		backlog int64
		// each says that every shard has the backlog, and not the first one alone.
		each bool
		want bool
	}{
		"nothing waits":                 {shards: []dibs.ShardStats{idle, idle}},
		"a commit is waited for":        {shards: []dibs.ShardStats{idle, queued}, want: true},
		"a decision is waited for":      {shards: []dibs.ShardStats{waiting, idle}, want: true},
		"a backlog of half is room":     {shards: []dibs.ShardStats{waiting}, backlog: 50, want: true},
		"a backlog of more is no room":  {shards: []dibs.ShardStats{waiting}, backlog: 51},
		"a campaign of two has no room": {shards: []dibs.ShardStats{waiting, waiting}, backlog: 26, each: true},
		"another shard has no room":     {shards: []dibs.ShardStats{idle, waiting}, backlog: 51},
	} {
		for _, shared := range []bool{false, true} {
			e := &counting{shared: shared, stats: map[dibs.ShardID]dibs.ShardStats{}}
			s := newNode(t, Config{MaxBacklog: 100, Engine: e})
			l := &Campaign{}
			for i := range c.shards {
				tr := &Shard{Id: dibs.ShardID{Campaign: 1, Shard: uint8(i)}, l: l}
				tr.Held.Store(true)
				if i == 0 || c.each {
					tr.backlog.Store(c.backlog)
				}
				// Of a shared engine what was seen last counts.
				if shared {
					tr.seen.Store(&c.shards[i])
				} else {
					e.stats[tr.Id] = c.shards[i]
				}
				l.Shards = append(l.Shards, tr)
			}
			s.Registry.lives.Store("c", l)
			if is := s.Settler.ClaimsRush(t.Context()); is != c.want {
				t.Errorf("%s, shared %v: a rush is %v", name, shared, is)
			}
		}
	}
}

// Settling rests as long as claims queue, long while little waits for it, and not
// when somebody waits for it.
func TestSettlingRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &counting{stats: map[dibs.ShardID]dibs.ShardStats{}}
		s := newNode(t, Config{MaxBacklog: 80, Engine: e})
		tr := &Shard{Id: dibs.ShardID{Campaign: 1}, l: &Campaign{}}
		tr.Held.Store(true)
		tr.l.Shards = []*Shard{tr}
		s.Registry.lives.Store("c", tr.l)
		for backlog, want := range map[int64]time.Duration{0: longRest, 10: longRest, 11: shortRest, 80: shortRest} {
			tr.backlog.Store(backlog)
			if is := s.Settler.settleRest(1); is != want {
				t.Errorf("with %d waiting it rests %d times a batch", backlog, is)
			}
		}
		tr.backlog.Store(0)
		rests := func(when string, want time.Duration) {
			began := time.Now()
			if ok := s.Settler.restInRush(t.Context(), time.Second); !ok || time.Since(began) != want {
				t.Errorf("%s it rests for %v, %v; want %v", when, time.Since(began), ok, want)
			}
		}
		rests("when nobody waits", 0)
		e.stats[tr.Id] = dibs.ShardStats{Waiting: 1}
		rests("in a rush", time.Second)
		time.AfterFunc(2*watchEvery+1, func() { tr.backlog.Store(41) })
		rests("when the backlog has no room any more", 3*watchEvery)
		tr.backlog.Store(0)
		time.AfterFunc(watchEvery/2, func() { wait.Kick(s.Settler.settleKick) })
		rests("when somebody wakes it", watchEvery/2)
		tr.wanted = dibs.Cursor{Epoch: 1, Seq: 9}
		rests("when somebody waits for a claim to be settled", 0)
	})
}

// A rush that fills a good part of a batch at once has its firstRest before any of
// it is settled; what is settled for somebody, or when no more claims queue, has
// not.
func TestARushComesBeforeSettling(t *testing.T) {
	for name, c := range map[string]struct {
		head, queued int64
		want         time.Duration
	}{
		"a rush":                      {head: 2, queued: 1, want: firstRest + 100*time.Millisecond},
		"less than a part of a batch": {head: 1, queued: 1, want: 100 * time.Millisecond},
		"no more claims queue":        {head: 2, want: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				id := dibs.ShardID{Campaign: 1}
				e := &appending{counting: counting{stats: map[dibs.ShardID]dibs.ShardStats{
					id: {Head: dibs.Cursor{Epoch: 1, Seq: uint32(c.head)}, Queued: c.queued},
				}}, appended: make(chan struct{}, 1), read: make(chan time.Time, 1)}
				s := newNode(t, Config{
					MaxBacklog: 80, SettleBatch: 2 * rushBatch, SettleEvery: 100 * time.Millisecond, Engine: e, Ledger: noTotals{},
				})
				tr := newShard(id, &Campaign{}, time.Now())
				tr.enter(1, dibs.Cursor{})
				tr.Held.Store(true)
				tr.l.Shards = []*Shard{tr}
				s.Registry.lives.Store("c", tr.l)
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				e.appended <- struct{}{}
				go s.Settler.loop(ctx)
				if took := (<-e.read).Sub(began); took != c.want {
					t.Errorf("settling begins after %v, want %v", took, c.want)
				}
				cancel()
			})
		})
	}
}

// noTotals is a ledger that does not say how far it is.
type noTotals struct{ Ledger }

func (noTotals) Totals(context.Context, dibs.ShardID) (dibs.ShardTotals, error) {
	return dibs.ShardTotals{}, dibs.ErrUnavailable
}

// appending is counting that tells of entries, and notes when they are read.
type appending struct {
	counting
	appended chan struct{}
	read     chan time.Time
}

func (a *appending) Appended() <-chan struct{} { return a.appended }

func (a *appending) ReadJournal(ctx context.Context, _ dibs.ShardID, _ dibs.Cursor, _ int) ([]dibs.Entry, error) {
	select {
	case a.read <- time.Now():
	default:
	}
	return nil, ctx.Err()
}

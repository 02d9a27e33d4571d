package live

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
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
				tr := newShard(id, &Campaign{})
				tr.progress.enter(1, dibs.Cursor{})
				tr.lease.settles.Store(true)
				tr.l.Shards = []*Shard{tr}
				s.Registry.byID.Store("c", tr.l)
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

func (noTotals) Totals(context.Context, dibs.ShardID) (ShardTotals, error) {
	return ShardTotals{}, dibs.ErrUnavailable
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

// unread is an engine with one more entry than is settled.
type unread struct{ placed }

func (unread) ReadJournal(context.Context, dibs.ShardID, dibs.Cursor, int) ([]dibs.Entry, error) {
	return []dibs.Entry{{Cursor: dibs.Cursor{Epoch: 1, Seq: 2}}}, nil
}

// fencing is a ledger in which another node has raised the epoch.
type fencing struct {
	noTotals
	settles int
}

func (l *fencing) Settle(context.Context, []Batch) error {
	l.settles++
	return dibs.ErrFenced
}

// A node that ends leaves a shard that another one has taken over to that one: this is no
// fault of the end. An engine of one process has no other node.
func TestTheEndLeavesAShardToWhoHasIt(t *testing.T) {
	for _, shared := range []bool{true, false} {
		id := dibs.ShardID{Campaign: 1}
		l, e := &fencing{}, &unread{placed{counting{shared: shared, stats: map[dibs.ShardID]dibs.ShardStats{id: {Head: dibs.Cursor{Epoch: 1, Seq: 2}}}}}}
		s := newNode(t, Config{Engine: e, Ledger: l})
		tr := newShard(id, NewCampaign(&dibs.Campaign{Number: 1}))
		tr.progress.enter(1, dibs.Cursor{Epoch: 1, Seq: 1})
		tr.lease.settles.Store(true)
		// The load of it is not of interest.
		tr.reload.opening.Store(true)
		tr.l.Shards = []*Shard{tr}
		s.Registry.byID.Store("c", tr.l)
		if err := s.Drain(t.Context()); l.settles != 1 || shared != (err == nil) {
			t.Errorf("shared %t: %v, after %d attempts to settle", shared, err, l.settles)
		}
	}
}

// Each shard comes first in its turn, and one that a caller waits for every other time.
func TestShardsTakeTurns(t *testing.T) {
	s := newNode(t, Config{Engine: &counting{}})
	l := &Campaign{}
	for i := range 3 {
		tr := newShard(dibs.ShardID{Campaign: 1, Shard: uint8(i)}, l)
		tr.progress.enter(1, dibs.Cursor{})
		tr.lease.settles.Store(true)
		l.Shards = append(l.Shards, tr)
	}
	s.Registry.byID.Store("c", l)
	firsts := func() (n [3]int) {
		for range 12 {
			all := s.Settler.inTurn()
			if len(all) != 3 {
				t.Fatalf("%d shards in a turn, want 3", len(all))
			}
			n[all[0].ID.Shard]++
		}
		return n
	}
	if n := firsts(); n != [3]int{4, 4, 4} {
		t.Errorf("the shards came first %v times in 12 turns", n)
	}
	l.Shards[2].progress.wait(dibs.Cursor{Epoch: 1, Seq: 1}, 0)
	if n := firsts(); n != [3]int{2, 2, 8} {
		t.Errorf("with the last one waited for, the shards came first %v times in 12 turns", n)
	}
}

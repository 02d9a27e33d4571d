package enginetest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

func (n *naive) Configure(_ context.Context, c *dibs.Campaign) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, s := range n.shards {
		if id.Campaign != c.Number || c.Version < s.c.Version && !n.faults.olderAccepted {
			continue
		}
		if id.Shard == 0 || !n.faults.oneShardConfigured {
			s.c = *c
		}
	}
	return nil
}

func (n *naive) Find(ctx context.Context, p dibs.Position) (g dibs.Grant, ok bool, err error) {
	err = n.with(ctx, p.ShardID, func(s *naiveShard, _ int64) error {
		if h := s.claims[p.Cursor]; h != nil {
			g, ok = s.grantOf(h), true
		}
		return nil
	})
	if errors.Is(err, dibs.ErrNotOpen) {
		err = nil
	}
	return g, ok, err
}

func (n *naive) HoldingsOf(_ context.Context, user string) ([]dibs.Grant, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []dibs.Grant
	for _, s := range n.shards {
		for _, h := range s.users[user] {
			all = append(all, s.grantOf(h))
		}
	}
	return all, nil
}

func (n *naive) Stats(ctx context.Context, id dibs.ShardID) (st dibs.ShardStats, err error) {
	err = n.with(ctx, id, func(s *naiveShard, _ int64) error {
		st = dibs.ShardStats{Remaining: s.left, Head: s.head, HeadAt: s.headAt, Version: s.c.Version, Settled: s.settled, Moved: s.moved, Uncounted: n.uncounted(s)}
		if n.faults.tornStats {
			n.yield()
		}
		st.Granted = s.granted
		return nil
	})
	return st, err
}

func (n *naive) Retire(_ context.Context, id dibs.ShardID) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.shards, id)
	if n.faults.retiredForgotten {
		n.counted[id] = &naiveShard{id: id}
	}
	return nil
}

func (n *naive) Halt(ctx context.Context, id dibs.ShardID) error { return n.Retire(ctx, id) }

func (n *naive) Server(context.Context, dibs.ShardID) (string, error) { return "", nil }
func (n *naive) Servers(context.Context) (map[string]string, error)   { return nil, nil }

func (n *naive) Shared() bool       { return false }
func (n *naive) MaxShards() int     { return dibs.MaxShards }
func (n *naive) Durability() string { return "durable" }

func (n *naive) Ping(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return dibs.Unavail(dibs.EffectNone, nil)
	}
	return nil
}

func (n *naive) Close(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return nil
}

func (n *naive) ReadJournal(_ context.Context, id dibs.ShardID, after dibs.Cursor, most int) ([]dibs.Entry, error) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	var page []dibs.Entry
	for _, e := range n.disk.journals[id] {
		if after.Before(e.Cursor) && len(page) < most {
			e.Items = slices.Clone(e.Items)
			page = append(page, e)
		}
	}
	return page, nil
}

// TrimJournal notes where the journal ends before it drops entries, so that JournalEnd
// knows it when none is left.
func (n *naive) TrimJournal(_ context.Context, id dibs.ShardID, upTo dibs.Cursor, before time.Time) error {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.faults.trimsTooMuch {
		upTo.Seq++
	}
	if entries := n.disk.journals[id]; len(entries) > 0 && !n.faults.forgetsEnds {
		n.disk.ends[id] = entries[len(entries)-1].Cursor
	}
	n.disk.journals[id] = slices.DeleteFunc(n.disk.journals[id], func(e dibs.Entry) bool {
		return !upTo.Before(e.Cursor) && time.UnixMilli(e.At).Before(before)
	})
	return nil
}

func (n *naive) JournalEnd(_ context.Context, id dibs.ShardID) (dibs.Cursor, error) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	entries := n.disk.journals[id]
	if len(entries) == 0 {
		return n.disk.ends[id], nil
	}
	return entries[len(entries)-1].Cursor, nil
}

func (n *naive) JournalShards(context.Context) ([]dibs.ShardID, error) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	var all []dibs.ShardID
	for id, entries := range n.disk.journals {
		if len(entries) > 0 {
			all = append(all, id)
		}
	}
	return all, nil
}

// Lease is granted always: no other process has this disk.
func (n *naive) Lease(ctx context.Context, id dibs.ShardID, settled dibs.Cursor) (bool, error) {
	err := n.with(ctx, id, func(s *naiveShard, _ int64) error {
		if settled != (dibs.Cursor{}) {
			s.settled = settled
		}
		return nil
	})
	if errors.Is(err, dibs.ErrNotOpen) {
		err = nil
	}
	return true, err
}

func (n *naive) Appended() <-chan struct{} { return n.appended }

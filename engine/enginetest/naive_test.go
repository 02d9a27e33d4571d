package enginetest_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/enginetest"
)

// disk is what survives a naive engine: the journals, and in ends where they ended
// when they were trimmed.
type disk struct {
	mu       sync.Mutex
	journals map[dibs.ShardID][]dibs.Entry
	// ends are where journals ended when they were trimmed.
	ends map[dibs.ShardID]dibs.Cursor
}

// naiveState opens naive engines on a disk.
type naiveState struct {
	now    func() time.Time
	faults faults
	disk   *disk
	last   *naive
}

// naiveFactory makes naive engines with planted faults.
func naiveFactory(f faults) enginetest.Factory {
	return enginetest.Factory{New: func(_ testing.TB, now func() time.Time) enginetest.State {
		return &naiveState{now: now, faults: f, disk: &disk{
			journals: map[dibs.ShardID][]dibs.Entry{}, ends: map[dibs.ShardID]dibs.Cursor{},
		}}
	}}
}

func (s *naiveState) Open(context.Context) (dibs.Engine, error) {
	s.last = &naive{
		now: s.now, faults: s.faults, disk: s.disk,
		shards: map[dibs.ShardID]*naiveShard{}, counted: map[dibs.ShardID]*naiveShard{}, appended: make(chan struct{}, 1), store: naiveStore{takenTwice: s.faults.takenTwice},
	}
	return s.last, nil
}

// The new engine has maps of its own, and so the old one can decide nothing more; the
// fault lostYes takes the newest entry off each journal.
func (s *naiveState) Kill(context.Context) error {
	s.last.mu.Lock()
	defer s.last.mu.Unlock()
	s.last.closed = true
	if s.faults.lostYes {
		for shard, entries := range s.disk.journals {
			s.disk.journals[shard] = entries[:max(1, len(entries)-1)]
		}
	}
	return nil
}

// naive is an engine in the plainest words: one mutex around everything, and
// a journal that is durable when it was appended to. It is written apart from
// the suite's model, so that each checks the other, and has the places where
// faults can be planted.
type naive struct {
	now      func() time.Time
	faults   faults
	disk     *disk
	appended chan struct{}
	store    naiveStore

	mu     sync.Mutex
	closed bool
	shards map[dibs.ShardID]*naiveShard
	// counted are the shards whose claims count for the limit per product, retired ones
	// too.
	counted map[dibs.ShardID]*naiveShard
}

// naiveShard is a shard as it is decided on, guarded by the engine's mutex. left
// counts units or items that can be granted, free lists the items in granting order,
// values has all items by number. claims has every claim by its place, users the same
// claims by their user, oldest first. granted is the units held and not released.
type naiveShard struct {
	c       dibs.Campaign
	id      dibs.ShardID
	head    dibs.Cursor
	headAt  int64
	left    int64
	values  []string
	free    []uint32
	claims  map[dibs.Cursor]*dibs.Holding
	users   map[string][]*dibs.Holding
	refs    map[string]bool
	granted int64
	moved   int64
	settled dibs.Cursor
	// sharing are the campaigns that share the limit per product.
	sharing []uint32
	// soldOut, inFlight and counted belong to planted faults.
	soldOut  bool
	inFlight int
	counted  map[string]int64
}

var _ dibs.Engine = (*naive)(nil)

// with runs f on an open shard, under the mutex.
func (n *naive) with(ctx context.Context, id dibs.ShardID, f func(s *naiveShard, now int64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return dibs.Unavail(dibs.EffectNone, nil)
	}
	s := n.shards[id]
	if s == nil {
		return dibs.ErrNotOpen
	}
	if n.faults.forgetful && rand.IntN(16) == 0 {
		// The answer is lost: on the way there, or on the way back.
		if rand.IntN(2) == 0 {
			return dibs.Unavail(dibs.EffectUnknown, f(s, n.now().UnixMilli()))
		}
		return dibs.Unavail(dibs.EffectUnknown, nil)
	}
	return f(s, n.now().UnixMilli())
}

// write appends an entry to the journal, at the next place.
func (n *naive) write(s *naiveShard, e dibs.Entry) dibs.Cursor {
	s.head.Seq++
	if n.faults.seqGap && s.head.Seq%5 == 0 {
		s.head.Seq++
	}
	e.Cursor = s.head
	s.headAt = e.At
	if !n.faults.entryMissing || s.head.Seq%4 != 0 {
		n.disk.mu.Lock()
		n.disk.journals[s.id] = append(n.disk.journals[s.id], e)
		n.disk.mu.Unlock()
	}
	if !n.faults.noSignal {
		select {
		case n.appended <- struct{}{}:
		default:
		}
	}
	return s.head
}

// Open builds the shard from the load, then applies the journal's tail after the
// load's position, then writes the opening entry that names the last place.
func (n *naive) Open(_ context.Context, c *dibs.Campaign, id dibs.ShardID, load *dibs.ShardLoad) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &naiveShard{
		c: *c, id: id, left: load.StockLeft, values: slices.Clone(load.Items), free: slices.Clone(load.FreeItems),
		claims: map[dibs.Cursor]*dibs.Holding{}, users: map[string][]*dibs.Holding{}, refs: map[string]bool{},
		counted: map[string]int64{}, moved: load.Moved, sharing: load.Sharing,
	}
	if n.faults.movedForgotten {
		s.moved = 0
	}
	for _, ref := range load.Refs {
		s.refs[ref] = true
	}
	for i := range load.Holdings {
		s.hold(&load.Holdings[i])
	}
	last := load.Position
	for _, e := range n.disk.journals[id] {
		if last.Before(e.Cursor) {
			last = e.Cursor
			if !n.faults.tailIgnored {
				n.redo(s, &e)
			}
		}
	}
	s.head = dibs.Cursor{Epoch: load.Epoch}
	n.write(s, dibs.Entry{Kind: dibs.EntryOpen, At: n.now().UnixMilli(), Prev: last})
	n.shards[id] = s
	if old := n.counted[id]; old != nil && n.faults.reopenedTwice {
		// Beside what it was, under a number that no campaign has.
		n.counted[dibs.ShardID{Campaign: id.Campaign + uint32(s.head.Epoch)<<16, Shard: id.Shard}] = old
	}
	n.counted[id] = s
	return nil
}

// redo applies an entry that the ledger has not settled.
func (n *naive) redo(s *naiveShard, e *dibs.Entry) {
	switch {
	case e.Kind == dibs.EntryGrant:
		s.left -= e.Quantity
		s.hold(&dibs.Holding{
			Cursor: e.Cursor, UserID: e.UserID, Key: e.Key, Quantity: e.Quantity, At: e.At, PayBy: e.PayBy, Items: e.Items,
		})
	case e.Kind == dibs.EntryAdjust && e.Quantity < 0 && s.refs[e.Ref] && !n.faults.takenAgain:
		// The ledger has settled it ahead.
		return
	case e.Kind == dibs.EntryAdjust && e.Quantity < 0:
		s.left += e.Quantity
		s.refs[e.Ref] = !n.faults.refForgotten
		if _, ok := dibs.TransferOf(e.Ref); ok && !n.faults.tailMoveForgotten {
			s.moved -= e.Quantity
		}
	case e.Kind == dibs.EntryAdjust && n.faults.lostRestockKnown:
		s.refs[e.Ref] = true
		return
	case e.Kind == dibs.EntryRelease && n.faults.releaseCountedTwice:
		s.left += e.Quantity
		return
	default:
		// What else moves stock had entered the ledger before.
		return
	}
	s.take(e.Items)
}

// hold adds a claim that was loaded, redone or granted just now.
func (s *naiveShard) hold(h *dibs.Holding) {
	c := *h
	s.claims[c.Cursor] = &c
	s.users[c.UserID] = append(s.users[c.UserID], &c)
	if !c.Released {
		s.granted += c.Quantity
		s.counted[c.UserID] += c.Quantity
	}
}

// take removes items from the free ones.
func (s *naiveShard) take(items []uint32) {
	s.free = slices.DeleteFunc(s.free, func(n uint32) bool { return slices.Contains(items, n) })
}

// grantOf is a claim as an answer shows it.
func (s *naiveShard) grantOf(h *dibs.Holding) dibs.Grant {
	g := dibs.Grant{
		Position: dibs.Position{ShardID: s.id, Cursor: h.Cursor}, UserID: h.UserID, Quantity: h.Quantity,
		At: h.At, PayBy: h.PayBy, Released: h.Released,
	}
	for _, n := range h.Items {
		g.Items = append(g.Items, s.values[n])
	}
	return g
}

// TestNaive runs the suite on the naive engine.
func TestNaive(t *testing.T) {
	enginetest.Run(t, naiveFactory(faults{}))
}

// TestNaiveShards runs the suite on the naive engine with campaigns of several shards.
func TestNaiveShards(t *testing.T) {
	f := naiveFactory(faults{})
	f.Shards = 5
	enginetest.Run(t, f)
}

// TestOwnClock runs the suite on an engine whose clock cannot be set.
func TestOwnClock(t *testing.T) {
	f := naiveFactory(faults{})
	f.OwnClock = true
	enginetest.Run(t, f)
}

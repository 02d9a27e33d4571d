package memengine

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/dibs-dev/dibs"
)

// tailPage is how many journal entries are read at a time while opening.
// It bounds the memory of a load, not its length: pages are read until none is left.
const tailPage = 1 << 16

// Open makes a shard claimable; see dibs.Engine. It adds the journal's tail
// to the load, then begins the load's epoch with an entry of its own: when
// that is durable, the shard is open.
//
// The caller lets one Open of a shard run at a time. Until it returns nil, claims find
// the shard not open; after an error it may be repeated with a newer load. ErrGap and
// ErrCorrupt mean that load and journal are not of one history, or that the load is
// outdated: only another load can help.
func (e *Engine) Open(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, load *dibs.ShardLoad) error {
	if err := e.closed.Load(); err != nil {
		return *err
	}
	of := e.enter(c, id)
	if err := e.openOf(ctx, c, id, load, of); err != nil {
		e.leave(of)
		return err
	}
	return nil
}

// openOf is Open with the product that the campaign shares a limit of; nil for none.
func (e *Engine) openOf(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, load *dibs.ShardLoad, of *product) error {
	if err := e.shut(ctx, id); err != nil {
		return err
	}
	s := newShard(id, load, of)
	s.def.Store(define(c))
	s.remaining.Store(load.StockLeft)
	for _, ref := range load.Refs {
		s.refs[ref] = struct{}{}
	}
	for i := range load.Holdings {
		h := &load.Holdings[i]
		s.hold(maphash.String(e.seed, h.UserID), h)
	}
	free := make(map[uint32]bool)
	last, err := e.replay(ctx, s, load, free)
	if err != nil {
		return fmt.Errorf("memengine: opening shard %s: %w", id, err)
	}
	s.free = slices.DeleteFunc(slices.Clone(load.FreeItems), func(n uint32) bool { return free[n] })
	if left := s.remaining.Load(); left < 0 || c.HasItems() && left != int64(len(s.free)) {
		return fmt.Errorf("memengine: opening shard %s: %d left, %d free items: %w", id, left, len(s.free), dibs.ErrCorrupt)
	}
	// Another load has opened a later epoch than this one read from the ledger.
	if last.Epoch >= load.Epoch {
		return fmt.Errorf("memengine: opening shard %s in epoch %d after %s: %w", id, load.Epoch, last, dibs.ErrGap)
	}
	return e.begin(ctx, s, last, load.Sharing)
}

// shut takes a shard that is open out, after what it decided is durable: the
// one that replaces it has to find all of it in the journal.
func (e *Engine) shut(ctx context.Context, id dibs.ShardID) error {
	v, ok := e.shards.LoadAndDelete(id)
	if !ok {
		return nil
	}
	// Claims that found the shard before it was taken out are refused by replaced.
	s := v.(*shard)
	s.mu.Lock()
	s.replaced = true
	waiting := []*batch{s.inFlight, s.cur}
	s.mu.Unlock()
	for _, b := range waiting {
		// Whether they were stored or undone, they are over.
		// With ctx over, nobody knows whether the batch is done, so that no other shard
		// takes its place.
		if err := e.wait(ctx, b); err != nil && ctx.Err() != nil {
			return err
		}
	}
	e.leave(s.product)
	return nil
}

// begin writes the epoch's first entry and publishes the shard.
func (e *Engine) begin(ctx context.Context, s *shard, last dibs.Cursor, sharing []uint32) error {
	s.durable = last
	s.mu.Lock()
	if err := s.canAppend(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.append(&dibs.Entry{Kind: dibs.EntryOpen, At: e.now().UnixMilli(), Prev: last})
	wait := s.cur
	e.unlock(s)
	if err := e.wait(ctx, wait); err != nil {
		return err
	}
	// It is published last: no claim is decided in an epoch whose beginning may be
	// lost.
	if s.product != nil {
		s.product.count(s, sharing)
	}
	e.shards.Store(s.id, s)
	return nil
}

// replay adds the journal's entries after the load's position and returns the
// place of the last one. taken collects the items that they granted or
// withdrew.
func (e *Engine) replay(ctx context.Context, s *shard, load *dibs.ShardLoad, taken map[uint32]bool) (dibs.Cursor, error) {
	last := load.Position
	for {
		entries, err := e.readEntries(ctx, s.id, last, tailPage)
		if err != nil {
			return last, err
		}
		if len(entries) == 0 {
			return last, nil
		}
		for i := range entries {
			en := &entries[i]
			if !dibs.Continues(last, en) {
				return last, fmt.Errorf("entry %s after %s: %w", en.Cursor, last, dibs.ErrGap)
			}
			s.redo(en, maphash.String(e.seed, en.UserID), taken)
			last = en.Cursor
		}
	}
}

// redo applies one entry of the tail. Moves that the ledger makes before the engine
// (releases, restocks), and withdrawals that it settled ahead, are in the load already.
func (s *shard) redo(en *dibs.Entry, hash uint64, taken map[uint32]bool) {
	switch en.Kind {
	case dibs.EntryGrant:
		s.hold(hash, &dibs.Holding{
			Cursor: en.Cursor, UserID: en.UserID, Key: en.Key, Quantity: en.Quantity, At: en.At, Items: en.Items,
		})
		s.remaining.Add(-en.Quantity)
	case dibs.EntryAdjust:
		if en.Quantity > 0 {
			// The ledger has counted it. One that was restored from before has it sent
			// again, under the same name.
			return
		}
		if _, settled := s.refs[en.Ref]; settled {
			return
		}
		s.refs[en.Ref] = struct{}{}
		s.remaining.Add(en.Quantity)
	default:
		return
	}
	for _, n := range en.Items {
		taken[n] = true
	}
}

// hold adds a claim that was granted before.
func (s *shard) hold(hash uint64, h *dibs.Holding) {
	q := uint32(h.Quantity)
	r := record{key: h.Key, at: h.At, seq: h.Seq, epoch: h.Epoch, quantity: q, held: q, released: h.Released}
	if h.Released {
		r.held = 0
	} else {
		s.granted += h.Quantity
	}
	if s.def.Load().hasItems {
		s.h.keepItems(h.Items)
	}
	s.h.add(hash, h.UserID, s.h.find(hash, h.UserID), r)
}

package ledgertest

import (
	"slices"

	"github.com/dibs-dev/dibs"
)

// script writes the journal of one shard, as an engine would.
type script struct {
	c     *dibs.Campaign
	shard dibs.ShardID
	// from is the position that the next batch continues, last the place of the
	// last entry.
	from, last dibs.Cursor
	// fence is the epoch that was opened last.
	fence   uint16
	entries []dibs.Entry
}

// next adds an entry at the next place and returns the place.
func (s *script) next(e dibs.Entry) dibs.Cursor {
	if e.Kind == dibs.EntryOpen {
		e.Seq = 1
	} else {
		e.Cursor = dibs.Cursor{Epoch: s.last.Epoch, Seq: s.last.Seq + 1}
	}
	e.At = start.UnixMilli() + int64(e.Seq)
	s.entries = append(s.entries, e)
	s.last = e.Cursor
	return e.Cursor
}

// reopen begins an epoch.
func (s *script) reopen(epoch uint16) {
	e := dibs.Entry{Kind: dibs.EntryOpen, Prev: s.last}
	e.Epoch, s.fence = epoch, epoch
	s.next(e)
}

// grant grants units, or the items given.
func (s *script) grant(user string, quantity int64, items ...uint32) dibs.Position {
	e := dibs.Entry{Kind: dibs.EntryGrant, UserID: user, Quantity: quantity, Items: items}
	e.Key = uint64(1)<<63 | uint64(s.last.Seq+1)
	if s.c.PayWithin > 0 {
		e.PayBy = start.Add(s.c.PayWithin).UnixMilli()
	}
	return dibs.Position{ShardID: s.shard, Cursor: s.next(e)}
}

// release records that a claim's stock came back to the engine.
func (s *script) release(target dibs.Cursor, quantity int64) {
	s.next(dibs.Entry{Kind: dibs.EntryRelease, Quantity: quantity, Target: target})
}

// adjust records a change of the stock.
func (s *script) adjust(ref string, delta int64, items ...uint32) {
	s.next(dibs.Entry{Kind: dibs.EntryAdjust, Ref: ref, Quantity: delta, Items: items})
}

// batch returns what was written since the last batch.
func (s *script) batch() dibs.Batch {
	b := s.peek()
	s.from, s.entries = s.last, nil
	return b
}

// peek returns the batch without ending it.
func (s *script) peek() dibs.Batch {
	return dibs.Batch{Campaign: s.c, Shard: s.shard, Fence: s.fence, From: s.from, To: s.last, Entries: slices.Clone(s.entries)}
}

package ledgertest

import (
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// start is when the tests' clocks begin.
var start = time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)

// at is a time so many seconds after the start.
func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// script writes the journal of one shard, as an engine would. grant, release,
// adjust and reopen add entries, each at the place after the last; batch takes
// what was added as a run that Settle accepts. A script decides nothing: it can
// oversell, or grant an item twice, which is how tests plant what a ledger must
// refuse.
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

// next adds an entry at the next place and returns the place. An opening keeps
// the epoch that it carries. Times are start plus as many milliseconds as the
// entry's seq, so the time of each claim is known and differs.
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

// reopen begins an epoch. The fence of later batches is this epoch. Prev names
// the last entry before it.
func (s *script) reopen(epoch uint16) {
	e := dibs.Entry{Kind: dibs.EntryOpen, Prev: s.last}
	e.Epoch, s.fence = epoch, epoch
	s.next(e)
}

// grant grants units, or the items given. The key differs for each place and
// has its highest bit set: databases without unsigned numbers must keep all 64
// bits.
func (s *script) grant(user string, quantity int64, items ...uint32) dibs.Position {
	e := dibs.Entry{Kind: dibs.EntryGrant, UserID: user, Quantity: quantity, Items: items}
	e.Key = uint64(1)<<63 | uint64(s.last.Seq+1)
	if s.c.PayWithin > 0 {
		e.PayBy = start.Add(s.c.PayWithin).UnixMilli()
	}
	return dibs.Position{ShardID: s.shard, Cursor: s.next(e)}
}

// referred grants units to a user whose request had a reference.
func (s *script) referred(user string, quantity int64, reference string) dibs.Position {
	at := s.grant(user, quantity)
	s.entries[len(s.entries)-1].Reference = reference
	return at
}

// release records that a claim's stock came back to the engine. The ledger must
// have released the claim before.
func (s *script) release(target dibs.Cursor, quantity int64) {
	s.next(dibs.Entry{Kind: dibs.EntryRelease, Quantity: quantity, Target: target})
}

// adjust records a change of the stock. A positive delta is a restock, which
// the ledger counted before; a negative one is a withdrawal, which takes effect
// by settling.
func (s *script) adjust(ref string, delta int64, items ...uint32) {
	s.next(dibs.Entry{Kind: dibs.EntryAdjust, Ref: ref, Quantity: delta, Items: items})
}

// batch returns what was written since the last batch.
func (s *script) batch() live.Batch {
	b := s.peek()
	s.from, s.entries = s.last, nil
	return b
}

// peek returns the batch without ending it. The script still holds the entries,
// so that a test can send them, or spoil a copy, and settle the right ones
// later.
func (s *script) peek() live.Batch {
	return live.Batch{Campaign: s.c, Shard: s.shard, Fence: s.fence, From: s.from, To: s.last, Entries: slices.Clone(s.entries)}
}

package dibs

import (
	"context"
	"time"
)

// EntryKind is what a journal entry records.
type EntryKind uint8

// The entry kinds.
const (
	// EntryOpen begins an epoch: the shard was loaded from the ledger. Prev is
	// the last entry before it, so that a reader knows nothing is missing.
	EntryOpen EntryKind = 1 + iota
	// EntryGrant records a granted claim.
	EntryGrant
	// EntryRelease records that a claim's stock came back to the engine. The
	// ledger had moved before; settling it moves nothing but the position.
	EntryRelease
	// EntryAdjust records a change of the stock. A positive one had entered the
	// ledger before; a negative one enters it by settling.
	EntryAdjust
	// EntryUnreadable stands at a place of which nobody knows any more what was
	// recorded there. The ledger sets it aside; it moves nothing but the position.
	EntryUnreadable
)

// Entry is one record of a shard's journal.
type Entry struct {
	Cursor
	Kind EntryKind
	// At is when the engine decided, in milliseconds since 1970, by its clock.
	At int64
	// UserID, Key and PayBy belong to a grant: who, the hash of the request's
	// key (0 for none), and the deadline in milliseconds since 1970 (0 for none).
	UserID string
	Key    uint64
	PayBy  int64
	// Reference is what the caller gave with a granted request; empty for none, and in
	// entries of versions that did not keep it.
	Reference string
	// Quantity is the units granted or released, or the signed adjustment.
	Quantity int64
	// Items are the numbers of the items granted, released or adjusted.
	Items []uint32
	// Target is the released claim's place.
	Target Cursor
	// Ref is the adjustment's command, for recognising a repeat.
	Ref string
	// Prev is, in EntryOpen, the last entry of the epochs before.
	Prev Cursor
}

// ServerLife is how long after it was last seen a server of the engine counts as
// alive: what it holds is not given to another server that knows less of it.
const ServerLife = 10 * time.Second

// LeaseTime is how long a Lease lasts that is not renewed.
const LeaseTime = 3 * time.Second

// Journal is the engine's ordered, durable log of what it granted and
// released. Within a shard, entries are gap-free: seq counts from 1 in every
// epoch, and every epoch begins with EntryOpen.
//
// All methods are safe for concurrent use.
type Journal interface {
	// ReadJournal returns up to max entries after a place, in order; none when
	// there are no more. Only durable entries are returned, of shards that are
	// not open too. Errors: ErrCorrupt, or an *Error of Unavailable.
	ReadJournal(ctx context.Context, shard ShardID, after Cursor, max int) ([]Entry, error)
	// TrimJournal drops entries up to and including a place that were decided
	// before a time. The caller has settled them.
	TrimJournal(ctx context.Context, shard ShardID, upTo Cursor, before time.Time) error
	// JournalEnd returns the place of a shard's last durable entry, also when that
	// was trimmed, or the shard was retired, a while ago: a ledger that was restored
	// from an old backup is known by it. Zero for none.
	JournalEnd(ctx context.Context, shard ShardID) (Cursor, error)
	// JournalShards lists the shards that have entries, and those of which a
	// shared engine holds anything else.
	JournalShards(ctx context.Context) ([]ShardID, error)
	// Lease makes this process the one that settles a shard, and that loads it
	// when it is not open, for LeaseTime from now; false while another one is.
	// The holder calls again to stay it, and tells how far the ledger is; the zero
	// Cursor leaves what was told before. It saves double work: what is correct never
	// depends on it.
	Lease(ctx context.Context, shard ShardID, settled Cursor) (bool, error)
	// Appended is signalled, at least once, after entries became durable; those
	// of other processes are found by looking.
	Appended() <-chan struct{}
}

// JournalRow is one group commit's entries of one shard, as the embedded
// engine stores them. Payload is the engine's own encoding.
type JournalRow struct {
	Shard   ShardID
	Epoch   uint16
	First   uint32
	Last    uint32
	At      int64
	Payload []byte
}

// JournalStore is the durable table behind the embedded engine's journal. One
// process owns it at a time, by a lease with a generation that every append
// checks.
//
// Append is called by one goroutine at a time; the others from any.
type JournalStore interface {
	// Acquire takes the lease for owner (a name for people) and returns its
	// generation. ErrOwned, naming the owner, when another process has it;
	// the lease of a killed process is free at once.
	Acquire(ctx context.Context, owner string) (generation int64, err error)
	// Append stores rows in one transaction and returns when they are durable.
	// ErrFenced when the generation is no longer the lease's: nothing was
	// stored. After any other error the effect is unknown: read Last.
	Append(ctx context.Context, generation int64, rows []JournalRow) error
	// Reopen drops connections whose state is unknown after a failed append
	// and opens new ones.
	Reopen(ctx context.Context) error
	// Last returns the place of a shard's last entry, trimmed or not; zero for none.
	Last(ctx context.Context, shard ShardID) (Cursor, error)
	// ReadRows returns rows that hold entries after a place, in order. It stops
	// after the row with which they hold maxEntries entries or more.
	ReadRows(ctx context.Context, shard ShardID, after Cursor, maxEntries int) ([]JournalRow, error)
	// TrimRows deletes rows that end at or before upTo and were stored before a
	// time in milliseconds since 1970.
	TrimRows(ctx context.Context, shard ShardID, upTo Cursor, beforeMS int64) error
	// Shards lists the shards that have rows.
	Shards(ctx context.Context) ([]ShardID, error)
	// Close releases the lease and the connections.
	Close() error
}

// Continues reports whether e is the journal entry that follows a place: the
// next one of its epoch, or the one that opens a later epoch and names the
// place as its predecessor.
func Continues(after Cursor, e *Entry) bool {
	if e.Epoch == after.Epoch {
		return e.Seq == after.Seq+1
	}
	return e.Epoch > after.Epoch && e.Seq == 1 && e.Kind == EntryOpen && e.Prev == after
}

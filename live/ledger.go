package live

import (
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
)

// The types that this package and a ledger exchange. The interface Ledger is beside the
// registry.

// Command is an instruction to the engine that waits in the outbox: to adjust
// a stock, or to take claims back.
type Command struct {
	// ID orders commands.
	ID int64
	// Shard is the one that the command is for.
	Shard dibs.ShardID
	// Adjust is the adjustment, when Releases is empty.
	Adjust   dibs.Adjustment
	Releases []dibs.Release
}

// Epoch is the shard's epoch when the command was written.
func (c *Command) Epoch() uint16 {
	if len(c.Releases) > 0 {
		return c.Releases[0].Epoch
	}
	return c.Adjust.Epoch
}

// CampaignVersion names a campaign's definition as it is at a time.
type CampaignVersion struct {
	Number  uint32
	Version int64
}

// Opener says on which server a shard's next epoch begins, and what that server
// knows of the epochs before.
type Opener struct {
	// Server names the run of the server that will hold the shard; empty for an
	// engine inside of the process.
	Server string
	// Deployment is the number of the deployment that the server is of; 0 for an engine
	// that has none.
	Deployment int
	// Epoch is that of the last entry of the server's journal, 0 for none. The next
	// epoch is beyond it.
	Epoch uint16
}

// Batch is a run of one shard's journal entries to settle.
type Batch struct {
	Campaign *dibs.Campaign
	Shard    dibs.ShardID
	// Fence is the shard's epoch in the ledger, read before the entries were. The
	// ledger takes the batch only while the epoch stands: entries of a history that
	// was given up since would stand where those of the next one belong.
	Fence uint16
	// From is the committed position that the run continues; To is the place of
	// its last entry.
	From, To dibs.Cursor
	Entries  []dibs.Entry
	// UnknownTransfers says that units may have arrived by transfers that the ledger does not know.
	UnknownTransfers bool
}

// ErrNotLeft refuses a batch with units that have arrived from another shard, and have not
// left it as far as the ledger knows: it went back in time. The other shard's journal has
// the withdrawal, and its settling brings the ledger's half.
var ErrNotLeft = errors.New("dibs: units have arrived at a shard that the ledger has not seen leaving another one")

// UpTo is the batch's first n entries.
func (b *Batch) UpTo(n int) Batch {
	part := *b
	part.Entries = b.Entries[:n]
	part.To = part.Entries[n-1].Cursor
	return part
}

// ShardTotals are the ledger's sums of one shard, in units.
type ShardTotals struct {
	// Position is the committed position.
	Position dibs.Cursor
	// Epoch is the highest epoch opened.
	Epoch     uint16
	Stock     int64
	StockLeft int64
	Pending   int64
	Confirmed int64
	Released  int64
	Refunded  int64
}

// Quarantined is a journal entry that the ledger could not take: a grant, or a
// withdrawal. It counts as if it were settled, as far as there is stock.
type Quarantined struct {
	Shard dibs.ShardID
	Entry dibs.Entry
	// Items are the values of the entry's items, as far as there are such items.
	Items []string
	// Why is what the ledger said when it refused the entry.
	Why string
	// At is when it was put there.
	At time.Time
}

// Place is where the entry stands in its journal.
func (q *Quarantined) Place() dibs.Position {
	return dibs.Position{ShardID: q.Shard, Cursor: q.Entry.Cursor}
}

// Grant is what an engine kept of a grant in quarantine.
func (q *Quarantined) Grant() dibs.Grant {
	return dibs.Grant{
		Position: q.Place(), UserID: q.Entry.UserID, Quantity: q.Entry.Quantity,
		Items: q.Items, At: q.Entry.At, PayBy: q.Entry.PayBy,
	}
}

// QuarantineFilter names entries in quarantine: those that fit every field that is set.
// The zero value names all.
type QuarantineFilter struct {
	// Campaign is the number of theirs.
	Campaign uint32
	// User is the one that they are of.
	User string
	// Key is the hash of the request's key.
	Key uint64
	// At is the place of one entry.
	At dibs.Position
	// After leaves out what is at or before a place, for the next page of a list.
	After dibs.Position
}

// names reports whether a filter names an entry; After is for the ledger alone.
func (f *QuarantineFilter) names(q *Quarantined) bool {
	return (f.Campaign == 0 || f.Campaign == q.Shard.Campaign) && (f.User == "" || f.User == q.Entry.UserID) &&
		(f.Key == 0 || f.Key == q.Entry.Key) && (f.At == dibs.Position{} || f.At == q.Place())
}

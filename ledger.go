package dibs

import (
	"context"
	"time"
)

// Page asks for a part of a list.
type Page struct {
	// Limit is 1 to MaxPage; 0 means DefaultPage.
	Limit int
	// Cursor is opaque: empty for the first page, then List.NextCursor.
	Cursor string
}

// The sizes of pages.
const (
	DefaultPage = 20
	MaxPage     = 100
)

// List is a page of a list.
type List[T any] struct {
	Items []T
	// NextCursor is empty at the end.
	NextCursor string
}

// CampaignVersion names a campaign's definition as it is at a time.
type CampaignVersion struct {
	Number  uint32
	Version int64
}

// Batch is a run of one shard's journal entries to settle.
type Batch struct {
	Campaign *Campaign
	Shard    ShardID
	// Fence is the shard's epoch in the ledger, read before the entries were. The
	// ledger takes the batch only while the epoch stands: entries of a history that
	// was given up since would stand where those of the next one belong.
	Fence uint16
	// From is the committed position that the run continues; To is the place of
	// its last entry.
	From, To Cursor
	Entries  []Entry
}

// ShardTotals are the ledger's sums of one shard, in units.
type ShardTotals struct {
	// Position is the committed position.
	Position Cursor
	// Epoch is the highest epoch opened.
	Epoch     uint16
	Stock     int64
	StockLeft int64
	Pending   int64
	Confirmed int64
	Released  int64
	Refunded  int64
}

// Command is an instruction to the engine that waits in the outbox: to adjust
// a stock, or to take claims back.
type Command struct {
	// ID orders commands.
	ID int64
	// Shard is the one that the command is for.
	Shard ShardID
	// Adjust is the adjustment, when Releases is empty.
	Adjust   Adjustment
	Releases []Release
}

// FreeItem is an item that nobody has.
type FreeItem struct {
	N     uint32
	Value string
}

// Restock is a change of a campaign's stock.
type Restock struct {
	Shard ShardID
	// Ref makes the change happen once.
	Ref string
	// Delta is positive; with items, their count. It may be negative while the
	// engine has never opened the shard.
	Delta int64
	Items []string
	Why   string
}

// Opener says on which server a shard's next epoch begins, and what that server
// knows of the epochs before.
type Opener struct {
	// Server names the run of the server that will hold the shard; empty for an
	// engine inside of the process.
	Server string
	// Epoch is that of the last entry of the server's journal, 0 for none. The next
	// epoch is beyond it.
	Epoch uint16
}

// Quarantined is a journal entry that the ledger could not take: a grant, or a
// withdrawal. It counts as if it were settled, as far as there is stock.
type Quarantined struct {
	Shard ShardID
	Entry Entry
	// Items are the values of the entry's items, as far as there are such items.
	Items []string
	// Why is what the ledger said when it refused the entry.
	Why string
	// At is when it was put there.
	At time.Time
}

// Order asks for units of a product's own stock.
type Order struct {
	ProductID string
	UserID    string
	Quantity  int64
	// Key is the hash of the request's key, 0 for none.
	Key uint64
	At  time.Time
	// Late says that the order stands for one that was paid too late: it costs
	// Amount, what that one cost.
	Late   bool
	Amount *Money
}

// OrderResult is what became of an Order.
type OrderResult struct {
	Outcome  Reason
	Replayed bool
	// Claim and Campaign are set when the Outcome is Granted.
	Claim    *Claim
	Campaign *Campaign
	// Remaining is what is left, with SoldOut.
	Remaining int64
}

// ClaimFilter narrows a list of claims. Zero fields do not filter.
type ClaimFilter struct {
	Campaign uint32
	UserID   string
	Status   *Status
}

// MaxCampaignsListed bounds the campaigns that one search for orders goes
// through.
const MaxCampaignsListed = 1000

// OrderFilter says which orders to look for. Zero fields do not filter.
type OrderFilter struct {
	UserID     string
	Status     *Status
	OrderType  OrderType
	PaymentRef string
	// Campaigns are numbers, the highest first; nil for all campaigns.
	Campaigns []uint32
	// Code is an item of one of the Campaigns.
	Code string
	// Since ≤ created_at < Until.
	Since, Until time.Time
}

// UpTo is the batch's first n entries.
func (b *Batch) UpTo(n int) Batch {
	part := *b
	part.Entries = b.Entries[:n]
	part.To = part.Entries[n-1].Cursor
	return part
}

// Grant is what an engine kept of a grant in quarantine.
func (q *Quarantined) Grant() Grant {
	return Grant{
		Position: Position{ShardID: q.Shard, Cursor: q.Entry.Cursor}, UserID: q.Entry.UserID, Quantity: q.Entry.Quantity,
		Items: q.Items, At: q.Entry.At, PayBy: q.Entry.PayBy,
	}
}

// Epoch is the shard's epoch when the command was written.
func (c *Command) Epoch() uint16 {
	if len(c.Releases) > 0 {
		return c.Releases[0].Epoch
	}
	return c.Adjust.Epoch
}

// PacketFunds is where a red packet's money is, in minor units: Funded =
// Credited + Returned + Escrow.
type PacketFunds struct {
	Currency string
	// Funded is 0 until the red packet is published.
	Funded   int64
	Credited int64
	Returned int64
	Escrow   int64
	// ReturnedAt is when the remainder went back, all being credited by then;
	// zero while the red packet is open.
	ReturnedAt time.Time
}

// Audience is an imported list of users.
type Audience struct {
	ID string
	// Version rises with each import.
	Version int64
	// Users is how many there are.
	Users int64
	// Seed is what the order of its parts was made with, and a secret: who knows it
	// may find ids that are taken for others.
	Seed      []byte
	UpdatedAt time.Time
}

// Eraser has users in places that a ledger cannot read.
type Eraser interface {
	// EraseUser takes a user out of all of them, and returns of how many.
	EraseUser(ctx context.Context, user string) (int64, error)
	// ListsOf names those that have the user, at most MaxUserRecord.
	ListsOf(ctx context.Context, user string) ([]string, error)
}

// MaxUserRecord bounds each list of a UserRecord.
const MaxUserRecord = 1000

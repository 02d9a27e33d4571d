package dibs

import (
	"context"
	"slices"
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

// Catalog keeps products and campaigns.
type Catalog interface {
	// InsertProduct stores a new product. ErrAlreadyExists.
	InsertProduct(ctx context.Context, p *Product) error
	// UpdateProduct stores p where the stored Version is p.Version, and raises
	// it in p. What is ordered of the regular stock stays ordered: StockLeft
	// follows Stock, in p too, and a Stock below what is ordered is an *Error of
	// InvalidState. ErrConflict, ErrNotFound.
	UpdateProduct(ctx context.Context, p *Product) error
	// Product returns one. ErrNotFound.
	Product(ctx context.Context, id string) (*Product, error)
	// Products lists by id.
	Products(ctx context.Context, page Page) (List[Product], error)

	// InsertCampaign stores a new campaign with its items (nil for units) and
	// sets its Number. ErrAlreadyExists.
	InsertCampaign(ctx context.Context, c *Campaign, items []string) error
	// UpdateCampaign stores c where the stored Version is c.Version, and raises
	// it in c. Stock is not changed by it. ErrConflict, ErrNotFound.
	UpdateCampaign(ctx context.Context, c *Campaign) error
	// Campaign returns one by id, CampaignByNumber by number. ErrNotFound.
	Campaign(ctx context.Context, id string) (*Campaign, error)
	CampaignByNumber(ctx context.Context, number uint32) (*Campaign, error)
	// Campaigns lists newest first; states filters when it is not empty.
	Campaigns(ctx context.Context, states []State, page Page) (List[Campaign], error)
	// CampaignsOf returns the numbers of a product's campaigns, that of its regular
	// orders always among them: the newest first, at most MaxCampaignsListed.
	CampaignsOf(ctx context.Context, productID string) ([]uint32, error)
	// LiveCampaigns returns every campaign that is published or paused and ends
	// after a time.
	LiveCampaigns(ctx context.Context, after time.Time) ([]*Campaign, error)
	// LiveVersions is LiveCampaigns with the numbers and versions alone, ordered by
	// number: what every node asks for each second, to read what has changed.
	LiveVersions(ctx context.Context, after time.Time) ([]CampaignVersion, error)
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

// Settlement keeps claims and moves journal entries into them.
//
// Every shard has an epoch, the fence: what was read under one epoch changes
// nothing under a later one.
type Settlement interface {
	// LoadShard raises the shard's epoch and reads the shard, in one transaction.
	// Outbox commands of the shard written before are dropped by it: the load
	// counts what they carry. Grants in quarantine are among the holdings, and as
	// many items as they take are not free. ErrElsewhere when another server holds
	// the shard, was seen within ServerLife, and knows more of the shard than the
	// opener's does: nothing is changed then.
	LoadShard(ctx context.Context, c *Campaign, shard ShardID, by Opener) (*ShardLoad, error)
	// Fence raises a shard's epoch as LoadShard does, and reads nothing: no batch
	// that was read before is taken any more, and a load that is under way has to
	// be made again. ErrElsewhere as in LoadShard.
	Fence(ctx context.Context, shard ShardID, by Opener) (ShardTotals, error)
	// SeeServers notes that the servers were seen alive just now, by the clock that
	// all processes of the ledger share, and that the gone ones are so no more.
	SeeServers(ctx context.Context, seen, gone []string) error
	// Settle writes batches of different shards in one transaction: claims,
	// items, stock_left and totals once per batch, and the position by
	// compare-and-set. ErrFenced when a shard's epoch is not the batch's Fence;
	// ErrPositionMoved when a batch does not continue its shard's committed
	// position; ErrPoison when it has an entry that no repeat will make settle;
	// ErrForked when the ledger has a claim at an entry's place already. Nothing is
	// written then.
	Settle(ctx context.Context, batches []Batch) error
	// SkipTo moves a shard's committed position forward without settling anything:
	// an administrator has given up what the journal had between the two places and
	// has no more. The epoch is raised, as by Fence. ErrPositionMoved when the
	// position is not from.
	SkipTo(ctx context.Context, shard ShardID, from, to Cursor) error
	// Totals returns a shard's sums. ErrNotFound.
	Totals(ctx context.Context, shard ShardID) (ShardTotals, error)

	// Restock adds stock to the ledger and writes the engine's command to the
	// outbox, in one transaction; a repeat of the Ref changes nothing. A negative
	// Delta beyond what is left is an *Error of InvalidState.
	Restock(ctx context.Context, r Restock) error
	// Import adds items to a campaign of items, as Restock does, and returns how
	// many; 0 for a repeat of the Ref. An item that comes twice, or that the
	// campaign has, is an *Error of InvalidRequest that names its line.
	Import(ctx context.Context, in Import) (int64, error)
	// FreeItems lists the items of a campaign that no claim has and that were not
	// withdrawn, by their numbers.
	FreeItems(ctx context.Context, campaign uint32, page Page) (List[FreeItem], error)
	// RefUsed reports whether a stock change of this Ref has been recorded.
	RefUsed(ctx context.Context, campaign uint32, ref string) (bool, error)
	// Commands returns the oldest waiting commands after an ID.
	Commands(ctx context.Context, after int64, max int) ([]Command, error)
	// DropCommand removes a command that the engine has carried out.
	DropCommand(ctx context.Context, id int64) error
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

// Regulars sells products' own stock. Each product that was ever ordered has a
// campaign of RegularState, in which its orders are claims as all others are.
type Regulars interface {
	// Order sells units of a product's stock if so much is left, and returns the
	// claim, in one transaction: the price and the time to pay are the product's at
	// that moment. A repeat of the Key returns the first claim. The outcome is
	// Granted, SoldOut with what remains, or KeyReused for a repeat with another
	// quantity; nothing is written then. ErrNotFound for a product that there is not;
	// an *Error of InvalidRequest for what would cost too much.
	Order(ctx context.Context, o Order) (OrderResult, error)
	// RegularCampaign returns the campaign of a product's orders. ErrNotFound for a
	// product that there is not, or that was never ordered.
	RegularCampaign(ctx context.Context, productID string) (*Campaign, error)
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

// Mending keeps what could not be settled, and puts right what is beside the
// claims. No method of it changes a claim that there is.
type Mending interface {
	// Quarantine records the batch's only entry, which Settle refused with
	// ErrPoison, and moves the position past it, in one transaction. The entry
	// takes from stock_left, and a grant adds to the totals, as a settled one
	// would, but never more than is left. ErrFenced and ErrPositionMoved as in
	// Settle; ErrForked when the ledger has a claim at the entry's place; ErrCorrupt for
	// an entry that is neither a grant nor a withdrawal.
	Quarantine(ctx context.Context, b Batch, why string) error
	// Quarantined lists entries in quarantine by their places; campaign 0 means
	// those of all campaigns.
	Quarantined(ctx context.Context, campaign uint32, max int) ([]Quarantined, error)
	// Readmit settles an entry that is in quarantine, in one transaction. ErrPoison
	// when it can still not be taken, ErrForked as in Settle; it stays then.
	// ErrNotFound.
	Readmit(ctx context.Context, c *Campaign, at Position) error
	// Recount makes the sums beside a campaign's rows what the rows add up to, in
	// one transaction in which nothing of the campaign is settled, and returns
	// the sums that differed, in words. An *Error of InvalidState, and no change,
	// when the rows contradict one another: more held than there is, or items
	// that are no longer there.
	Recount(ctx context.Context, c *Campaign) (changed []string, err error)
}

// Lives moves settled claims through their life. A step that gives stock back
// moves the claim, its items, the sums of the shard and the campaign, and writes
// the engine's command to the outbox, all in one transaction.
type Lives interface {
	// Move makes groups of moves, in order: each move is decided by Move.Decide
	// on the claim as it then stands. A group happens as a whole or not at all:
	// when one of its moves is refused, the others' Err is ErrConflict. The
	// result has the groups' shape. An error means that nothing happened, or
	// with EffectUnknown that all of it may have.
	Move(ctx context.Context, groups [][]Move) ([][]Moved, error)
	// Expire releases up to max pending claims whose deadline is not after now,
	// the longest due first, and returns how many those were. Several may call
	// it at once: each claim expires once.
	Expire(ctx context.Context, now time.Time, max int) (int, error)
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

// Claims reads settled claims. ID, CampaignID and Kind of a Claim are filled
// by the service; the ledger fills the rest.
type Claims interface {
	// Claim returns one by position. ErrNotFound.
	Claim(ctx context.Context, p Position) (*Claim, error)
	// ClaimByKey returns a user's claim by the hash of its request key.
	// ErrNotFound.
	ClaimByKey(ctx context.Context, campaign uint32, user string, key uint64) (*Claim, error)
	// ClaimList lists newest first when UserID is set, else in the order of
	// positions.
	ClaimList(ctx context.Context, f ClaimFilter, page Page) (List[Claim], error)
	// OrderList lists newest first: by time for all orders and those of a user,
	// else campaign by campaign, the highest number first. However many orders
	// there are, it reads by an index.
	OrderList(ctx context.Context, f OrderFilter, page Page) (List[Claim], error)
}

// Role is what an API key may do.
type Role string

// The roles; each may do what those before it may.
const (
	// RoleViewer may read.
	RoleViewer Role = "viewer"
	// RoleEditor may draft and edit products and campaigns.
	RoleEditor Role = "editor"
	// RolePublisher may run campaigns: publish, pause, restock, and the steps of
	// claims that they lead to.
	RolePublisher Role = "publisher"
	// RoleAdmin may do everything: money from outside, webhooks, repairs, users'
	// data, the audit log.
	RoleAdmin Role = "admin"
)

// roles are all roles, the least first.
var roles = []Role{RoleViewer, RoleEditor, RolePublisher, RoleAdmin}

// May reports whether a role may do what another one may. A role that there is
// not may do nothing.
func (r Role) May(other Role) bool {
	has, needs := slices.Index(roles, r), slices.Index(roles, other)
	return needs >= 0 && has >= needs
}

// APIKey is a key of the admin API. The key itself is shown once, at
// creation; the ledger keeps its SHA-256.
type APIKey struct {
	ID        string
	Name      string
	Role      Role
	Hash      []byte
	CreatedAt time.Time
	// RevokedAt is zero while the key is valid.
	RevokedAt time.Time
}

// Access keeps API keys, remembered admin requests and secrets.
type Access interface {
	// InsertKey stores a key. ErrAlreadyExists.
	InsertKey(ctx context.Context, k *APIKey) error
	// KeyByHash returns a key that is not revoked. ErrNotFound.
	KeyByHash(ctx context.Context, hash []byte) (*APIKey, error)
	// Keys lists all keys, newest first.
	Keys(ctx context.Context) ([]APIKey, error)
	// RevokeKey ends a key. ErrNotFound.
	RevokeKey(ctx context.Context, id string, at time.Time) error

	// Request returns the remembered answer of (caller, key). ErrNotFound.
	Request(ctx context.Context, caller, key string) (*StoredRequest, error)
	// SaveRequest remembers an answer. ErrAlreadyExists.
	SaveRequest(ctx context.Context, r *StoredRequest) error
	// DropRequests forgets answers saved before a time.
	DropRequests(ctx context.Context, before time.Time) error

	// Secret returns the named secret, made from size random bytes the first
	// time; every node gets the same one.
	Secret(ctx context.Context, name string, size int) ([]byte, error)
}

// StoredRequest is a remembered answer of an admin request.
type StoredRequest struct {
	Caller string
	Key    string
	// Hash covers method, path and body.
	Hash   []byte
	Status int
	Body   []byte
	At     time.Time
}

// CampaignAudit is what the ledger's rows of a campaign add up to, counted
// afresh from the rows and not from the sums beside them.
type CampaignAudit struct {
	Stock     int64
	StockLeft int64
	// Held is the units of claims that are neither released nor restocked.
	Held int64
	// ByStatus is units by status word.
	ByStatus map[string]int64
	Claims   int64
	// OverLimit are users who hold more than the limit, at most 10.
	OverLimit []string
	// BeyondPosition counts claims that lie past the committed position.
	BeyondPosition int64
	// BadItems are items whose claim does not exist, or claims whose quantity
	// differs from their items, at most 10, in words.
	BadItems []string
	// BadTotals names sums beside the rows that differ from the rows.
	BadTotals []string
	// SumHeld is what is held by the sums beside the rows, and SumsAgree whether
	// these say the same among themselves.
	SumHeld   int64
	SumsAgree bool
	// Quarantined counts entries in quarantine. QuarantinedUnits is what the
	// grants among them granted; Withheld is what all of them take from the stock,
	// beside Held. InQuarantine are the first of them, at most 10, in words.
	Quarantined      int64
	QuarantinedUnits int64
	Withheld         int64
	InQuarantine     []string
	// BadLives are claims whose row, payment and events do not tell the same, at
	// most 10, in words.
	BadLives []string
	// Paid and Refunded are what was paid for the campaign's claims and what of
	// it went back, in minor units; Due is what came too late and has to go back.
	Paid, Refunded, Due int64
	// Packet is what the money of a red packet adds up to, but for the accounts,
	// which AuditAccounts counts; nil for other kinds.
	Packet *PacketAudit
	// Waiting counts the campaign's commands in the outbox.
	Waiting int64
}

// Ledger is the SQL database: the lasting truth. Every method is one
// transaction, safe for concurrent use, and honours its context. Transient
// faults of the database are *Error of Unavailable.
type Ledger interface {
	Catalog
	Settlement
	Regulars
	Mending
	Lives
	Claims
	Access
	Trail
	Audiences
	Announcements
	Funds
	Feed
	Webhooks
	Users

	// Audit counts a campaign's rows.
	Audit(ctx context.Context, c *Campaign) (*CampaignAudit, error)
	// Ping returns nil when the database answers.
	Ping(ctx context.Context) error
	// Close ends all connections.
	Close() error
}

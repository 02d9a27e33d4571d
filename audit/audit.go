package audit

import (
	"context"
	"log/slog"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/funds"
	"github.com/dibs-dev/dibs/live"
)

// Ledger counts what it has, and puts it right.
type Ledger interface {
	// AuditAccounts compares all accounts of a currency with their entries, and
	// their sum with zero; it returns what does not fit, at most 10, in words.
	AuditAccounts(ctx context.Context, currency string) ([]string, error)
	// Campaigns lists newest first; states filters when it is not empty.
	Campaigns(ctx context.Context, states []dibs.State, product string, page dibs.Page) (dibs.List[dibs.Campaign], error)
	// SkipTo moves a shard's committed position forward without settling anything:
	// an administrator has given up what the journal had between the two places and
	// has no more. The epoch is raised, as by Fence. ErrPositionMoved when epoch or
	// position are not those of seen any more: another node may have found the shard
	// whole since, and opened it.
	SkipTo(ctx context.Context, shard dibs.ShardID, seen live.ShardTotals, to dibs.Cursor) error
	// Commands returns the oldest waiting commands after an ID.
	Commands(ctx context.Context, after int64, max int) ([]live.Command, error)
	// RegularCampaign returns the campaign of a product's orders. ErrNotFound for a
	// product that there is not, or that was never ordered.
	RegularCampaign(ctx context.Context, productID string) (*dibs.Campaign, error)
	// Readmit settles an entry that is in quarantine, in one transaction. ErrPoison
	// when it can still not be taken, ErrForked as in Settle; it stays then.
	// ErrNotFound.
	Readmit(ctx context.Context, c *dibs.Campaign, at dibs.Position) error
	// Recount makes the sums beside a campaign's rows what the rows add up to, in
	// one transaction in which nothing of the campaign is settled, and returns
	// the sums that differed, in words. An *Error of InvalidState, and no change,
	// when the rows contradict one another: more held than there is, or items
	// that are no longer there.
	Recount(ctx context.Context, c *dibs.Campaign) (changed []string, err error)
	// Claim returns one by position. ErrNotFound.
	Claim(ctx context.Context, p dibs.Position) (*dibs.Claim, error)
	// ClaimList lists newest first when UserID is set, else in the order of
	// positions.
	ClaimList(ctx context.Context, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error)
	// Audit counts a campaign's rows.
	Audit(ctx context.Context, c *dibs.Campaign) (*CampaignAudit, error)
}

// Audit compares the engine with the ledger, and repairs what can be repaired. It keeps no
// state of its own: all methods are safe for concurrent use.
type Audit struct {
	registry   *live.Registry
	settler    *live.Settler
	loader     *live.Loader
	outbox     *live.Outbox
	quarantine *live.Quarantine
	campaigns  *campaigns.Campaigns
	funds      *funds.Funds
	engine     dibs.Engine
	ledger     Ledger
	ids        dibs.ClaimIDs
	log        *slog.Logger
}

// Config is what Audit is made of.
type Config struct {
	Live      *live.Node
	Campaigns *campaigns.Campaigns
	Funds     *funds.Funds
	Engine    dibs.Engine
	Ledger    Ledger
	IDs       dibs.ClaimIDs
	Logger    *slog.Logger
}

// New returns the Audit of a node.
func New(c Config) *Audit {
	return &Audit{
		registry: c.Live.Registry, settler: c.Live.Settler, loader: c.Live.Loader, outbox: c.Live.Outbox, quarantine: c.Live.Quarantine,
		campaigns: c.Campaigns, funds: c.Funds, engine: c.Engine, ledger: c.Ledger, ids: c.IDs, log: c.Logger,
	}
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
	Packet *funds.PacketAudit
	// Waiting counts the campaign's commands in the outbox.
	Waiting int64
}

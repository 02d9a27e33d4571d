package claims

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/histogram"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/moving"
)

// Claims takes claims to the engine, and finds them again. Its fields are set by New
// and never change; only what counts holds is written later. All methods are safe for
// concurrent use.
type Claims struct {
	registry   *live.Registry
	lookups    *live.Lookups
	settler    *live.Settler
	loader     *live.Loader
	quarantine *live.Quarantine
	cfg        Config

	counts
}

// Config is what Claims is made of; Gates, Guard and Revoked may be absent.
type Config struct {
	Live   *live.Node
	Engine dibs.Engine
	Ledger Ledger
	// Moving brings units to shards that have none left; see dryShard.
	Moving *moving.Mover
	IDs    dibs.ClaimIDs
	// Ledgered makes a yes wait until the ledger has it.
	Ledgered bool
	// Gates are asked, in order, before a claim on a campaign with a gate reaches the engine.
	Gates []dibs.Gate
	// Guard bounds the claims that the engine decides at a time.
	Guard Guard
	// Revoked reports whether a user's token was revoked, by its id and when it was issued; nil for never. Only claims
	// that have waited are asked about.
	Revoked func(user, id string, issued time.Time) bool
}

// New returns Claims on a node's campaigns.
func New(c Config) *Claims {
	return &Claims{
		registry: c.Live.Registry, lookups: c.Live.Lookups, settler: c.Live.Settler, loader: c.Live.Loader, quarantine: c.Live.Quarantine,
		cfg: c, counts: counts{gateTimes: histogram.NewTimeHistogram(), engineTimes: histogram.NewTimeHistogram(), ledgerTimes: histogram.NewTimeHistogram()},
	}
}

// Ledger finds claims that were settled.
type Ledger interface {
	// Totals returns a shard's sums. ErrNotFound.
	Totals(ctx context.Context, shard dibs.ShardID) (live.ShardTotals, error)
	// Claim returns one by position. ErrNotFound.
	Claim(ctx context.Context, p dibs.Position) (*dibs.Claim, error)
	// ClaimByKey returns a user's claim by the hash of its request key.
	// ErrNotFound.
	ClaimByKey(ctx context.Context, campaign uint32, user string, key uint64) (*dibs.Claim, error)
	// ClaimList lists newest first when UserID is set, else in the order of
	// positions.
	ClaimList(ctx context.Context, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error)
	// Luck returns how the shares of a red packet fell, with up to most of the greatest ones. It reads all of its shares.
	Luck(ctx context.Context, campaign uint32, most int) (Luck, error)
	// References returns the references of those of some claims that have one.
	References(ctx context.Context, at []dibs.Position) (map[dibs.Position]string, error)
}

// Luck is how the shares of a red packet fell, as far as they are settled. Amounts are in minor units of its currency.
// LastAt is when the last share was opened, zero before the first one. Of equal shares, the earlier one is first.
type Luck struct {
	Opened, Sum int64
	LastAt      time.Time
	Greatest    []OpenedShare
}

// OpenedShare is a share of a red packet that a user has opened; Amount is in minor units.
type OpenedShare struct {
	UserID string
	Amount int64
	At     time.Time
}

// Guard bounds the claims that the engine decides at a time. It is asked by all
// claims at once, after the gates and before the engine, so its cost is part of the
// claim path.
type Guard interface {
	// Enter takes a place for a claim; false means that there is none, and that
	// the claim is to be refused. mark is for Leave.
	Enter() (mark int64, ok bool)
	// Leave gives the place back once the claim is answered.
	Leave(mark int64)
}

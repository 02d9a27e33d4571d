package orders

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/internal/batch"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/moving"
)

// MaxCampaignsListed bounds the campaigns that one search for orders goes
// through.
const MaxCampaignsListed = 1000

// Ledger moves claims through their life, and finds them.
type Ledger interface {
	// CampaignsOf returns the numbers of a product's campaigns, that of its regular
	// orders always among them: the newest first, at most MaxCampaignsListed.
	CampaignsOf(ctx context.Context, productID string) ([]uint32, error)
	// Totals returns a shard's sums. ErrNotFound.
	Totals(ctx context.Context, shard dibs.ShardID) (live.ShardTotals, error)
	// Order sells units of a product's stock if so much is left, and returns the
	// claim, in one transaction: the price and the time to pay are the product's at
	// that moment. A repeat of the Key returns the first claim. The outcome is
	// Granted, Paused while the product is off sale, SoldOut with what remains, LimitReached with the orders that fill
	// MostHeld, or KeyReused for a repeat with another quantity; nothing is written
	// then. ErrNotFound for a product that there is not;
	// an *Error of InvalidRequest for what would cost too much.
	Order(ctx context.Context, o Order) (Result, error)
	// Move makes groups of moves, in order: each move is decided by Move.Decide
	// on the claim as it then stands. A group happens as a whole or not at all:
	// when one of its moves is refused, the others' Err is ErrConflict. The
	// result has the groups' shape. An error means that nothing happened, or
	// with EffectUnknown that all of it may have.
	Move(ctx context.Context, groups [][]dibs.Move) ([][]dibs.Moved, error)
	// Expire releases up to max pending claims whose deadline is not after now,
	// the longest due first, and returns how many those were. Several may call
	// it at once: each claim expires once.
	Expire(ctx context.Context, now time.Time, max int) (int, error)
	// Comment stores what an administrator notes about a settled claim; empty takes it
	// away. ErrNotFound.
	Comment(ctx context.Context, p dibs.Position, comment string, at time.Time) error
	// OrderList lists newest first: by time for all orders and those of a user,
	// else campaign by campaign, the highest number first. However many orders
	// there are, it reads by an index.
	OrderList(ctx context.Context, f Filter, page dibs.Page) (dibs.List[dibs.Claim], error)
}

// Orders moves claims through their life, sells products' own stock, and searches
// for both. All methods are safe for concurrent use: what two of them do to one claim is
// decided by the ledger's transactions. New sets the fields; after that only moves,
// ordering and expired change.
type Orders struct {
	registry      *live.Registry
	settler       *live.Settler
	loader        *live.Loader
	outbox        *live.Outbox
	claims        *claims.Claims
	moving        *moving.Mover
	engine        dibs.Engine
	ledger        Ledger
	ids           dibs.ClaimIDs
	trouble       *trouble.Log
	life          context.Context
	now           func() time.Time
	ledgerTimeout time.Duration
	sweepEvery    time.Duration
	mostHeld      int64

	// orders has a place for each regular order that is before the ledger; ordering
	// counts them with those that wait for one.
	orders   chan struct{}
	ordering atomic.Int64
	// moves gathers steps of claims that are made together.
	moves   batch.Batcher[*moveGroup]
	expired atomic.Int64
}

// Config is what Orders is made of.
type Config struct {
	Live   *live.Node
	Claims *claims.Claims
	// Moving brings units to the shard of a late payment.
	Moving        *moving.Mover
	Engine        dibs.Engine
	Ledger        Ledger
	IDs           dibs.ClaimIDs
	Logger        *slog.Logger
	Now           func() time.Time
	LedgerTimeout time.Duration
	// SweepEvery is how often unpaid claims are looked for whose time is over.
	SweepEvery time.Duration
	// MostHeld is how many units of a product a user may hold by regular orders that
	// are not paid; 0 for any number.
	MostHeld int64
	// Life ends when the node is closed.
	Life context.Context
}

// New returns Orders on a node.
func New(c Config) *Orders {
	return &Orders{
		registry: c.Live.Registry, settler: c.Live.Settler, loader: c.Live.Loader, outbox: c.Live.Outbox, claims: c.Claims, moving: c.Moving, engine: c.Engine,
		ledger: c.Ledger, ids: c.IDs, trouble: trouble.New(c.Logger, slog.LevelError), life: c.Life, now: c.Now, ledgerTimeout: c.LedgerTimeout, sweepEvery: c.SweepEvery, mostHeld: c.MostHeld,
		orders: make(chan struct{}, maxOrders),
	}
}

// Expired is how many unpaid claims this node released since it started.
func (s *Orders) Expired() int64 { return s.expired.Load() }

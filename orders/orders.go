package orders

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/internal/batch"
	"github.com/dibs-dev/dibs/live"
)

// Ledger moves claims through their life, and finds them.
type Ledger interface {
	// CampaignsOf returns the numbers of a product's campaigns, that of its regular
	// orders always among them: the newest first, at most MaxCampaignsListed.
	CampaignsOf(ctx context.Context, productID string) ([]uint32, error)
	// Totals returns a shard's sums. ErrNotFound.
	Totals(ctx context.Context, shard dibs.ShardID) (dibs.ShardTotals, error)
	// Order sells units of a product's stock if so much is left, and returns the
	// claim, in one transaction: the price and the time to pay are the product's at
	// that moment. A repeat of the Key returns the first claim. The outcome is
	// Granted, SoldOut with what remains, or KeyReused for a repeat with another
	// quantity; nothing is written then. ErrNotFound for a product that there is not;
	// an *Error of InvalidRequest for what would cost too much.
	Order(ctx context.Context, o dibs.Order) (dibs.OrderResult, error)
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
	// OrderList lists newest first: by time for all orders and those of a user,
	// else campaign by campaign, the highest number first. However many orders
	// there are, it reads by an index.
	OrderList(ctx context.Context, f dibs.OrderFilter, page dibs.Page) (dibs.List[dibs.Claim], error)
}

// Orders moves claims through their life, sells products' own stock, and searches
// for both.
type Orders struct {
	registry      *live.Registry
	settler       *live.Settler
	loader        *live.Loader
	outbox        *live.Outbox
	claims        *claims.Claims
	engine        dibs.Engine
	ledger        Ledger
	ids           dibs.ClaimIDs
	log           *slog.Logger
	life          context.Context
	now           func() time.Time
	ledgerTimeout time.Duration
	sweepEvery    time.Duration

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
	Live          *live.Node
	Claims        *claims.Claims
	Engine        dibs.Engine
	Ledger        Ledger
	IDs           dibs.ClaimIDs
	Logger        *slog.Logger
	Now           func() time.Time
	LedgerTimeout time.Duration
	// SweepEvery is how often unpaid claims are looked for whose time is over.
	SweepEvery time.Duration
	// Life ends when the node is closed.
	Life context.Context
}

// New returns Orders on a node.
func New(c Config) *Orders {
	return &Orders{
		registry: c.Live.Registry, settler: c.Live.Settler, loader: c.Live.Loader, outbox: c.Live.Outbox, claims: c.Claims, engine: c.Engine,
		ledger: c.Ledger, ids: c.IDs, log: c.Logger, life: c.Life, now: c.Now, ledgerTimeout: c.LedgerTimeout, sweepEvery: c.SweepEvery,
		orders: make(chan struct{}, maxOrders),
	}
}

// Loop releases claims whose time to pay is over, until ctx ends.
func (s *Orders) Loop(ctx context.Context) { s.sweepLoop(ctx) }

// Expired is how many unpaid claims this node released since it started.
func (s *Orders) Expired() int64 { return s.expired.Load() }

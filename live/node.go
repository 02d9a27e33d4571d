package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/histogram"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Config is what a Node is made of. All fields are required, but for Tracer and
// Deployment.
type Config struct {
	Engine        dibs.Engine
	Ledger        Ledger
	Logger        *slog.Logger
	Now           func() time.Time
	Tracer        dibs.Tracer
	SettleBatch   int
	SettleEvery   time.Duration
	MaxBacklog    int64
	JournalKeep   time.Duration
	LedgerTimeout time.Duration
	// Deployment returns the number of the deployment of the engine that decides on a
	// shard; nil where the engine has no deployments.
	Deployment func(ctx context.Context, shard dibs.ShardID) (int, error)
	// Life ends when the node is closed; what runs in the background ends with it.
	Life context.Context
}

// Node is what one node holds of the engine's campaigns, in parts from the
// registry up: each part knows those before it, and the Settler and the Loader
// know each other.
type Node struct {
	Registry   *Registry
	Quarantine *Quarantine
	Lookups    *Lookups
	Settler    *Settler
	Loader     *Loader
	Snapshots  *Snapshots
	Poller     *Poller
	Outbox     *Outbox
}

// New puts the parts together. Nothing runs yet.
func New(c Config) *Node {
	n := &Node{}
	outboxKick := make(chan struct{}, 1)
	n.Registry = &Registry{engine: c.Engine, ledger: c.Ledger, now: c.Now, ledgerTimeout: c.LedgerTimeout, admin: wait.NewLock()}
	all := shared{
		registry: n.Registry, engine: c.Engine, ledger: c.Ledger, log: c.Logger, life: c.Life, now: c.Now, tracer: c.Tracer,
		maxBacklog: c.MaxBacklog, ledgerTimeout: c.LedgerTimeout,
	}
	n.Quarantine = &Quarantine{ledger: c.Ledger, log: c.Logger, reading: wait.NewLock()}
	n.Lookups = &Lookups{
		shared: all, looked: lookups{known: make(map[string]*lookup)},
		lookups: make(chan struct{}, maxLookups), callers: make(chan struct{}, maxCallerLookups), pages: make(chan struct{}, maxPublicLookups),
	}
	n.Settler = &Settler{
		shared: all, quarantine: n.Quarantine, trouble: trouble.New(c.Logger, slog.LevelError),
		batch: c.SettleBatch, every: c.SettleEvery, settleKick: make(chan struct{}, 1), outboxKick: outboxKick,
		alone: wait.NewLock(), settleSizes: histogram.NewSizeHistogram(), settleTimes: histogram.NewTimeHistogram(),
	}
	n.Loader = &Loader{shared: all, settler: n.Settler, deployment: c.Deployment}
	n.Settler.loader = n.Loader
	n.Snapshots = &Snapshots{
		shared: all, lookups: n.Lookups, loader: n.Loader, watches: make(map[string]*watchedCampaign), first: make(chan struct{}, 1),
	}
	n.Poller = &Poller{
		shared: all, settler: n.Settler, loader: n.Loader, snapshots: n.Snapshots, trouble: trouble.New(c.Logger, slog.LevelWarn),
		journalKeep: c.JournalKeep, left: make(map[dibs.ShardID]time.Time), stays: make(map[dibs.ShardID]time.Time),
	}
	n.Outbox = &Outbox{
		shared: all, loader: n.Loader, trouble: trouble.New(c.Logger, slog.LevelError),
		OutboxKick: outboxKick, sending: make(chan struct{}, 1),
	}
	return n
}

// Start settles what an earlier run left behind, and takes the live campaigns up.
// Claims are decided once it has returned; Loops keeps it so.
func (n *Node) Start(ctx context.Context) error {
	campaigns, err := n.Poller.ledger.LiveCampaigns(ctx, n.Poller.now())
	if err != nil {
		return fmt.Errorf("dibs: reading the live campaigns: %w", err)
	}
	n.Quarantine.ReadQuarantine(ctx)
	// Before any shard is opened on them: a node that asks the ledger finds them alive.
	n.Poller.seeServers(ctx)
	n.Loader.admitAll(ctx, campaigns)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("dibs: loading the live campaigns: %w", err)
	}
	if err := n.Loader.settleEnded(ctx); err != nil {
		return err
	}
	wait.Kick(n.Settler.settleKick)
	return nil
}

// Loops are what runs in the background, each until its context ends.
func (n *Node) Loops() []func(context.Context) {
	return []func(context.Context){n.Settler.loop, n.Poller.loop, n.Poller.serversLoop, n.Outbox.loop, n.Snapshots.loop}
}

// Discover takes up what other nodes have published or changed. It is called every
// DiscoverEvery, by one goroutine.
func (n *Node) Discover(ctx context.Context) { n.Poller.discover(ctx) }

// Tidy drops what the journal and the engine need no more. It is called now and
// then, by one goroutine.
func (n *Node) Tidy(ctx context.Context) {
	if n.Poller.HasFleetLease() {
		n.Poller.trim(ctx)
	}
	n.Poller.retireEnded(ctx)
	n.Loader.judgeAgain(ctx)
	if n.Loader.stuckTail.Load() != nil || n.Loader.endedUnloaded.Swap(false) {
		// The fault that kept it from being settled at the start may be over.
		if err := n.Loader.settleEnded(ctx); err != nil && ctx.Err() == nil {
			n.Loader.endedUnloaded.Store(true)
			n.Loader.log.Warn("the rest of campaigns that are over could not be looked for", "err", err)
		}
	}
	n.Quarantine.ReadQuarantine(ctx)
}

// Drain settles what is left, once the Loops have ended, until ctx ends. The next
// start settles the rest.
func (n *Node) Drain(ctx context.Context) error {
	n.Poller.pollSettled(ctx)
	for {
		settled, err := n.Settler.once(ctx, n.Settler.batch)
		if (errors.Is(err, dibs.ErrPositionMoved) || errors.Is(err, dibs.ErrFenced)) && n.Settler.engine.Shared() && ctx.Err() == nil {
			// Another node has settled the same entries, or has taken the shard over and
			// settles them: what is left here is looked up anew.
			continue
		}
		if err != nil {
			return fmt.Errorf("dibs: settling at the end: %w", err)
		}
		if settled == 0 {
			return nil
		}
	}
}

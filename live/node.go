package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/meter"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Config is what a Node is made of. All fields are required, but for Tracer.
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
	Situations *Situations
	Watcher    *Watcher
	Outbox     *Outbox
}

// New puts the parts together. Nothing runs yet.
func New(c Config) *Node {
	n := &Node{}
	n.Registry = &Registry{engine: c.Engine, ledger: c.Ledger, now: c.Now, ledgerTimeout: c.LedgerTimeout, admin: wait.NewLock()}
	n.Quarantine = &Quarantine{ledger: c.Ledger, log: c.Logger, asideMu: wait.NewLock()}
	n.Lookups = &Lookups{registry: n.Registry, ledger: c.Ledger, life: c.Life, lookups: make(chan struct{}, maxLookups)}
	n.Settler = &Settler{
		registry: n.Registry, aside: n.Quarantine, engine: c.Engine, ledger: c.Ledger, log: c.Logger, life: c.Life, tracer: c.Tracer,
		batch: c.SettleBatch, every: c.SettleEvery, maxBacklog: c.MaxBacklog, ledgerTimeout: c.LedgerTimeout,
		settleKick: make(chan struct{}, 1), settling: wait.NewLock(), settleSizes: meter.NewSizeHistogram(), settleTimes: meter.NewTimeHistogram(),
	}
	n.Loader = &Loader{
		registry: n.Registry, settler: n.Settler, engine: c.Engine, ledger: c.Ledger, log: c.Logger, life: c.Life, now: c.Now,
		ledgerTimeout: c.LedgerTimeout,
	}
	n.Settler.loader = n.Loader
	n.Situations = &Situations{registry: n.Registry, lookups: n.Lookups, loader: n.Loader, engine: c.Engine, life: c.Life, now: c.Now}
	n.Watcher = &Watcher{
		registry: n.Registry, settler: n.Settler, loader: n.Loader, situations: n.Situations, engine: c.Engine, ledger: c.Ledger, log: c.Logger,
		now: c.Now, maxBacklog: c.MaxBacklog, journalKeep: c.JournalKeep, left: make(map[dibs.ShardID]time.Time),
	}
	n.Outbox = &Outbox{
		registry: n.Registry, loader: n.Loader, engine: c.Engine, ledger: c.Ledger, log: c.Logger, tracer: c.Tracer,
		OutboxKick: make(chan struct{}, 1), sending: make(chan struct{}, 1),
	}
	return n
}

// Start settles what an earlier run left behind, and takes the live campaigns up.
// Claims are decided once it has returned; Loops keeps it so.
func (n *Node) Start(ctx context.Context) error {
	campaigns, err := n.Watcher.ledger.LiveCampaigns(ctx, n.Watcher.now())
	if err != nil {
		return fmt.Errorf("dibs: reading the live campaigns: %w", err)
	}
	n.Quarantine.ReadQuarantine(ctx)
	// Before any shard is opened on them: a node that asks the ledger finds them alive.
	n.Watcher.seeServers(ctx)
	n.Loader.admitAll(ctx, campaigns)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("dibs: loading the live campaigns: %w", err)
	}
	if err := n.Loader.adoptTails(ctx); err != nil {
		return err
	}
	wait.Kick(n.Settler.settleKick)
	return nil
}

// Loops are what runs in the background, each until its context ends.
func (n *Node) Loops() []func(context.Context) {
	return []func(context.Context){n.Settler.loop, n.Watcher.loop, n.Watcher.serversLoop, n.Outbox.loop, n.Situations.loop}
}

// Discover takes up what other nodes have published or changed. It is called every
// DiscoverEvery, by one goroutine.
func (n *Node) Discover(ctx context.Context) { n.Watcher.discover(ctx) }

// Tidy drops what the journal and the engine need no more. It is called now and
// then, by one goroutine.
func (n *Node) Tidy(ctx context.Context) {
	if n.Watcher.OnPatrol() {
		n.Watcher.trim(ctx)
	}
	n.Watcher.retireEnded(ctx)
	if n.Loader.stuckTail.Load() != nil {
		// What kept it from being settled at the start may be over.
		if err := n.Loader.adoptTails(ctx); err != nil && ctx.Err() == nil {
			n.Loader.log.Warn("the rest of campaigns that are over could not be looked for", "err", err)
		}
	}
	n.Quarantine.ReadQuarantine(ctx)
}

// Drain settles what is left, once the Loops have ended, until ctx ends. The next
// start settles the rest.
func (n *Node) Drain(ctx context.Context) error {
	n.Watcher.watchHeld(ctx)
	for {
		settled, err := n.Settler.once(ctx)
		if errors.Is(err, dibs.ErrPositionMoved) && n.Settler.engine.Shared() && ctx.Err() == nil {
			// Another node has settled the same entries: what is left is looked up
			// anew.
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

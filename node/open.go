// Package node wires a dibs node into a Go program: an engine, a ledger
// and the service between them. With nothing installed both are in one folder;
// the engine may be Redis instead, and the ledger MySQL or PostgreSQL.
//
// # Basics
//
// One Open serves every pair, so that a program moves from a folder to servers
// by two addresses. On the memory engine, whose journal is a table, one node
// at a time owns folder or database. On Redis any number of nodes may run at
// once: they share all they know through Redis and the ledger, claim ids
// included, whose key is in the ledger.
//
// # Caveats
//
// Nodes on Redis may share a SQLite file only when they run on one machine:
// its locks do not work over a network. The process and this package do not
// guess whether they do.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/events/sinks"
	"github.com/dibs-dev/dibs/gate/audience"
	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/gate/overload"
	"github.com/dibs-dev/dibs/gate/room"
	"github.com/dibs-dev/dibs/gate/ticket"
	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/redpacket"
	"github.com/dibs-dev/dibs/webhooks"
)

// The files in a data folder.
const (
	LedgerFile  = "ledger.db"
	JournalFile = "journal.db"
)

// Config configures a node.
type Config struct {
	// Engine decides claims: Memory, which empty means too, or the address of
	// Redis as redisengine.Config.URL takes it.
	Engine string
	// Deployments are the addresses of further deployments of Redis beside Engine, in
	// any order; at most live.MaxDeployments with it. New campaigns are divided over all
	// of them, and each stays where it is. Every node of a ledger needs the same ones.
	Deployments []string
	// Dir is the data folder; it is created when missing. Required when
	// something is kept there: the memory engine's journal, unless Ledger is in
	// a server, and the ledger, unless it has an address of its own.
	Dir string
	// Ledger is the ledger's address as sqlledger.Open takes it; empty means
	// LedgerFile in Dir. With a ledger in a server the memory engine's journal
	// is beside it.
	Ledger string
	// LedgerTimeout bounds each call of the ledger, and of a journal beside it; 0 means
	// sqlledger.DefaultTimeout. See sqlledger.Options.Timeout for its bounds.
	LedgerTimeout time.Duration
	// Login returns the user and the password of an address of Engine, Deployments, Ledger
	// or Events.Sinks at each new connection, so that they can change while the node runs;
	// nil, also as an answer, for those in the address.
	Login func(address string) *url.Userinfo
	// LedgerKeys encrypt the secrets of webhooks in the ledger; nil for none. Open refuses a
	// ledger with a secret under a key that is not there.
	LedgerKeys *keyring.Ring
	// EncryptCodes has items encrypted too, under the same keys: codes, seats. A node of a
	// version that does not know it cannot read them.
	EncryptCodes bool
	// Durability is what a yes must survive, one of dibs.Levels; empty
	// means dibs.LevelDurable. Open refuses an engine that promises less.
	Durability string
	// DurabilityLost is what becomes of claims while Redis, or a database whose commits
	// claims wait for, gives less than that, one of dibs.LostRules; empty means
	// dibs.RefuseLost. The memory engine with its journal in a file refuses always.
	DurabilityLost string
	// Service tunes the service; its Engine, Ledger, IDs, Ledgered and LedgerTimeout
	// are set by Open.
	Service ServiceConfig
	// Now is the memory engine's and the service's clock; nil means time.Now.
	Now func() time.Time
	// Migrate brings the schema of files of an older version up to date; without
	// it, Open refuses them. New files are made in any case.
	Migrate bool
	// Limits are those of the server; those of campaigns are kept without it. Its
	// Redis, Login, Key and Logger are set by Open.
	Limits limit.Config
	// Overload bounds the claims under way; its Logger is set by Open.
	Overload overload.Config
	// Events says where events go, webhooks aside, which are in the ledger, and
	// how these are posted; its Source, Login and Logger are set by Open.
	Events sinks.Config
	// HumanSecrets check the vouchers of a human check, which tickets may ask for;
	// see ticket.Config.
	HumanSecrets [][]byte
}

// Node is a running dibs.
type Node struct {
	*Service
	Engine dibs.Engine
	Ledger *sqlledger.Ledger
	// Keys are those of Config.LedgerKeys, which can be replaced while the node runs.
	Keys *keyring.Ring
	// Rooms are the waiting rooms and lotteries of campaigns, Tickets their tickets.
	Rooms   *room.Rooms
	Tickets *ticket.Tickets
	// Limits are for httpapi.Config.
	Limits *limit.Limiter
	// Overload bounds the claims under way; for httpapi.Config, too.
	Overload *overload.Guard
	// Audiences has who may claim; for httpapi.Config.
	Audiences *audience.Keeper
	events    *sinks.Dispatchers
	// deployments are those of Redis, by their numbers; none for the memory engine. first
	// is the number of the first of several that answers.
	deployments []deployment
	first       func() int
	// gateKey and limitKey are the keys that the node began with.
	gateKey, limitKey []byte
	renewals          renewals
}

// Open starts a node. dibs.ErrOwned when another process runs on the folder or
// the database of a memory engine; ErrDurability when the engine promises less
// than was asked for. Close it to settle what was granted; after a crash, the
// next Open does, or another node.
func Open(ctx context.Context, cfg Config) (n *Node, err error) {
	if err := cfg.prepare(); err != nil {
		return nil, err
	}
	n = &Node{Keys: cfg.LedgerKeys}
	defer func() {
		if err != nil {
			// The first error says more than what closing may add to it.
			_ = n.release(ctx)
			n = nil
		}
	}()
	for _, address := range cfg.Events.Sinks {
		if err := sinks.Check(address); err != nil {
			return n, fmt.Errorf("node: Config.Events.Sinks: %s: %w", sinks.Name(address), err)
		}
	}
	// The memory engine is taken first: its lock tells who owns both.
	if err = n.openEngine(ctx, &cfg); err != nil {
		return n, err
	}
	if err = n.openLedger(ctx, &cfg); err != nil {
		return n, err
	}
	sc := cfg.Service
	if cfg.Engine != Memory {
		if sc.Deployment, err = n.join(ctx, &cfg); err != nil {
			return n, err
		}
		for i := range n.deployments {
			sc.Deployments = append(sc.Deployments, n.deployments[i].number)
		}
	}
	n.watchDatabase(ctx, &cfg)
	ids, err := idgen.ForClaims(ctx, n.Ledger)
	if err != nil {
		return n, err
	}
	if sc.Split == nil {
		sc.Split = func(p dibs.RedPacketSpec) ([]int64, error) { return redpacket.Split(p, nil) }
	}
	sc.Engine, sc.Ledger, sc.IDs, sc.Ledgered = n.Engine, n.Ledger.Parts(), ids, cfg.Durability == dibs.LevelLedgered
	sc.LedgerTimeout = cfg.LedgerTimeout
	if cfg.Now != nil {
		sc.Now = cfg.Now
	}
	if err = n.openLimits(ctx, &cfg, &sc); err != nil {
		return n, err
	}
	// The audience is asked first: users who are not in it are turned away at once.
	n.Audiences = audience.NewKeeper(audience.Config{Store: n.Ledger, Logger: cfg.Service.Logger})
	sc.Erasers = append([]erasure.Eraser{n.Audiences}, sc.Erasers...)
	sc.Gates = append([]dibs.Gate{n.Audiences}, sc.Gates...)
	sc.WebhookPrivate = cfg.Events.Webhooks.AllowPrivate
	if err = n.openGates(&cfg, &sc); err != nil {
		return n, err
	}
	if n.Service, err = NewService(sc); err != nil {
		return n, err
	}
	if err = n.Service.Start(ctx); err != nil {
		return n, err
	}
	n.Rooms.Start(n.Service.Live.Registry.Held)
	n.Audiences.Start(ctx, n.Service.Live.Registry.Held)
	n.startRenewals(&cfg)
	return n, n.startSinks(&cfg, sc.Ledger)
}

// startSinks has the events carried to the sinks and posted to the endpoints.
func (n *Node) startSinks(cfg *Config, l ledger.Ledger) (err error) {
	c := cfg.Events
	c.Feed = struct {
		*events.Events
		events.SinkLedger
	}{n.Service.Events, l.Events}
	c.Endpoints = struct {
		*webhooks.Webhooks
		webhooks.DeliveryLedger
	}{n.Webhooks, l.Webhooks}
	c.Logger, c.Login = cfg.Service.Logger, cfg.Login
	// The memory engine's lock keeps others away from the ledger too.
	c.Alone = c.Alone || cfg.Engine == Memory
	n.events, err = sinks.Start(c)
	return err
}

// openLedger opens the ledger. A node whose keys do not open its secrets could not sign what it
// posts to webhooks, so it does not start.
func (n *Node) openLedger(ctx context.Context, cfg *Config) (err error) {
	opts := cfg.optionsFor(cfg.Ledger)
	opts.Tracer, opts.Keys, opts.EncryptCodes = cfg.Service.Tracer, cfg.LedgerKeys, cfg.EncryptCodes
	if n.Ledger, err = sqlledger.Open(ctx, cfg.Ledger, opts); err != nil {
		return err
	}
	if err = errors.Join(n.Ledger.CheckKeys(ctx), n.Ledger.CheckItemKeys(ctx)); err != nil {
		return fmt.Errorf("node: the ledger cannot be used with these keys (ledger_key_file): %w", err)
	}
	return nil
}

// openLimits makes the limits, which nodes on one Redis share, and the guard of
// the engine.
func (n *Node) openLimits(ctx context.Context, cfg *Config, sc *ServiceConfig) (err error) {
	if err = n.readKeys(ctx); err != nil {
		return err
	}
	c := cfg.Limits
	c.Logger, c.Key = cfg.Service.Logger, n.limitKey
	if len(n.deployments) > 0 {
		c.Redis, c.Login = n.firstAddress, cfg.Login
	}
	c.Holds = func(id string) bool { return n.Service.Live.Registry.Holds(id) }
	if n.Limits, err = limit.New(c); err != nil {
		return err
	}
	oc := cfg.Overload
	oc.Logger = cfg.Service.Logger
	n.Overload, err = overload.New(oc)
	sc.Guard = n.Overload
	return err
}

// prepare checks the configuration, fills it in, and makes the folder.
func (cfg *Config) prepare() error {
	cfg.Engine = cmp.Or(cfg.Engine, Memory)
	cfg.Service.Logger = cmp.Or(cfg.Service.Logger, slog.New(slog.DiscardHandler))
	switch {
	case len(cfg.Deployments) >= live.MaxDeployments:
		return fmt.Errorf("node: Config.Deployments: %d deployments with Config.Engine, at most %d", len(cfg.Deployments)+1, live.MaxDeployments)
	case len(cfg.Deployments) > 0 && cfg.Engine == Memory:
		return errors.New("node: Config.Deployments must be empty for the memory engine, which is one")
	}
	cfg.Durability = cmp.Or(cfg.Durability, dibs.LevelDurable)
	if rank(cfg.Durability) < 0 {
		return fmt.Errorf("node: Config.Durability must be one of %v, not %q", dibs.Levels(), cfg.Durability)
	}
	cfg.DurabilityLost = cmp.Or(cfg.DurabilityLost, dibs.RefuseLost)
	inServer := sqlledger.InServer(cfg.Ledger)
	if rules := dibs.LostRules(); !slices.Contains(rules, cfg.DurabilityLost) || cfg.Engine == Memory && !inServer && cfg.DurabilityLost != dibs.RefuseLost {
		return fmt.Errorf("node: Config.DurabilityLost must be one of %v, and %s for the memory engine with its journal in a file, not %q",
			rules, dibs.RefuseLost, cfg.DurabilityLost)
	}
	if err := sqlledger.CheckTimeout(cfg.LedgerTimeout); err != nil {
		return fmt.Errorf("node: Config.LedgerTimeout %w", err)
	}
	if cfg.Dir != "" && !inServer {
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			return fmt.Errorf("node: %w", err)
		}
	}
	if cfg.Dir == "" && (cfg.Ledger == "" || cfg.Engine == Memory && !inServer) {
		return errors.New("node: Config.Dir is required")
	}
	if cfg.Ledger == "" {
		cfg.Ledger = sqliteAt + filepath.Join(cfg.Dir, LedgerFile)
	}
	return nil
}

// sqliteAt is how the address of a file begins.
const sqliteAt = "sqlite:"

// Close settles what was granted until ctx ends, then closes everything.
func (n *Node) Close(ctx context.Context) error {
	if n.events != nil {
		// A campaign that is not published now is at the next start, or by another node.
		n.events.Close()
	}
	n.Rooms.Close()
	err := n.Service.Close(ctx)
	return errors.Join(err, n.release(ctx))
}

// release closes the engine, which completes what was decided, and the ledger.
func (n *Node) release(ctx context.Context) error {
	var errs []error
	n.renewals.close()
	if n.Rooms != nil {
		n.Rooms.Close()
	}
	if n.Audiences != nil {
		n.Audiences.Close()
	}
	if n.Limits != nil {
		n.Limits.Close()
	}
	if n.Overload != nil {
		n.Overload.Close()
	}
	// Its last commits are short; they are not cut off by a settling that used its time
	// up.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if n.Engine != nil {
		errs = append(errs, n.Engine.Close(closing))
	} else {
		errs = append(errs, n.closeRedis(closing))
	}
	if n.Ledger != nil {
		errs = append(errs, n.Ledger.Close())
	}
	return errors.Join(errs...)
}

// openGates makes what stands before the engine, and puts it behind the gates
// that the caller has. Every node of a ledger signs with the same key.
func (n *Node) openGates(cfg *Config, sc *ServiceConfig) (err error) {
	if n.Tickets, err = ticket.New(ticket.Config{Key: n.gateKey, HumanSecrets: cfg.HumanSecrets, Now: cfg.Now}); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	// An engine that nodes share keeps the places, too.
	rc := room.Config{Ledger: n.Ledger, Redis: n.Engine.Abilities().Store, Key: n.gateKey, Now: cfg.Now, Logger: cfg.Service.Logger}
	if n.Rooms, err = room.New(rc); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	// Limits are asked last: a claim that could not pass anyway takes nothing from
	// those who can.
	sc.Gates = append(slices.Clone(sc.Gates), n.Tickets, n.Rooms, n.Limits)
	return nil
}

// gateKeySize is how many bytes the key has that signs tickets and admissions.
const gateKeySize = 32

// Collectors are what stands before the engine and counts for itself; they are
// for httpapi.Config, which shows the service's numbers without being told.
func (n *Node) Collectors() []prometheus.Collector {
	return []prometheus.Collector{n.Limits, n.Audiences, n.Tickets, n.Rooms, n.Overload}
}

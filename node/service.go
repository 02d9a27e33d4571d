package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/funds"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/internal/faults"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/moving"
	"github.com/dibs-dev/dibs/orders"
	"github.com/dibs-dev/dibs/webhooks"
)

// ServiceConfig configures a Service. Engine, Ledger and IDs are required; the zero
// value of any other field means the default named beside it.
type ServiceConfig struct {
	Engine dibs.Engine
	Ledger ledger.Ledger
	// Deployment returns the number of the deployment of the engine that decides on a
	// shard; nil where the engine has no deployments.
	Deployment func(ctx context.Context, shard dibs.ShardID) (int, error)
	// Deployments are the numbers of the engine's deployments; none where it has none.
	Deployments []int
	// IDs are the claim ids of this ledger; idgen.ForClaims makes them.
	IDs dibs.ClaimIDs
	// Logger receives what operators should know; default: nothing is logged.
	Logger *slog.Logger
	// Now is the clock of the service; default time.Now. Windows are judged by
	// the engine's clock, not by this one.
	Now func() time.Time
	// SettleBatch is how many journal entries are settled in one transaction at
	// most; 1 to 65,536, default 16,384.
	SettleBatch int
	// SettleEvery is how long entries wait for company while fewer than a batch
	// are there; up to 10s, default 100ms. Rows settled together share the pages
	// that they touch, and reads do not wait for it.
	SettleEvery time.Duration
	// JournalKeep is how long settled entries stay in the journal; default 1h.
	JournalKeep time.Duration
	// TidyEvery is how often the journal is trimmed and campaigns that are over
	// leave the engine; default 30s.
	TidyEvery time.Duration
	// Split divides a red packet into its shares, in the order in which they are
	// given out; redpacket.Split does. Without it red packets are refused.
	Split func(dibs.RedPacketSpec) ([]int64, error)
	// CreditEvery is how often shares that were claimed are looked for, to be
	// credited to their users; default 500ms.
	CreditEvery time.Duration
	// ShardWait is how long a claim waits at a shard that has too little left while
	// other shards of the campaign have some; up to 5s, default 300ms.
	ShardWait time.Duration
	// LedgerTimeout is how long somebody waits for what is on its way into the ledger:
	// a claim that is being settled, or a change that others make first; default 5s,
	// and best what bounds each call of the Ledger.
	LedgerTimeout time.Duration
	// SweepEvery is how often unpaid claims are looked for whose time is over;
	// default 100ms.
	SweepEvery time.Duration
	// MaxBacklog is how many entries of a campaign may wait to be settled before
	// its claims are refused as overloaded; default 5,000,000.
	MaxBacklog int64
	// OrderHeld is how many units of a product a user may hold by regular orders that
	// are not paid, or that need no payment; 0 for any number.
	OrderHeld int64
	// Ledgered makes a yes wait until the ledger has it: the level above what the
	// engine gives.
	Ledgered bool
	// EraseEvery is how often erasures of users go on that had to wait; default 30s.
	// EraseRest is how long one that finds nothing any more waits before it looks
	// for the last time; default 1m.
	EraseEvery, EraseRest time.Duration
	// ConsoleIdle is after how long without a use a session of the console ends; 0 for never.
	ConsoleIdle time.Duration
	// Erasers have users in places that the ledger cannot read.
	Erasers []erasure.Eraser
	// Gates are asked, in order, before a claim on a campaign with a gate reaches
	// the engine.
	Gates []dibs.Gate
	// Push is how campaigns are announced to followers when nothing else is said.
	Push announce.PushConfig
	// Tracer shows where time goes; default: nobody looks.
	Tracer dibs.Tracer
	// TraceClaims has the Tracer see claims, too, which costs each of them.
	TraceClaims bool
	// Guard bounds the claims that the engine decides at a time; nil for no bound.
	Guard claims.Guard
	// WebhookPrivate lets webhooks be in private networks, and be plain HTTP.
	WebhookPrivate bool
}

// WithDefaults returns the config with every zero field set.
func (c ServiceConfig) WithDefaults() ServiceConfig {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	c.SettleBatch = cmp.Or(c.SettleBatch, 1<<14)
	c.SettleEvery = cmp.Or(c.SettleEvery, 100*time.Millisecond)
	c.JournalKeep = cmp.Or(c.JournalKeep, time.Hour)
	c.TidyEvery = cmp.Or(c.TidyEvery, 30*time.Second)
	c.CreditEvery = cmp.Or(c.CreditEvery, 500*time.Millisecond)
	c.ShardWait = cmp.Or(c.ShardWait, 300*time.Millisecond)
	c.LedgerTimeout = cmp.Or(c.LedgerTimeout, 5*time.Second)
	c.SweepEvery = cmp.Or(c.SweepEvery, 100*time.Millisecond)
	c.EraseEvery = cmp.Or(c.EraseEvery, 30*time.Second)
	c.EraseRest = cmp.Or(c.EraseRest, time.Minute)
	c.MaxBacklog = cmp.Or(c.MaxBacklog, 5_000_000)
	c.Push = c.Push.WithDefaults()
	return c
}

// Validate lists every fault of a config with defaults, naming the fields.
func (c ServiceConfig) Validate() error {
	var fs faults.List
	fs.Must(c.Engine != nil, "/Engine", "is required")
	fs.Must(c.Ledger.Live != nil, "/Ledger", "is required")
	fs.Must(c.IDs.Valid(), "/IDs", "is required")
	fs.Must(c.SettleBatch >= 1 && c.SettleBatch <= 1<<16, "/SettleBatch", "must be from 1 to 65536")
	fs.Must(c.ShardWait > 0 && c.ShardWait <= 5*time.Second, "/ShardWait", "must be above 0 and at most 5s")
	fs.Must(c.SettleEvery > 0 && c.SettleEvery <= 10*time.Second, "/SettleEvery", "must be above 0 and at most 10s")
	fs.Must(c.JournalKeep > 0, "/JournalKeep", "must be positive")
	fs.Must(c.TidyEvery > 0, "/TidyEvery", "must be positive")
	fs.Must(c.CreditEvery > 0, "/CreditEvery", "must be positive")
	fs.Must(c.LedgerTimeout > 0, "/LedgerTimeout", "must be positive")
	fs.Must(c.SweepEvery > 0, "/SweepEvery", "must be positive")
	fs.Must(c.EraseEvery > 0, "/EraseEvery", "must be positive")
	fs.Must(c.EraseRest > 0, "/EraseRest", "must be positive")
	fs.Must(c.ConsoleIdle >= 0, "/ConsoleIdle", "must not be negative")
	fs.Must(c.MaxBacklog >= 1, "/MaxBacklog", "must be at least 1")
	fs.Must(c.OrderHeld >= 0, "/OrderHeld", "must not be negative")
	fs.Must(c.Push.Threshold >= 1 && c.Push.Threshold <= gate.MaxAudience, "/Push/Threshold", "must be from 1 to 10000000")
	fs.Must(c.Push.First >= 0 && c.Push.First <= min(c.Push.Threshold, announce.MaxFirst), "/Push/First", "must be from 0 to 100000, and at most the threshold")
	fs.Must(c.Push.Rate >= 1 && c.Push.Rate <= announce.MaxPushRate, "/Push/Rate", "must be from 1 to 1000000")
	return fs.Err()
}

// Service is dibs itself: it takes claims to the engine, settles the journal
// into the ledger, and manages campaigns. Use NewService, then Start. All methods are
// safe for concurrent use.
//
// Its fields are set by NewService and do not change, but for the two atomic ones. Each part
// guards its own state. The loops begin with Start and end with life, and Close waits for them.
type Service struct {
	// Live is what the node holds of the engine's campaigns.
	Live          *live.Node
	Claims        *claims.Claims
	Moving        *moving.Mover
	Campaigns     *campaigns.Campaigns
	Products      *campaigns.Products
	Orders        *orders.Orders
	Funds         *funds.Funds
	Announcements *announce.Announcements
	Events        *events.Events
	Webhooks      *webhooks.Webhooks
	Access        *access.Access
	Revocations   *access.Revocations
	Sessions      *access.Sessions
	Approvals     *access.Approvals
	Erasures      *erasure.Erasures
	Audit         *audit.Audit

	cfg    ServiceConfig
	engine dibs.Engine
	log    *slog.Logger
	// unready is what Health has found not ready.
	unready *trouble.Log
	// backlogNear is set while a backlog is nearly full, as Health saw it last.
	backlogNear atomic.Bool
	started     atomic.Bool
	// life ends with Close.
	life   context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// NewService returns a service that is not started yet, or lists every fault of the
// config.
func NewService(cfg ServiceConfig) (*Service, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := wire(cfg)
	s.Live.Snapshots.FollowChanges(cfg.Engine.Abilities())
	if set := cfg.Engine.Abilities().Products; set != nil {
		set(s.Live.Registry.LimitedProduct)
	}
	return s, nil
}

// wire puts the parts of a service together.
func wire(cfg ServiceConfig) *Service {
	s := &Service{cfg: cfg, engine: live.Traced(cfg.Engine, cfg.Tracer, cfg.TraceClaims), log: cfg.Logger, unready: trouble.New(cfg.Logger, slog.LevelWarn)}
	s.life, s.cancel = context.WithCancel(context.Background())
	s.Live = live.New(live.Config{
		Engine: s.engine, Ledger: cfg.Ledger.Live, Logger: cfg.Logger, Now: cfg.Now, Tracer: cfg.Tracer, SettleBatch: cfg.SettleBatch,
		SettleEvery: cfg.SettleEvery, MaxBacklog: cfg.MaxBacklog, JournalKeep: cfg.JournalKeep, LedgerTimeout: cfg.LedgerTimeout, Life: s.life,
		Deployment: cfg.Deployment,
	})
	s.Moving = moving.New(moving.Config{
		Live: s.Live, Engine: s.engine, Logger: cfg.Logger, Now: cfg.Now, Wait: cfg.ShardWait, LedgerTimeout: cfg.LedgerTimeout, Life: s.life,
	})
	s.Revocations = access.NewRevocations(cfg.Ledger.Revoked, cfg.Logger, cfg.Now)
	s.Claims = claims.New(claims.Config{
		Live: s.Live, Engine: s.engine, Ledger: cfg.Ledger.Claims, Moving: s.Moving, IDs: cfg.IDs, Ledgered: cfg.Ledgered, Gates: cfg.Gates, Guard: cfg.Guard,
		Revoked: s.Revocations.Has,
	})
	s.Campaigns, s.Products = campaigns.New(campaigns.Config{
		Live: s.Live, Engine: s.engine, Ledger: cfg.Ledger.Campaigns, Moving: s.Moving, Logger: cfg.Logger, Now: cfg.Now, LedgerTimeout: cfg.LedgerTimeout, Split: cfg.Split,
		Deployments: cfg.Deployments,
	})
	s.Orders = orders.New(orders.Config{
		Live: s.Live, Claims: s.Claims, Moving: s.Moving, Engine: s.engine, Ledger: cfg.Ledger.Orders, IDs: cfg.IDs, Logger: cfg.Logger, Now: cfg.Now,
		LedgerTimeout: cfg.LedgerTimeout, SweepEvery: cfg.SweepEvery, MostHeld: cfg.OrderHeld, Life: s.life,
	})
	s.Funds = funds.New(funds.Config{
		Live: s.Live, Campaigns: s.Campaigns, Engine: s.engine, Ledger: cfg.Ledger.Funds, IDs: cfg.IDs, Logger: cfg.Logger, Now: cfg.Now,
		Every: cfg.CreditEvery,
	})
	s.Announcements = announce.New(announce.Config{
		Live: s.Live, Ledger: cfg.Ledger.Announce, Logger: cfg.Logger, Now: cfg.Now, Push: cfg.Push, Life: s.life,
	})
	s.Webhooks = webhooks.New(cfg.Ledger.Webhooks, cfg.Now, cfg.WebhookPrivate)
	s.Events = events.New(s.Live, s.Claims, cfg.Ledger.Events, cfg.Logger, cfg.Now)
	s.Access = access.New(access.Config{Ledger: cfg.Ledger.Access, Logger: cfg.Logger, Now: cfg.Now, LedgerTimeout: cfg.LedgerTimeout, Life: s.life})
	s.Sessions = access.NewSessions(cfg.Ledger.Sessions, cfg.ConsoleIdle, s.Access.ForgetKeys, cfg.Logger, cfg.Now)
	s.Approvals = access.NewApprovals(cfg.Ledger.Approvals, cfg.Logger, cfg.Now)
	s.Erasures = erasure.New(erasure.Config{
		Live: s.Live, Engine: s.engine, Ledger: cfg.Ledger.Erasure, Logger: cfg.Logger, Now: cfg.Now, Every: cfg.EraseEvery, Rest: cfg.EraseRest,
		Erasers: cfg.Erasers,
	})
	s.Audit = audit.New(audit.Config{
		Live: s.Live, Campaigns: s.Campaigns, Funds: s.Funds, Engine: s.engine, Ledger: cfg.Ledger.Audit, IDs: cfg.IDs, Logger: cfg.Logger,
	})
	return s
}

// seeSinksEvery is how many rounds of discovery pass between two looks at the
// sinks, for the metrics.
const seeSinksEvery = 10

// Start settles what an earlier run left behind, loads the live campaigns into
// the engine, and starts the background work. The service answers claims when
// it returns.
func (s *Service) Start(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("dibs: the service was started before")
	}
	// No claim may come before the node knows which tokens are revoked.
	if err := s.Revocations.Load(ctx); err != nil {
		return err
	}
	if err := s.Live.Start(ctx); err != nil {
		return err
	}
	loops := slices.Concat(s.Live.Loops(), s.Announcements.Loops())
	loops = append(loops, s.discoverLoop, s.tidyLoop, s.Moving.Loop, s.Revocations.Loop, s.Orders.Loop, s.Funds.Loop, s.Erasures.Loop)
	for _, loop := range loops {
		s.loops.Go(func() { loop(s.life) })
	}
	return nil
}

// Close stops the background work and settles what is left until ctx ends;
// the next start settles the rest. The engine and the ledger stay open.
func (s *Service) Close(ctx context.Context) error {
	s.cancel()
	if !s.started.Load() {
		return nil
	}
	s.loops.Wait()
	return s.Live.Drain(ctx)
}

// discoverLoop takes up what other nodes have published or changed.
func (s *Service) discoverLoop(ctx context.Context) {
	for n := 0; wait.Sleep(ctx, live.DiscoverEvery); n++ {
		s.Live.Discover(ctx)
		if n%seeSinksEvery == 0 {
			s.Events.See(ctx)
			s.Webhooks.See(ctx)
		}
	}
}

// tidyLoop clears away what is not needed any more.
func (s *Service) tidyLoop(ctx context.Context) {
	for wait.Sleep(ctx, s.cfg.TidyEvery) {
		s.Live.Tidy(ctx)
		s.Access.Tidy(ctx)
		s.Revocations.Tidy(ctx)
		s.Sessions.Tidy(ctx)
		s.Approvals.Tidy(ctx)
		s.Events.Trim(ctx)
	}
}

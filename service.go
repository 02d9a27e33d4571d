package dibs

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Config configures a Service. Engine, Ledger and IDs are required; the zero
// value of any other field means the default named beside it.
type Config struct {
	Engine Engine
	Ledger Ledger
	// IDs are the claim ids of this ledger; idgen.ForClaims makes them.
	IDs ClaimIDs
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
	Split func(RedPacketSpec) ([]int64, error)
	// CreditEvery is how often shares that were claimed are looked for, to be
	// credited to their users; default 500ms.
	CreditEvery time.Duration
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
	// Ledgered makes a yes wait until the ledger has it: the level above what the
	// engine gives.
	Ledgered bool
	// EraseEvery is how often erasures of users go on that had to wait; default 30s.
	// EraseRest is how long one that finds nothing any more waits before it looks
	// for the last time; default 1m.
	EraseEvery, EraseRest time.Duration
	// Erasers have users in places that the ledger cannot read.
	Erasers []Eraser
	// Gates are asked, in order, before a claim on a campaign with a gate reaches
	// the engine.
	Gates []Gate
	// Push is how campaigns are announced to followers when nothing else is said.
	Push PushConfig
	// Tracer shows where time goes; default: nobody looks.
	Tracer Tracer
	// TraceClaims has the Tracer see claims, too, which costs each of them.
	TraceClaims bool
	// Guard bounds the claims that the engine decides at a time; nil for no bound.
	Guard Guard
	// WebhookPrivate lets webhooks be in private networks, and be plain HTTP.
	WebhookPrivate bool
}

// WithDefaults returns the config with every zero field set.
func (c Config) WithDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.SettleBatch == 0 {
		c.SettleBatch = 1 << 14
	}
	if c.SettleEvery == 0 {
		c.SettleEvery = 100 * time.Millisecond
	}
	if c.JournalKeep == 0 {
		c.JournalKeep = time.Hour
	}
	if c.TidyEvery == 0 {
		c.TidyEvery = 30 * time.Second
	}
	if c.CreditEvery == 0 {
		c.CreditEvery = 500 * time.Millisecond
	}
	if c.LedgerTimeout == 0 {
		c.LedgerTimeout = 5 * time.Second
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = 100 * time.Millisecond
	}
	if c.EraseEvery == 0 {
		c.EraseEvery = 30 * time.Second
	}
	if c.EraseRest == 0 {
		c.EraseRest = time.Minute
	}
	if c.MaxBacklog == 0 {
		c.MaxBacklog = 5_000_000
	}
	c.Push = c.Push.withDefaults()
	return c
}

// Validate lists every fault of a config with defaults, naming the fields.
func (c Config) Validate() error {
	var fs []Fault
	must := func(ok bool, field, problem string) {
		if !ok {
			fs = append(fs, Fault{field, Text{EN: problem}})
		}
	}
	must(c.Engine != nil, "/Engine", "is required")
	must(c.Ledger != nil, "/Ledger", "is required")
	must(c.IDs.perm != nil, "/IDs", "is required")
	must(c.SettleBatch >= 1 && c.SettleBatch <= 1<<16, "/SettleBatch", "must be from 1 to 65536")
	must(c.SettleEvery > 0 && c.SettleEvery <= 10*time.Second, "/SettleEvery", "must be above 0 and at most 10s")
	must(c.JournalKeep > 0, "/JournalKeep", "must be positive")
	must(c.TidyEvery > 0, "/TidyEvery", "must be positive")
	must(c.CreditEvery > 0, "/CreditEvery", "must be positive")
	must(c.LedgerTimeout > 0, "/LedgerTimeout", "must be positive")
	must(c.SweepEvery > 0, "/SweepEvery", "must be positive")
	must(c.EraseEvery > 0, "/EraseEvery", "must be positive")
	must(c.EraseRest > 0, "/EraseRest", "must be positive")
	must(c.MaxBacklog >= 1, "/MaxBacklog", "must be at least 1")
	must(c.Push.Threshold >= 1 && c.Push.Threshold <= MaxAudience, "/Push/Threshold", "must be from 1 to 10000000")
	must(c.Push.First >= 0 && c.Push.First <= min(c.Push.Threshold, MaxFirst), "/Push/First", "must be from 0 to 100000, and at most the threshold")
	must(c.Push.Rate >= 1 && c.Push.Rate <= MaxPushRate, "/Push/Rate", "must be from 1 to 1000000")
	if len(fs) > 0 {
		return Invalid(fs...)
	}
	return nil
}

// Service is dibs itself: it takes claims to the engine, settles the journal
// into the ledger, and manages campaigns. Use New, then Start. All methods are
// safe for concurrent use.
type Service struct {
	cfg    Config
	engine Engine
	ledger Ledger
	log    *slog.Logger
	ids    ClaimIDs

	// lives are the campaigns that the engine holds, by id and by number.
	lives    sync.Map // string -> *live
	byNumber sync.Map // uint32 -> *live

	// admin makes changes of campaigns happen one at a time on this node.
	admin turn
	// lookups bounds what claims on campaigns that are not live may ask of the
	// ledger at once.
	lookups chan struct{}
	looked  lookups

	// orders has a place for each regular order that is before the ledger; ordering
	// counts them with those that wait for one.
	orders   chan struct{}
	ordering atomic.Int64

	settleKick chan struct{}
	outboxKick chan struct{}
	eraseKick  chan struct{}
	// sending is held while the outbox's commands are sent.
	sending chan struct{}
	// moves gathers steps of claims that are made together.
	moves gathering[*moveGroup]
	// acts gathers entries of the audit log likewise.
	acts gathering[*savedAct]
	// settling is held while a batch is settled or a shard loaded.
	settling turn
	turn     int // the shard that is settled first; guarded by settling

	// discovered has the campaigns that were live in the ledger when it was asked
	// last, by number; only discover touches it.
	discovered map[uint32]*Campaign
	// admissions are campaigns on their way into this node, or that failed.
	admissions sync.Map // string -> *admission
	// halts are the campaigns whose journal and ledger do not fit together, with what
	// was found: also those that are over, which nothing loads.
	halts sync.Map // string -> error
	// packets are the red packets that this node tends, and pushing the announcements.
	packets tendings
	pushing pushing
	// inQuarantine is what the ledger had in quarantine when it was read last.
	inQuarantine atomic.Pointer[[]Quarantined]
	asideMu      turn
	// patrols is set while this node has the fleet's lease, patrolAt is when it is
	// asked for again, the watch loop's; see keepPatrol.
	patrols  atomic.Bool
	patrolAt time.Time
	// watched is how many shards are live here; alarm has all of them looked at.
	watched atomic.Int64
	alarm   atomic.Bool
	// catalog rises when this node learns that any campaign has changed.
	catalog atomic.Int64
	// watches are the campaigns whose situation somebody watches here, by id.
	watchesMu sync.RWMutex
	watches   map[string]*watchedCampaign
	// sinksSeen are the takers of the events as they were seen last.
	sinksSeen atomic.Pointer[[]SinkView]
	// webhooksSeen is how the webhooks were then.
	webhooksSeen atomic.Pointer[webhooksSeen]
	// servers are the engine's, by address, as the ledger was told last; before Start
	// returns its caller's, then the servers loop's.
	servers map[string]string
	// left is when shards were seen to have left the engine; the tidy loop's.
	left map[ShardID]time.Time
	// stuckTail is why grants of a campaign that is over could not be settled at
	// start; nil when all were.
	stuckTail atomic.Pointer[error]

	// backlogNear is set while a backlog is nearly full, as Health saw it last.
	backlogNear atomic.Bool

	requests requestGate
	keys     keyCache
	counters counters
	stages   stages
	started  atomic.Bool
	// life ends with Close.
	life   context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// maxLookups bounds concurrent ledger look-ups caused by claims.
const maxLookups = 64

// New returns a service that is not started yet, or lists every fault of the
// config.
func New(cfg Config) (*Service, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.Background())
	s := &Service{
		life: life, cancel: cancel,
		cfg: cfg, engine: cfg.traced(), ledger: cfg.Ledger, log: cfg.Logger, ids: cfg.IDs,
		lookups:    make(chan struct{}, maxLookups),
		orders:     make(chan struct{}, maxOrders),
		left:       make(map[ShardID]time.Time),
		settleKick: make(chan struct{}, 1), outboxKick: make(chan struct{}, 1),
		eraseKick: make(chan struct{}, 1), sending: make(chan struct{}, 1), stages: newStages(),
		admin: newTurn(), settling: newTurn(), asideMu: newTurn(),
		pushing: pushing{owner: newID("node-"), kick: make(chan struct{}, 1)},
	}
	s.counters.settleSizes, s.counters.settleTimes = NewSizeHistogram(), NewTimeHistogram()
	s.hearNews()
	return s, nil
}

package redisengine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/internal/meter"
)

var (
	_ dibs.Engine = (*Engine)(nil)
	_ dibs.Worker = (*Engine)(nil)

	_ dibs.LevelKeeper = (*Engine)(nil)
)

// Config configures an engine.
type Config struct {
	// URL is where Redis is: `redis://user:password@host:6379/0`, `rediss://` for
	// TLS, `unix://` for a socket. Further addresses (`?addr=host2:6379`) make it
	// a cluster, `?master_set=name` a set behind Sentinel. Required.
	URL string
	// Dial, when it is set, makes the connections, TLS included.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Durability is what Redis must give, from dibs.LevelNone to
	// dibs.LevelReplicated. Opening fails when it does not. Empty means
	// dibs.LevelDurable.
	Durability string
	// DurabilityLost is what becomes of claims while Redis gives less than that:
	// dibs.RefuseLost, which empty means too, or dibs.WarnLost. Opening fails either
	// way.
	DurabilityLost string
	// Replicas is how many replicas confirm an answer at dibs.LevelReplicated.
	// 0 means all that are connected at the opening, one at least.
	Replicas int
	// Deadline is how long after it was sent a batch of claims may still be
	// decided, by Redis' clock. 0 means one second.
	Deadline time.Duration
	// Patience is how long a claim waits while Redis does not answer, before it
	// fails as unavailable. 0 means three seconds.
	Patience time.Duration
	// Queue is the most claims of a shard that wait here; more are refused as
	// overloaded. 0 means 65,536.
	Queue int
	// KeepRetired is how long the journal of a retired shard stays in Redis. 0
	// means a day.
	KeepRetired time.Duration
	// Logger is for lost answers and forks; nil discards.
	Logger *slog.Logger
}

// WithDefaults returns the configuration with its zero fields filled in.
func (c Config) WithDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Deadline, time.Second}, {&c.Patience, 3 * time.Second}, {&c.KeepRetired, 24 * time.Hour}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Durability == "" {
		c.Durability = dibs.LevelDurable
	}
	if c.DurabilityLost == "" {
		c.DurabilityLost = dibs.RefuseLost
	}
	if c.Queue == 0 {
		c.Queue = 1 << 16
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate lists everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.URL == "" {
		errs = append(errs, errors.New("redisengine: Config.URL is required"))
	}
	if c.Durability != "" && !slices.Contains(levels, c.Durability) {
		errs = append(errs, fmt.Errorf("redisengine: Config.Durability is %q, not one of %s", c.Durability, strings.Join(levels, ", ")))
	}
	if rules := dibs.LostRules(); c.DurabilityLost != "" && !slices.Contains(rules, c.DurabilityLost) {
		errs = append(errs, fmt.Errorf("redisengine: Config.DurabilityLost is %q, not one of %s", c.DurabilityLost, strings.Join(rules, ", ")))
	}
	if c.Deadline < 0 || c.Patience < 0 || c.KeepRetired < 0 || c.Queue < 0 || c.Replicas < 0 {
		errs = append(errs, errors.New("redisengine: Config.Deadline, Patience, KeepRetired, Queue and Replicas must not be negative"))
	}
	return errors.Join(errs...)
}

// Engine decides claims on Redis. Use Open.
type Engine struct {
	cfg    Config
	redis  server
	log    *slog.Logger
	since  time.Time // the local clock counts from here
	node   uint32    // this process among all, by chance
	name   string    // the same, for its leases
	tokens atomic.Uint32

	// lanes is replaced, never changed: a claim finds its lane without a lock.
	lanes  atomic.Pointer[laneMap]
	mu     sync.Mutex // guards lanes, and closed against those that come too late
	closed atomic.Bool

	surveys surveys

	stop       chan struct{}
	running    sync.WaitGroup // followers and surveys
	stopOnce   sync.Once
	appended   chan struct{}
	durability atomic.Pointer[string]
	level      level
	unwatch    context.CancelFunc // ends the watching of the level
	// news is who hears of shards that may have changed; nil for nobody.
	news atomic.Pointer[func(dibs.ShardID)]
	// ledger is whom Bind has tied the database to.
	ledger atomic.Pointer[string]
	work   *meter.WorkCounts
}

var (
	errClosed = dibs.Unavail(dibs.EffectNone, errors.New("redisengine: the engine is closed"))
	errBehind = errors.New("redisengine: Redis holds less of the shard than it did before: its history has forked")
)

// Open connects to Redis, loads the scripts, and returns an engine that
// decides on the shards that are open there.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var node [4]byte
	// It never fails.
	_, _ = rand.Read(node[:])
	e := &Engine{
		cfg: cfg, log: cfg.Logger, since: time.Now(), node: binary.BigEndian.Uint32(node[:]), name: rand.Text(),
		stop: make(chan struct{}), appended: make(chan struct{}, 1), work: meter.NewWorkCounts(),
	}
	e.lanes.Store(&laneMap{})
	c, err := connect(&cfg, e.invalidated)
	if err != nil {
		return nil, err
	}
	e.redis = c
	if err := e.prepare(ctx, c); err != nil {
		c.close()
		return nil, err
	}
	watching, unwatch := context.WithCancel(context.Background())
	e.unwatch = unwatch
	e.running.Add(1)
	go e.watchLevel(watching, c)
	return e, nil
}

// prepare checks Redis and makes it ready.
func (e *Engine) prepare(ctx context.Context, c *client) error {
	replicas, err := e.look(ctx, c)
	if err != nil {
		return err
	}
	if e.cfg.Durability == dibs.LevelReplicated {
		if e.cfg.Replicas == 0 {
			e.cfg.Replicas = replicas
		}
		c.await(e.cfg.Replicas, e.cfg.Deadline/2)
	}
	return c.load(ctx)
}

// lane returns a shard's lane. One is made for any shard that is decided on;
// whether Redis holds the shard, its scripts say.
func (e *Engine) lane(id dibs.ShardID) (*lane, error) {
	if e.closed.Load() {
		return nil, errClosed
	}
	if l := e.kept(id); l != nil {
		return l, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Load() {
		return nil, errClosed
	}
	before := *e.lanes.Load()
	if l := before[laneKeyOf(id)]; l != nil {
		return l, nil
	}
	after := maps.Clone(before)
	e.dropGone(after)
	l := newLane(e, id)
	after[laneKeyOf(id)] = l
	e.lanes.Store(&after)
	return l, nil
}

// anyLane is lane for reads, which may name any shard that there could be: one
// that nobody has decided on is not kept.
func (e *Engine) anyLane(id dibs.ShardID) (*lane, error) {
	if e.closed.Load() {
		return nil, errClosed
	}
	if l := e.kept(id); l != nil {
		return l, nil
	}
	return newLane(e, id), nil
}

// kept is the lane of a shard, nil when there is none.
func (e *Engine) kept(id dibs.ShardID) *lane { return (*e.lanes.Load())[laneKeyOf(id)] }

func (e *Engine) allLanes() laneMap { return *e.lanes.Load() }

// laneKey is a shard's id in one number, since every claim looks its lane up:
// numbers are what a map finds fastest.
type laneKey uint64

type laneMap map[laneKey]*lane

func laneKeyOf(id dibs.ShardID) laneKey { return laneKey(id.Campaign)<<8 | laneKey(id.Shard) }

// token names one attempt of this process.
func (e *Engine) token() string {
	var b [8]byte
	binary.BigEndian.PutUint32(b[:], e.node)
	binary.BigEndian.PutUint32(b[4:], e.tokens.Add(1))
	return string(b[:])
}

// MaxShards is how many shards a position can tell apart.
func (e *Engine) MaxShards() int { return dibs.MaxShards }

// Appended is signalled after this process' entries; see dibs.Journal. Those
// of other processes are found by looking.
func (e *Engine) Appended() <-chan struct{} { return e.appended }

func (e *Engine) signal() {
	select {
	case e.appended <- struct{}{}:
	default:
	}
}

// Work returns what was counted; see dibs.Worker. Its batches are calls of the
// claim script.
func (e *Engine) Work() dibs.EngineWork { return e.work.Work() }

// Ping returns nil when Redis answers, and gives the configured level or claims go
// on without it; see dibs.Engine. What it lacks is a *CheckError.
func (e *Engine) Ping(ctx context.Context) error {
	if e.closed.Load() {
		return errClosed
	}
	_, err := e.look(ctx, e.redis)
	var lacks *CheckError
	if errors.As(err, &lacks) && !slices.ContainsFunc(lacks.Findings, e.refusesFor) {
		return nil
	}
	return err
}

// Close refuses new claims, completes those that wait, and disconnects.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed.Store(true)
	e.mu.Unlock()
	e.stopOnce.Do(func() {
		close(e.stop)
		e.unwatch()
	})
	for _, l := range e.allLanes() {
		if err := l.end(ctx); err != nil {
			return fmt.Errorf("redisengine: closing: %w", err)
		}
	}
	e.running.Wait()
	e.yield(ctx)
	e.redis.close()
	return nil
}

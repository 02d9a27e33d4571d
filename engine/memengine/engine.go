// Package memengine is the embedded engine: it decides claims in memory, one
// mutex per campaign shard, and answers after the group commit of its journal.
//
// Decisions that arrive while a commit is in flight are written together by
// the next one, so that the cost of making them durable is shared and no
// claim waits for a timer. One process owns the journal at a time.
package memengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"

	"github.com/dibs-dev/dibs/internal/histogram"
)

var _ dibs.Engine = (*Engine)(nil)

// Config configures an engine.
type Config struct {
	// Store is the journal's table. Required; Close closes it.
	Store dibs.JournalStore
	// Owner names this process to another one that wants the journal.
	Owner string
	// Now is the engine's clock; nil means time.Now.
	Now func() time.Time
	// Logger is for failures of the journal; nil discards.
	Logger *slog.Logger
}

// Engine is the embedded engine. Use Open.
//
// Claims and commands of a shard are decided under that shard's mutex, and none of
// them does input or output there. One goroutine, the committer (commitLoop), writes
// to the store; it alone uses rows, dirtySpare and what a batch says is its own.
// productsMu guards products, and is taken before a shard's mutex.
// dirtyMu guards dirtyShards and is taken with a shard's mutex held, never the other
// way round. closed is set once and never taken back; from then on nothing is decided,
// and what was decided before is committed. A shard that is opened again is another
// object in shards: the one before is marked replaced and takes no entry.
type Engine struct {
	store      dibs.JournalStore
	generation int64
	now        func() time.Time
	log        *slog.Logger
	seed       maphash.Seed

	shards sync.Map // dibs.ShardID -> *shard

	productsMu sync.Mutex
	products   map[productKey]*product // those that have a shard here

	dirtyMu     sync.Mutex
	dirtyShards []*shard
	dirtySpare  []*shard          // the committer's
	rows        []dibs.JournalRow // the committer's

	kick     chan struct{}
	stop     chan struct{}
	stopped  chan struct{}
	appended chan struct{}
	stopOnce sync.Once
	closed   atomic.Pointer[error] // why nothing is decided any more
	fault    atomic.Pointer[error] // why the last commit failed
	stats    *histogram.EngineCounts
}

// errClosed is the cause of refusals after Close. The call that gets it decided
// nothing; a claim that was sent before with the same key may have been granted.
var errClosed = errors.New("memengine: the engine is closed")

// Open takes the journal and returns an engine that holds no shard yet.
// ErrOwned when another process has the journal.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Store == nil {
		return nil, errors.New("memengine: Config.Store is required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	generation, err := cfg.Store.Acquire(ctx, cfg.Owner)
	if err != nil {
		return nil, fmt.Errorf("memengine: taking the journal: %w", err)
	}
	e := &Engine{
		store: cfg.Store, generation: generation, now: cfg.Now, log: cfg.Logger, seed: maphash.MakeSeed(), products: make(map[productKey]*product),
		kick: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
		appended: make(chan struct{}, 1), stats: histogram.NewEngineCounts(),
	}
	// From here on the journal is this process's until Close, or until a commit is
	// fenced.
	go e.commitLoop()
	return e, nil
}

// Claim decides one claim; see dibs.Engine.
//
// An error of effect none means that nothing is granted. When ctx ends while the
// commit is under way the effect is unknown: a repeat with the same key finds out.
// Without a key there is no way to.
func (e *Engine) Claim(ctx context.Context, req dibs.EngineClaim) (dibs.Decision, error) {
	s, err := e.shard(req.Shard)
	if err == nil {
		err = ctx.Err()
	}
	if errors.Is(err, dibs.ErrNotOpen) {
		return dibs.Decision{}, err
	}
	if err != nil {
		return dibs.Decision{}, dibs.Unavail(req.Effect(), err)
	}
	nowMS := e.now().UnixMilli()
	if req.Shards != 0 && req.Shards != s.def.Load().campaign.Shards {
		return dibs.Decision{}, dibs.ErrStale
	}
	if req.Key == 0 && !req.Late && !req.OnlyKnown {
		// Without a key there is no earlier result to find, so a refusal needs
		// no more than these three loads.
		if d, refused := s.refuse(req.Quantity, nowMS); refused {
			return d, nil
		}
	}
	hash := maphash.String(e.seed, req.UserID)
	s.mu.Lock()
	d, wait, err := s.claim(&req, hash, nowMS)
	var others []*batch
	if d.OfProduct {
		others = s.product.pending(hash, req.UserID)
	}
	e.unlock(s)
	if err != nil {
		return dibs.Decision{}, err
	}
	if err := e.wait(ctx, wait); err != nil {
		return dibs.Decision{}, err
	}
	for _, b := range others {
		if err := e.wait(ctx, b); err != nil {
			return dibs.Decision{}, err
		}
	}
	return d, nil
}

// refuse answers without the lock what state, window and stock refuse.
// The values may be of different moments. Each refusal was true at its own moment,
// which is all that a refusal says; a grant is never decided here.
func (s *shard) refuse(quantity, nowMS int64) (d dibs.Decision, refused bool) {
	def := s.def.Load()
	if d.Outcome = def.gate(nowMS); d.Outcome != dibs.Granted {
		return d, true
	}
	if def.limitFirst {
		return d, false
	}
	if left := s.remaining.Load(); left < quantity {
		d.Outcome, d.Remaining = dibs.SoldOut, left
		return d, true
	}
	return d, false
}

// unlock releases the shard and tells the committer when it has something new.
// The shard is listed before its mutex is released and the committer is woken after:
// no batch waits unlisted, and kick has room for one signal, which stands for all.
func (e *Engine) unlock(s *shard) {
	fresh := s.cur != nil && s.cur.entries > 0 && !s.dirty
	if fresh {
		s.dirty = true
		s.cur.began = time.Now()
		e.dirtyMu.Lock()
		e.dirtyShards = append(e.dirtyShards, s)
		e.dirtyMu.Unlock()
	}
	s.mu.Unlock()
	if fresh {
		wait.Kick(e.kick)
	}
}

// wait returns when a batch is durable, or its error.
// Nothing may be locked: the committer needs the shard's mutex to finish the batch.
func (e *Engine) wait(ctx context.Context, b *batch) error {
	if b == nil {
		return nil
	}
	if ctx.Done() == nil {
		<-b.done
		return b.err
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return dibs.Unavail(dibs.EffectUnknown, ctx.Err())
	}
}

func (e *Engine) shard(id dibs.ShardID) (*shard, error) {
	if err := e.closed.Load(); err != nil {
		return nil, *err
	}
	v, ok := e.shards.Load(id)
	if !ok {
		return nil, dibs.ErrNotOpen
	}
	return v.(*shard), nil
}

func (e *Engine) hashBytes(user []byte) uint64 { return maphash.Bytes(e.seed, user) }

// Configure applies a campaign's definition; see dibs.Engine.
// An older version than the shard has is ignored, so that calls may arrive in any
// order. When it returns, no claim is decided by the definition before.
func (e *Engine) Configure(_ context.Context, c *dibs.Campaign) error {
	for i := range c.Shards {
		s, err := e.shard(dibs.ShardID{Campaign: c.Number, Shard: uint8(i)})
		if err != nil {
			return err
		}
		s.mu.Lock()
		if c.Version >= s.def.Load().atVersion {
			s.def.Store(define(c))
		}
		s.mu.Unlock()
	}
	return nil
}

// Adjust changes the stock; see dibs.Engine.
func (e *Engine) Adjust(ctx context.Context, a dibs.Adjustment) error {
	return e.change(ctx, a.Shard, func(s *shard, nowMS int64) (*batch, error) { return s.adjust(&a, nowMS) })
}

// Release gives a claim's stock back; see dibs.Engine.
func (e *Engine) Release(ctx context.Context, r dibs.Release) error {
	return e.change(ctx, r.Claim.ShardID, func(s *shard, nowMS int64) (*batch, error) {
		if r.Epoch != s.epoch {
			return nil, wrongEpoch(r.Epoch, s.epoch)
		}
		return s.release(r.Claim.Cursor, nowMS, e.hashBytes)
	})
}

// change runs a step on a shard and waits until it is durable.
func (e *Engine) change(ctx context.Context, id dibs.ShardID, step func(*shard, int64) (*batch, error)) error {
	s, err := e.shard(id)
	if err != nil {
		return err
	}
	nowMS := e.now().UnixMilli()
	s.mu.Lock()
	wait, err := step(s, nowMS)
	e.unlock(s)
	if err != nil {
		return err
	}
	return e.wait(ctx, wait)
}

// Retire forgets a shard; see dibs.Engine.
func (e *Engine) Retire(ctx context.Context, id dibs.ShardID) error {
	s, err := e.shard(id)
	if err != nil {
		return err
	}
	if err := e.shut(ctx, id); err != nil || s.product == nil {
		return err
	}
	s.product.keep(s)
	return nil
}

// Halt takes a shard out; see dibs.Engine.
// Its holdings are forgotten. Only Open, with a new load, makes it claimable again.
func (e *Engine) Halt(ctx context.Context, id dibs.ShardID) error { return e.shut(ctx, id) }

// Server is empty: this process decides; see dibs.Engine.
func (e *Engine) Server(context.Context, dibs.ShardID) (string, error) { return "", nil }

// Servers returns none; see dibs.Engine.
func (e *Engine) Servers(context.Context) (map[string]string, error) { return nil, nil }

// Shared is false: the journal's lease keeps other processes out.
func (e *Engine) Shared() bool { return false }

// MaxShards is 1: one process gains nothing from dividing a stock.
func (e *Engine) MaxShards() int { return 1 }

// Durability is dibs.LevelDurable: an answer is given after the commit reached disk.
func (e *Engine) Durability() string { return dibs.LevelDurable }

// Abilities returns that the engine counts what it does, its batches being commits,
// that its level depends on the journal, and that it counts over campaigns; see dibs.Engine.
func (e *Engine) Abilities() dibs.Abilities {
	return dibs.Abilities{Stats: e.stats.Stats, Level: e.level, Counts: e.counts}
}

// level is dibs.LevelDurable, and how well the journal does; see dibs.Abilities.
func (e *Engine) level() (string, []dibs.Finding) {
	f := dibs.Finding{Standing: dibs.StandingOK, Subject: "journal", Found: "written", Wanted: "written"}
	if e.fault.Load() != nil {
		f.Standing, f.Found = dibs.StandingFail, "not written, since the last commit failed"
		f.Remedy = "see to its disk, or to the database that it is in; the log says what failed"
	}
	return dibs.LevelDurable, []dibs.Finding{f}
}

// Appended is signalled after a commit; see dibs.Journal.
func (e *Engine) Appended() <-chan struct{} { return e.appended }

// Ping returns nil when the last commit succeeded, or the store could be written to
// since; see dibs.Engine.
func (e *Engine) Ping(context.Context) error {
	if err := e.closed.Load(); err != nil {
		return *err
	}
	if err := e.fault.Load(); err != nil {
		return fmt.Errorf("memengine: the last commit failed: %w", *err)
	}
	return nil
}

// fence stops deciding for good: another process owns the journal.
// It is not taken back: the store would refuse every entry from here on.
func (e *Engine) fence(reason error) { e.closed.CompareAndSwap(nil, &reason) }

// Close refuses new claims, commits what was decided and closes the store.
// It may be called twice and at once; the first call closes the store. With ctx's
// error the committer still runs, and the store stays open.
func (e *Engine) Close(ctx context.Context) error {
	refused := error(dibs.Unavail(dibs.EffectNone, errClosed))
	e.closed.CompareAndSwap(nil, &refused)
	first := false
	e.stopOnce.Do(func() { first = true; close(e.stop) })
	select {
	case <-e.stopped:
	case <-ctx.Done():
		return fmt.Errorf("memengine: closing: %w", ctx.Err())
	}
	if !first {
		return nil
	}
	return failed("closing the journal", e.store.Close())
}

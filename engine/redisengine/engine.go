package redisengine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
)

var _ dibs.Engine = (*Engine)(nil)

// Engine decides claims on Redis. Use Open.
//
// It holds no state of its own but its parts, which do not change once it is open.
// Each of them says what guards it.
type Engine struct {
	p       *process
	lanes   *lanes
	surveys surveys
	ledger  ledgerID
	unwatch context.CancelFunc // ends the watch on the level
}

// Open connects to Redis, loads the scripts, and returns an engine that
// decides on the shards that are open there.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := newProcess(cfg)
	e := &Engine{p: p, lanes: newLanes(p)}
	e.ledger.p, e.surveys.p, e.surveys.list = p, p, shardList{p}
	e.surveys.missing = make(map[dibs.ShardID]missing)
	c, err := cfg.connect(e.lanes.invalidated)
	if err != nil {
		return nil, err
	}
	p.redis = c
	if err := p.prepare(ctx, c); err != nil {
		c.Close()
		return nil, err
	}
	watching, unwatch := context.WithCancel(context.Background())
	e.unwatch = unwatch
	p.start(func() { p.level.watch(watching, c) })
	return e, nil
}

// Durability is the level that Redis gave when it was last asked: dibs.LevelNone to
// dibs.LevelReplicated.
func (e *Engine) Durability() string { return *e.p.level.given.Load() }

// MaxShards is how many shards a position can tell apart.
func (e *Engine) MaxShards() int { return dibs.MaxShards }

// Appended is signalled after this process' entries; see dibs.Journal. Those
// of other processes are found by looking.
func (e *Engine) Appended() <-chan struct{} { return e.p.appended }

// Abilities returns all that there are; see dibs.Engine. The batches of the stats are
// calls of the claim script.
func (e *Engine) Abilities() dibs.Abilities {
	return dibs.Abilities{
		Stats: e.p.stats.Stats, Level: e.p.level.now, OnChange: e.lanes.onChange, Bind: e.ledger.bind, Store: store{e.p},
		Products: func(f func(uint32) (string, error)) { e.p.products.Store(&f) }, Counts: e.counts,
	}
}

// Ping returns nil when Redis answers, and gives the configured level or claims go
// on without it; see dibs.Engine. It returns a *CheckError for an ability that Redis lacks.
func (e *Engine) Ping(ctx context.Context) error {
	if e.p.closed.Load() {
		return errClosed
	}
	_, err := e.p.level.look(ctx, e.p.redis)
	if lacks, ok := errors.AsType[*CheckError](err); ok && !slices.ContainsFunc(lacks.Findings, e.p.level.refusesFor) {
		return nil
	}
	return err
}

// Close refuses new claims, completes those that wait, and disconnects.
func (e *Engine) Close(ctx context.Context) error {
	if e.p.end() {
		e.unwatch()
	}
	for _, l := range e.lanes.last() {
		if err := l.end(ctx); err != nil {
			return fmt.Errorf("redisengine: closing: %w", err)
		}
	}
	e.p.running.Wait()
	e.yield(ctx)
	e.p.redis.Close()
	return nil
}

package router

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

var _ dibs.Engine = (*Engine)(nil)

// Deployment is an engine that is one of several.
type Deployment interface {
	dibs.Engine
	// ConfigureShard is Configure for one shard of the campaign.
	ConfigureShard(ctx context.Context, c *dibs.Campaign, shard dibs.ShardID) error
}

// Member is a deployment with its number in the ledger, above 0.
type Member struct {
	Number int
	Engine Deployment
}

// Ledger knows where shards are; see live.DeploymentLedger.
type Ledger interface {
	DeploymentOf(ctx context.Context, shard dibs.ShardID) (int, error)
	Placements(ctx context.Context, after time.Time) (map[dibs.ShardID]int, error)
}

// Config configures a router. Members and Ledger are required.
type Config struct {
	// Members are the deployments; the first one has what is of no shard. Close closes
	// them.
	Members []Member
	Ledger  Ledger
	// Logger is told of deployments that go and come back; nil discards.
	Logger *slog.Logger
	// Now is the clock by which campaigns are over; nil means time.Now.
	Now func() time.Time
}

// Engine is several deployments as one. Use New.
//
// members and byNumber do not change. placed is replaced, never changed: a claim finds
// its deployment without a lock and without a question to the ledger. mu is held while
// placed is replaced, and for no request.
type Engine struct {
	members  []*member
	byNumber map[int]*member
	ledger   Ledger
	log      *slog.Logger
	now      func() time.Time

	mu     sync.Mutex
	placed atomic.Pointer[placements]

	appended chan struct{}
	end      context.CancelFunc
	loops    sync.WaitGroup
}

// member is one deployment. away is set while it does not answer; misses counts the
// looks in a row that found so, and belongs to the watch.
type member struct {
	number int
	engine Deployment
	away   atomic.Bool
	misses int
	// refused is what calls are refused with while it is away, by their effect.
	refused map[dibs.Effect]error
}

// New returns an engine of the members, which are open. It reads from the ledger where the
// shards of all live campaigns are.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	e := &Engine{
		byNumber: make(map[int]*member, len(cfg.Members)), ledger: cfg.Ledger, log: cfg.Logger, now: cfg.Now, appended: make(chan struct{}, 1),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.now == nil {
		e.now = time.Now
	}
	for _, m := range cfg.Members {
		away := &live.DeploymentError{Number: m.Number, Cause: live.ErrAway}
		one := &member{number: m.Number, engine: m.Engine, refused: map[dibs.Effect]error{
			dibs.EffectNone: dibs.Unavail(dibs.EffectNone, away), dibs.EffectUnknown: dibs.Unavail(dibs.EffectUnknown, away),
		}}
		e.members = append(e.members, one)
		e.byNumber[m.Number] = one
	}
	e.placed.Store(&placements{})
	if err := e.refresh(ctx); err != nil {
		return nil, err
	}
	watching, end := context.WithCancel(context.Background())
	e.end = end
	e.loops.Go(func() { e.watch(watching) })
	for _, m := range e.members {
		e.loops.Go(func() { e.forward(watching, m) })
	}
	return e, nil
}

// forward signals what a deployment signals; see dibs.Journal.
func (e *Engine) forward(ctx context.Context, m *member) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.engine.Appended():
		}
		select {
		case e.appended <- struct{}{}:
		default:
		}
	}
}

// Close closes all deployments; see dibs.Engine.
func (e *Engine) Close(ctx context.Context) error {
	e.end()
	e.loops.Wait()
	errs := each(e.members, func(m *member) error { return m.engine.Close(ctx) })
	return errors.Join(errs...)
}

// each calls f for all members at the same time, and returns what each call came to.
func each[T any](members []*member, f func(m *member) T) []T {
	out := make([]T, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { out[i] = f(m) })
	}
	all.Wait()
	return out
}

package router

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
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
	// Engine is nil for a deployment that could not be reached. Open is called in the
	// background then, again and again, until it returns one.
	Engine Deployment
	// Open connects to the deployment and makes sure that it is the one of this number.
	// An error that is ErrUnfit says that it answers and cannot be used; any other that it
	// could not be reached. It is called by one goroutine at a time, with a context that
	// ends with the router, and soon returns when that has ended. Required without an
	// Engine, and else not called.
	Open func(ctx context.Context) (Deployment, error)
	// Check makes sure that the deployment in use is still the one of this number, when
	// another run of a server answers for it than before. Its errors are like those of
	// Open. It may be called by two goroutines at a time. nil finds every server right.
	Check func(ctx context.Context, d Deployment) error
}

// Ledger knows where shards are; see live.DeploymentLedger.
type Ledger interface {
	DeploymentOf(ctx context.Context, shard dibs.ShardID) (int, error)
	Placements(ctx context.Context, after time.Time) (map[dibs.ShardID]int, error)
}

// Config configures a router. Members and Ledger are required.
type Config struct {
	// Members are the deployments; the first one has what is of no shard. At least one of
	// them has an Engine. Close closes them.
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
// placed is replaced, and for no request. entering is held while a deployment becomes one
// that is used, and guards changed and product, which it is told first.
type Engine struct {
	members  []*member
	byNumber map[int]*member
	ledger   Ledger
	log      *slog.Logger
	now      func() time.Time

	mu     sync.Mutex
	placed atomic.Pointer[placements]

	entering sync.Mutex
	changed  func(dibs.ShardID)
	product  func(campaign uint32) (string, error)

	appended chan struct{}
	end      context.CancelFunc
	loops    sync.WaitGroup
}

// member is one deployment. engine is nil until it was reached, and does not change after
// that; away is set while it does not answer, and always while engine is nil. So whoever
// finds that it is not away may use it. misses counts the looks in a row that found it
// away, and belongs to the watch.
type member struct {
	number int
	engine atomic.Pointer[Deployment]
	open   func(ctx context.Context) (Deployment, error)
	check  func(ctx context.Context, d Deployment) error
	away   atomic.Bool
	misses int
	// runs are those of the servers that were checked last.
	runs atomic.Pointer[[]string]
	// refusal is what calls are refused with while it is away.
	refusal atomic.Pointer[refusal]
}

// refusal is why nothing can be asked of a deployment, by the effect of what was asked.
type refusal struct{ none, unknown error }

// refuse has calls refused for a cause while the member is away.
func (m *member) refuse(cause error) {
	err := &live.DeploymentError{Number: m.number, Cause: cause}
	m.refusal.Store(&refusal{none: dibs.Unavail(dibs.EffectNone, err), unknown: dibs.Unavail(dibs.EffectUnknown, err)})
}

// refused is what a call is refused with that has no effect.
func (m *member) refused() error { return m.refusal.Load().none }

// deployment is the member's engine, which has to be there: it is not away.
func (m *member) deployment() Deployment { return *m.engine.Load() }

// reached reports whether the member was ever reached.
func (m *member) reached() bool { return m.engine.Load() != nil }

// set makes a deployment the member's.
func (m *member) set(d Deployment) { m.engine.Store(&d) }

// New returns an engine of the members, which are open. It reads from the ledger where the
// shards of all live campaigns are.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	e := &Engine{
		byNumber: make(map[int]*member, len(cfg.Members)), ledger: cfg.Ledger, log: cfg.Logger, now: cfg.Now, appended: make(chan struct{}, 1),
	}
	e.log = cmp.Or(e.log, slog.New(slog.DiscardHandler))
	if e.now == nil {
		e.now = time.Now
	}
	for _, m := range cfg.Members {
		one := &member{number: m.Number, open: m.Open, check: m.Check}
		one.refuse(live.ErrAway)
		if m.Engine != nil {
			one.set(m.Engine)
		}
		one.away.Store(m.Engine == nil)
		e.members = append(e.members, one)
		e.byNumber[m.Number] = one
	}
	e.placed.Store(&placements{})
	each(e.reached(), func(m *member) struct{} {
		// One that has gone meanwhile is checked when it is back.
		if runs, err := runsAt(ctx, m.deployment()); err == nil {
			m.runs.Store(&runs)
		}
		return struct{}{}
	})
	if err := e.refresh(ctx); err != nil {
		return nil, err
	}
	watching, end := context.WithCancel(context.Background())
	e.end = end
	e.loops.Go(func() { e.watch(watching) })
	for _, m := range e.members {
		e.loops.Go(func() {
			if m.reached() || e.reach(watching, m) {
				e.forward(watching, m)
			}
		})
	}
	return e, nil
}

// forward signals what a deployment signals; see dibs.Journal.
func (e *Engine) forward(ctx context.Context, m *member) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.deployment().Appended():
		}
		wait.Kick(e.appended)
	}
}

// Close closes all deployments; see dibs.Engine.
func (e *Engine) Close(ctx context.Context) error {
	e.end()
	e.loops.Wait()
	errs := each(e.reached(), func(m *member) error { return m.deployment().Close(ctx) })
	return errors.Join(errs...)
}

// First returns the number of the first deployment that answers, or of the first of all
// when none does: where what is of no shard may be while the first is away. It takes no
// time.
func (e *Engine) First() int { return e.first().number }

// first is the member of First.
func (e *Engine) first() *member { return e.best(func(*member) uint64 { return 0 }) }

// reached returns the members that were reached, some of which may be away again.
func (e *Engine) reached() []*member {
	var all []*member
	for _, m := range e.members {
		if m.reached() {
			all = append(all, m)
		}
	}
	return all
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

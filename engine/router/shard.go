package router

import (
	"context"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// failed names the deployment in an error that says that it is unavailable. Others, such
// as that a shard is not open, are those of the shard.
func (m *member) failed(err error) error {
	if err == nil || !errors.Is(err, dibs.ErrUnavailable) {
		return err
	}
	return &live.DeploymentError{Number: m.number, Cause: err}
}

// ask asks the deployment of a shard.
func ask[T any](ctx context.Context, e *Engine, id dibs.ShardID, f func(d Deployment) (T, error)) (T, error) {
	m, err := e.at(ctx, id)
	if err != nil {
		var none T
		return none, err
	}
	answer, err := f(m.deployment())
	return answer, m.failed(err)
}

// tell is ask for what has no answer.
func (e *Engine) tell(ctx context.Context, id dibs.ShardID, f func(d Deployment) error) error {
	_, err := ask(ctx, e, id, func(d Deployment) (struct{}, error) { return struct{}{}, f(d) })
	return err
}

// Claim decides one claim; see dibs.Engine. It costs a look at a map more than the
// deployment's own.
func (e *Engine) Claim(ctx context.Context, req dibs.EngineClaim) (dibs.Decision, error) {
	m := (*e.placed.Load())[keyOf(req.Shard)]
	if m == nil {
		var err error
		if m, err = e.find(ctx, req.Shard); err != nil {
			return dibs.Decision{}, err
		}
	}
	if m.away.Load() {
		r := m.refusal.Load()
		if req.Effect() == dibs.EffectNone {
			return dibs.Decision{}, r.none
		}
		return dibs.Decision{}, r.unknown
	}
	return m.deployment().Claim(ctx, req)
}

// Open makes a shard claimable; see dibs.Engine. It is the first that happens on a server
// that began anew, and does not wait for the look that notices this.
func (e *Engine) Open(ctx context.Context, c *dibs.Campaign, shard dibs.ShardID, load *dibs.ShardLoad) error {
	m, err := e.at(ctx, shard)
	if err != nil {
		return err
	}
	if err := e.fit(ctx, m); err != nil {
		return dibs.Unavail(dibs.EffectNone, &live.DeploymentError{Number: m.number, Cause: err})
	}
	return m.failed(m.deployment().Open(ctx, c, shard, load))
}

// Configure makes a campaign's definition that of all its shards; see dibs.Engine. A shard
// that fails does not keep the others from it.
func (e *Engine) Configure(ctx context.Context, c *dibs.Campaign) error {
	var errs []error
	for i := range c.Shards {
		id := dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}
		errs = append(errs, e.tell(ctx, id, func(d Deployment) error { return d.ConfigureShard(ctx, c, id) }))
	}
	return errors.Join(errs...)
}

// Adjust changes the stock; see dibs.Engine.
func (e *Engine) Adjust(ctx context.Context, a dibs.Adjustment) error {
	return e.tell(ctx, a.Shard, func(d Deployment) error { return d.Adjust(ctx, a) })
}

// Release gives a claim's stock back; see dibs.Engine.
func (e *Engine) Release(ctx context.Context, r dibs.Release) error {
	return e.tell(ctx, r.Claim.ShardID, func(d Deployment) error { return d.Release(ctx, r) })
}

// Find returns a grant by its position; see dibs.Engine.
func (e *Engine) Find(ctx context.Context, p dibs.Position) (g dibs.Grant, ok bool, err error) {
	err = e.tell(ctx, p.ShardID, func(d Deployment) (err error) {
		g, ok, err = d.Find(ctx, p)
		return err
	})
	return g, ok, err
}

// Stats counts a shard; see dibs.Engine.
func (e *Engine) Stats(ctx context.Context, shard dibs.ShardID) (dibs.ShardStats, error) {
	return ask(ctx, e, shard, func(d Deployment) (dibs.ShardStats, error) { return d.Stats(ctx, shard) })
}

// Retire forgets a shard; see dibs.Engine.
func (e *Engine) Retire(ctx context.Context, shard dibs.ShardID) error {
	return e.tell(ctx, shard, func(d Deployment) error { return d.Retire(ctx, shard) })
}

// Halt takes a shard out; see dibs.Engine.
func (e *Engine) Halt(ctx context.Context, shard dibs.ShardID) error {
	return e.tell(ctx, shard, func(d Deployment) error { return d.Halt(ctx, shard) })
}

// Server names the run of the server that has a shard; see dibs.Engine.
func (e *Engine) Server(ctx context.Context, shard dibs.ShardID) (string, error) {
	return ask(ctx, e, shard, func(d Deployment) (string, error) { return d.Server(ctx, shard) })
}

// ReadJournal returns entries after a place; see dibs.Journal.
func (e *Engine) ReadJournal(ctx context.Context, shard dibs.ShardID, after dibs.Cursor, limit int) ([]dibs.Entry, error) {
	return ask(ctx, e, shard, func(d Deployment) ([]dibs.Entry, error) { return d.ReadJournal(ctx, shard, after, limit) })
}

// TrimJournal drops settled entries; see dibs.Journal.
func (e *Engine) TrimJournal(ctx context.Context, shard dibs.ShardID, upTo dibs.Cursor, before time.Time) error {
	return e.tell(ctx, shard, func(d Deployment) error { return d.TrimJournal(ctx, shard, upTo, before) })
}

// JournalEnd returns the place of a shard's last entry; see dibs.Journal.
func (e *Engine) JournalEnd(ctx context.Context, shard dibs.ShardID) (dibs.Cursor, error) {
	return ask(ctx, e, shard, func(d Deployment) (dibs.Cursor, error) { return d.JournalEnd(ctx, shard) })
}

// Lease makes this process the one that settles and loads a shard; see dibs.Journal.
func (e *Engine) Lease(ctx context.Context, shard dibs.ShardID, settled dibs.Cursor) (bool, error) {
	return ask(ctx, e, shard, func(d Deployment) (bool, error) { return d.Lease(ctx, shard, settled) })
}

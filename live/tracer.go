package live

import (
	"context"
	"log/slog"

	"github.com/dibs-dev/dibs"
)

// begin begins a span. Without a tracer it does nothing.
func begin(ctx context.Context, t dibs.Tracer, name string, about ...slog.Attr) (context.Context, func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	return t.Begin(ctx, name, about...)
}

// tracedEngine is an engine whose changes are parts of the traces that they are
// made in. It does not trace questions: those are asked all the time.
type tracedEngine struct {
	dibs.Engine
	tracer dibs.Tracer
}

// Traced puts a tracer around an engine, claims included when they are to be
// seen. Without a tracer nothing stands before the engine.
func Traced(engine dibs.Engine, t dibs.Tracer, claims bool) dibs.Engine {
	switch {
	case t == nil:
		return engine
	case claims:
		return &tracedClaims{tracedEngine{engine, t}}
	}
	return &tracedEngine{engine, t}
}

// part runs a call as a part of a trace.
func (e *tracedEngine) part(ctx context.Context, name string, shard dibs.ShardID, do func(context.Context) error) error {
	ctx, end := e.tracer.Part(ctx, "engine "+name, slog.String("dibs.shard", shard.String()))
	err := do(ctx)
	end(err)
	return err
}

// Open implements Engine.
func (e *tracedEngine) Open(ctx context.Context, c *dibs.Campaign, shard dibs.ShardID, load *dibs.ShardLoad) error {
	return e.part(ctx, "open", shard, func(ctx context.Context) error { return e.Engine.Open(ctx, c, shard, load) })
}

// Configure implements Engine.
func (e *tracedEngine) Configure(ctx context.Context, c *dibs.Campaign) error {
	return e.part(ctx, "configure", dibs.ShardID{Campaign: c.Number}, func(ctx context.Context) error { return e.Engine.Configure(ctx, c) })
}

// Adjust implements Engine.
func (e *tracedEngine) Adjust(ctx context.Context, a dibs.Adjustment) error {
	return e.part(ctx, "adjust", a.Shard, func(ctx context.Context) error { return e.Engine.Adjust(ctx, a) })
}

// Release implements Engine.
func (e *tracedEngine) Release(ctx context.Context, r dibs.Release) error {
	return e.part(ctx, "release", r.Claim.ShardID, func(ctx context.Context) error { return e.Engine.Release(ctx, r) })
}

// Retire implements Engine.
func (e *tracedEngine) Retire(ctx context.Context, shard dibs.ShardID) error {
	return e.part(ctx, "retire", shard, func(ctx context.Context) error { return e.Engine.Retire(ctx, shard) })
}

// ReadJournal implements Engine.
func (e *tracedEngine) ReadJournal(ctx context.Context, shard dibs.ShardID, after dibs.Cursor, limit int) (entries []dibs.Entry, err error) {
	err = e.part(ctx, "read journal", shard, func(ctx context.Context) error {
		entries, err = e.Engine.ReadJournal(ctx, shard, after, limit)
		return err
	})
	return entries, err
}

// tracedClaims is a tracedEngine that shows claims, too.
type tracedClaims struct{ tracedEngine }

// Claim implements Engine.
func (e *tracedClaims) Claim(ctx context.Context, req dibs.EngineClaim) (d dibs.Decision, err error) {
	err = e.part(ctx, "claim", req.Shard, func(ctx context.Context) error {
		d, err = e.Engine.Claim(ctx, req)
		return err
	})
	return d, err
}

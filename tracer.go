package dibs

import (
	"context"
	"log/slog"
)

// Tracer shows where time goes, span by span. Package tracing has the one that
// there is. It is safe for concurrent use.
type Tracer interface {
	// Begin begins a span: a part of the trace that ctx is in, or else a trace of
	// its own. What belongs to it is done with the context returned; end ends it,
	// with the error that it ended in.
	Begin(ctx context.Context, name string, about ...slog.Attr) (in context.Context, end func(error))
	// Part is Begin where ctx is in a trace that is kept, and nothing elsewhere.
	Part(ctx context.Context, name string, about ...slog.Attr) (in context.Context, end func(error))
}

// untraced ends what nobody traces.
func untraced(error) {}

// begin begins a span, where there is a tracer.
func (s *Service) begin(ctx context.Context, name string, about ...slog.Attr) (context.Context, func(error)) {
	if s.cfg.Tracer == nil {
		return ctx, untraced
	}
	return s.cfg.Tracer.Begin(ctx, name, about...)
}

// tracedEngine is an engine whose changes are parts of the traces that they are
// made in. What is asked of it, it leaves alone: that happens all the time.
type tracedEngine struct {
	Engine
	tracer Tracer
}

// traced puts a tracer around the engine, claims included when they are to be
// seen. Without a tracer nothing stands between the service and the engine.
func (c *Config) traced() Engine {
	switch {
	case c.Tracer == nil:
		return c.Engine
	case c.TraceClaims:
		return &tracedClaims{tracedEngine{c.Engine, c.Tracer}}
	}
	return &tracedEngine{c.Engine, c.Tracer}
}

// part runs a call as a part of a trace.
func (e *tracedEngine) part(ctx context.Context, name string, shard ShardID, do func(context.Context) error) error {
	ctx, end := e.tracer.Part(ctx, "engine "+name, slog.String("dibs.shard", shard.String()))
	err := do(ctx)
	end(err)
	return err
}

// Open implements Engine.
func (e *tracedEngine) Open(ctx context.Context, c *Campaign, shard ShardID, load *ShardLoad) error {
	return e.part(ctx, "open", shard, func(ctx context.Context) error { return e.Engine.Open(ctx, c, shard, load) })
}

// Configure implements Engine.
func (e *tracedEngine) Configure(ctx context.Context, c *Campaign) error {
	return e.part(ctx, "configure", ShardID{Campaign: c.Number}, func(ctx context.Context) error { return e.Engine.Configure(ctx, c) })
}

// Adjust implements Engine.
func (e *tracedEngine) Adjust(ctx context.Context, a Adjustment) error {
	return e.part(ctx, "adjust", a.Shard, func(ctx context.Context) error { return e.Engine.Adjust(ctx, a) })
}

// Release implements Engine.
func (e *tracedEngine) Release(ctx context.Context, r Release) error {
	return e.part(ctx, "release", r.Claim.ShardID, func(ctx context.Context) error { return e.Engine.Release(ctx, r) })
}

// Retire implements Engine.
func (e *tracedEngine) Retire(ctx context.Context, shard ShardID) error {
	return e.part(ctx, "retire", shard, func(ctx context.Context) error { return e.Engine.Retire(ctx, shard) })
}

// ReadJournal implements Engine.
func (e *tracedEngine) ReadJournal(ctx context.Context, shard ShardID, after Cursor, limit int) (entries []Entry, err error) {
	err = e.part(ctx, "read journal", shard, func(ctx context.Context) error {
		entries, err = e.Engine.ReadJournal(ctx, shard, after, limit)
		return err
	})
	return entries, err
}

// tracedClaims is a tracedEngine that shows claims, too.
type tracedClaims struct{ tracedEngine }

// Claim implements Engine.
func (e *tracedClaims) Claim(ctx context.Context, req EngineClaim) (d Decision, err error) {
	err = e.part(ctx, "claim", req.Shard, func(ctx context.Context) error {
		d, err = e.Engine.Claim(ctx, req)
		return err
	})
	return d, err
}

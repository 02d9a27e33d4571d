package redisengine

import (
	"context"
	"errors"

	"github.com/dibs-dev/dibs"
)

// Claim decides one claim; see dibs.Engine.
func (e *Engine) Claim(ctx context.Context, req dibs.EngineClaim) (dibs.Decision, error) {
	l, err := e.lanes.lane(req.Shard)
	if err != nil {
		return dibs.Decision{}, err
	}
	if err := encodable(&req); err != nil {
		return dibs.Decision{}, err
	}
	if outcome, ok := l.follower.refuses(&req); ok {
		return dibs.Decision{Outcome: outcome}, nil
	}
	lost := e.p.level.lost.Load() && !req.OnlyRepeat
	if lost {
		if req.Key == 0 {
			return dibs.Decision{Outcome: dibs.Unavailable}, nil
		}
		// Nothing is granted, but a yes that was given is found.
		req.OnlyRepeat = true
	}
	if err := ctx.Err(); err != nil {
		return dibs.Decision{}, dibs.Unavail(dibs.EffectNone, err)
	}
	w := newWaiter(ctx, &req)
	err = l.enqueue(w)
	for errors.Is(err, errEvicted) {
		if l, err = e.lanes.lane(req.Shard); err == nil {
			err = l.enqueue(w)
		}
	}
	if err != nil {
		w.free()
		return dibs.Decision{}, err
	}
	<-w.done
	d, err := w.decision()
	w.free()
	if errors.Is(err, errLevelLost) {
		return e.Claim(ctx, req)
	}
	if lost && d.Outcome == dibs.Overloaded {
		d.Outcome = dibs.Unavailable
	}
	return d, err
}

package redisengine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// The states of a waiter. Only a waiting one can be left without a trace. The one
// that moves it to left or answered ends it.
const (
	waiting int32 = iota
	taken
	answered
	left
)

// waiter is one claim on its way, and its caller who waits.
//
// state decides which goroutine writes the rest: the one that moves it to answered or
// left sets the result, then signals done once. Until then only the call that took
// the waiter looks at it; the caller reads the result after done, and frees it.
type waiter struct {
	req dibs.EngineClaim
	// ctx is the caller's: it is looked at from outside while the caller waits.
	ctx   context.Context
	state atomic.Int32
	// born is when it was taken into a batch first: its patience begins there.
	born time.Time
	// done takes one signal, after one of the three below is set.
	done chan struct{}
	told told
	// found is what the journal says of a claim whose answer was lost.
	found *dibs.Decision
	err   error
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

// newWaiter returns a waiter for a claim.
func newWaiter(ctx context.Context, req *dibs.EngineClaim) *waiter {
	t := waiters.Get().(*waiter)
	t.req, t.ctx = *req, ctx
	t.state.Store(waiting)
	return t
}

// free gives a waiter back that has ended. One that its caller has left is not
// used again: a call still has it.
func (t *waiter) free() {
	if t.state.Load() == left {
		return
	}
	*t = waiter{done: t.done}
	waiters.Put(t)
}

// answer ends a waiter that was taken, unless its caller has left. It must not be
// touched afterwards; the same holds for find and fail.
func (t *waiter) answer(of told) {
	if t.state.CompareAndSwap(taken, answered) {
		t.told = of
		t.done <- struct{}{}
	}
}

// find is answer with what the journal says.
func (t *waiter) find(d *dibs.Decision) {
	if t.state.CompareAndSwap(taken, answered) {
		t.found = d
		t.done <- struct{}{}
	}
}

// fail is answer with an error.
func (t *waiter) fail(err error) {
	if t.state.CompareAndSwap(taken, answered) {
		t.err = err
		t.done <- struct{}{}
	}
}

// decision is what became of a waiter that was answered.
func (t *waiter) decision() (dibs.Decision, error) {
	switch {
	case t.err != nil:
		return dibs.Decision{}, t.err
	case t.found != nil:
		return *t.found, nil
	}
	return t.told.decision(&t.req)
}

// leave ends a waiter whose caller waits no longer.
func (t *waiter) leave() {
	err := t.ctx.Err()
	if err == nil {
		return
	}
	switch {
	case t.state.CompareAndSwap(waiting, left):
		t.err = dibs.Unavail(dibs.EffectNone, err)
	case t.state.CompareAndSwap(taken, left):
		t.err = dibs.Unavail(dibs.EffectUnknown, err)
	default:
		return
	}
	t.done <- struct{}{}
}

package redisengine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// The states of a ticket. Only a waiting one can be left without a trace. Who
// moves it to left or answered is the one who ends it.
const (
	waiting int32 = iota
	taken
	answered
	left
)

// ticket is one claim on its way.
type ticket struct {
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

var tickets = sync.Pool{New: func() any { return &ticket{done: make(chan struct{}, 1)} }}

// newTicket is a ticket that waits.
func newTicket(ctx context.Context, req *dibs.EngineClaim) *ticket {
	t := tickets.Get().(*ticket)
	t.req, t.ctx = *req, ctx
	t.state.Store(waiting)
	return t
}

// free gives a ticket back that has ended. One that its caller has left is not
// used again: a call still has it.
func (t *ticket) free() {
	if t.state.Load() == left {
		return
	}
	*t = ticket{done: t.done}
	tickets.Put(t)
}

// answer ends a ticket that was taken, unless its caller has left. It must not be
// touched afterwards; the same holds for find and fail.
func (t *ticket) answer(of told) {
	if t.state.CompareAndSwap(taken, answered) {
		t.told = of
		t.done <- struct{}{}
	}
}

// find is answer with what the journal says.
func (t *ticket) find(d *dibs.Decision) {
	if t.state.CompareAndSwap(taken, answered) {
		t.found = d
		t.done <- struct{}{}
	}
}

// fail is answer with an error.
func (t *ticket) fail(err error) {
	if t.state.CompareAndSwap(taken, answered) {
		t.err = err
		t.done <- struct{}{}
	}
}

// decision is what became of a ticket that was answered.
func (t *ticket) decision() (dibs.Decision, error) {
	switch {
	case t.err != nil:
		return dibs.Decision{}, t.err
	case t.found != nil:
		return *t.found, nil
	}
	return t.told.decision(&t.req)
}

// leave ends a ticket whose caller waits no longer.
func (t *ticket) leave() {
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

// mindEvery is how often callers are looked for that wait no longer. They do not
// look themselves: to wait for an answer and for a context at once costs a caller
// more than anything else that a claim does on its node.
const mindEvery = 100 * time.Millisecond

// mind ends the tickets of callers that wait no longer, for as long as anyone
// waits.
func (l *lane) mind() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.queue {
		t.leave()
	}
	for _, b := range l.calls {
		// Once it has landed, its tickets may be those of other claims.
		if b.aboard > 0 {
			for _, t := range b.tickets {
				t.leave()
			}
		}
	}
	if l.minding = len(l.queue) > 0 || l.flying > 0; l.minding {
		time.AfterFunc(mindEvery, l.mind)
	}
}

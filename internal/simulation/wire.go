package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
)

// Why a call has no answer.
var (
	errNoAnswer = errors.New("no answer came")
	errDead     = errors.New("the node is dead")
	errClosed   = errors.New("the engine is closed")
	errDeadlock = errors.New("deadlock found when trying to get lock; try restarting transaction")
	errNoLedger = errors.New("the database does not answer")
)

const (
	// patience is how long a node waits for a server.
	patience = 3 * time.Second
	// look is how often a waiting node looks whether a server is back.
	look = 50 * time.Millisecond
)

// loss is what becomes of a call on its way.
type loss int

const (
	kept loss = iota
	// lostRequest: it never gets there. lostAnswer: it is carried out, and the
	// caller does not learn it. tooLate: it is carried out after the caller has
	// given up. refused: it is not carried out, and the caller learns that.
	lostRequest
	lostAnswer
	tooLate
	refused
)

// fate is what happens to one call.
// It is drawn whole before the call begins, so that how long a call takes changes no
// later chance.
type fate struct {
	there, back time.Duration
	loss        loss
	// by is how long after the caller gave up a late call is carried out.
	by time.Duration
	// before and after say that the process dies just then.
	before, after bool
}

// steps are the operations that are parts of something longer.
var steps = map[string]bool{
	"list": true, "shut": true, "load": true, "open": true, "load shard": true, "fence": true, "settle": true, "retire": true,
	"release": true, "adjust": true, "drop command": true, "lease": true, "halt": true, "end": true,
}

// fate draws what happens to the next call of an operation by a node. Each
// operation of each node has chances of its own, so that a call more of another
// one changes nothing for it.
func (w *world) fate(node, op string, o *odds) fate {
	w.fates.Lock()
	defer w.fates.Unlock()
	d := w.fates.of(node + " " + op)
	f := fate{there: d.short()}
	if w.calm.Load() {
		// A delay on the way back would only make more work of it.
		return f
	}
	f.back = d.short()
	stall := o.stall
	if steps[op] {
		// A call of several steps has moments between them.
		stall *= 6
		f.before, f.after = d.chance(o.die), d.chance(o.die)
	}
	if d.chance(stall) {
		f.there += d.upTo(o.longest)
	}
	if d.chance(stall) {
		f.back += d.upTo(o.longest)
	}
	switch x := d.Float64(); {
	case x < o.request:
		f.loss = lostRequest
	case x < o.request+o.answer:
		f.loss = lostAnswer
	case x < o.request+o.answer+o.late:
		f.loss, f.by = tooLate, d.upTo(5*time.Second)
	case x < o.request+o.answer+o.late+o.refused:
		f.loss = refused
	}
	return f
}

// ask has the server that a node talks to run a script, if the wire lets it. What
// is carried out late answers nobody.
func ask[T any](ctx context.Context, e *engine, op string, effect dibs.Effect, run func(*server) (T, error)) (T, error) {
	var nothing T
	p, w := e.p, e.p.w
	f := w.fate(p.site.name, op, &w.plan.wire)
	fail := func(err error) (T, error) { return nothing, dibs.Unavail(effect, err) }
	if e.isClosed() {
		return fail(errClosed)
	}
	if err := p.wait(ctx, f.there); err != nil {
		return fail(err)
	}
	if p.site.mayDie(p, f.before, op) {
		return fail(errDead)
	}
	if f.loss == lostRequest {
		return fail(errors.Join(errNoAnswer, p.wait(ctx, patience)))
	}
	step := func(v *server) (T, error) {
		v.mu.Lock()
		defer v.mu.Unlock()
		return run(v)
	}
	for since := time.Now(); ; {
		v, open := p.site.way()
		if open {
			if f.loss == tooLate {
				w.later(f.by+patience, func() { _, _ = step(v) })
				return fail(errors.Join(errNoAnswer, p.wait(ctx, patience)))
			}
			t, err := step(v)
			if p.site.mayDie(p, f.after, op) {
				return fail(errDead)
			}
			if f.loss == lostAnswer {
				return fail(errors.Join(errNoAnswer, p.wait(ctx, patience)))
			}
			if lost := p.wait(ctx, f.back); lost != nil {
				return fail(lost)
			}
			return t, err
		}
		if time.Since(since) >= patience {
			if v != nil {
				// It lies in the buffers of a server that is frozen.
				w.onWaking(v, func() { _, _ = step(v) })
			}
			return fail(errNoAnswer)
		}
		if err := p.wait(ctx, look); err != nil {
			return fail(err)
		}
	}
}

// askLedger has the ledger run a transaction, if the wire lets it.
// A read has no effect, so whatever is lost of it is refused. A write runs with a
// context that does not end: a database carries out what it was sent.
func askLedger[T any](ctx context.Context, l *ledger, op string, writes bool, run func(context.Context) (T, error)) (T, error) {
	var nothing T
	p, w := l.p, l.p.w
	f := w.fate(p.site.name, op, &w.plan.ledger)
	if err := p.wait(ctx, f.there+w.slowLedger()); err != nil {
		return nothing, dibs.Unavail(dibs.EffectNone, err)
	}
	for since := time.Now(); w.noLedger.Load(); {
		if time.Since(since) >= patience {
			return nothing, dibs.Unavail(dibs.EffectNone, errNoLedger)
		}
		if err := p.wait(ctx, look); err != nil {
			return nothing, dibs.Unavail(dibs.EffectNone, err)
		}
	}
	whole := context.WithoutCancel(ctx)
	if !writes && f.loss != kept {
		f.loss = refused
	}
	switch f.loss {
	case refused, lostRequest:
		return nothing, dibs.Unavail(dibs.EffectNone, errDeadlock)
	case tooLate:
		w.later(f.by, func() {
			_, err := run(whole)
			w.story.tell("ledger: a late %s of %s: %v", op, p.name, err)
		})
		return nothing, dibs.Unavail(dibs.EffectUnknown, errNoAnswer)
	}
	if p.site.mayDie(p, f.before, op) {
		return nothing, dibs.Unavail(dibs.EffectNone, errDead)
	}
	t, err := run(whole)
	if p.site.mayDie(p, f.after, op) {
		return nothing, dibs.Unavail(dibs.EffectUnknown, errDead)
	}
	if f.loss == lostAnswer {
		w.story.tell("ledger: %s of %s is answered with a failure, and was: %v", op, p.name, err)
		return nothing, dibs.Unavail(dibs.EffectUnknown, errNoAnswer)
	}
	if lost := p.wait(ctx, f.back); lost != nil {
		return nothing, dibs.Unavail(dibs.EffectUnknown, lost)
	}
	return t, err
}

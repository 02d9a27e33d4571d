package enginetest

import (
	"context"
	"errors"
	"math"

	"github.com/dibs-dev/dibs"
)

var closingChecks = []Check{
	{"closing/a retired shard is not open, and opens again from the ledger", checkRetire},
	{"closing/opening again replaces what the engine held", checkOpenAgain},
	{"closing/opening again under load keeps every yes", checkOpenUnderLoad},
	{"closing/a closed engine is unavailable", checkClosed},
	{"closing/close completes what was decided", checkCloseUnderLoad},
	{"closing/a cancelled request has no lost effect", checkCancelled},
	{"closing/requests cancelled while they wait have no lost effect", checkCancelledWaiting},
}

// checkRetire checks that Retire forgets one shard and nothing else. After it claims
// and Stats return ErrNotOpen, so that the service answers from the ledger instead of
// granting from an empty shard. The other shards go on. A retired shard can be opened
// again from the ledger, in a new epoch, and then answers repeats as before.
func checkRetire(r *rig) {
	o, other := r.offer(3, nil), r.offer(3, nil)
	g := o.grant("ann", 1, 1)
	h := other.grant("ann", 1, 1)
	// The caller's duty: the campaign has ended, and every entry is in the ledger.
	o.configure(func(c *dibs.Campaign) { c.State = dibs.EndedState })
	o.settle(math.MaxInt)
	o.no(o.eng.Retire(o.ctx, o.shard), "retire shard %v", o.shard)
	_, err := o.eng.Claim(o.ctx, o.request("ann", 1, 1))
	o.is(err, "a claim on a retired shard", dibs.ErrNotOpen)
	_, err = o.eng.Stats(o.ctx, o.shard)
	o.is(err, "the count of a retired shard", dibs.ErrNotOpen)
	// Find may say either that the shard is not open or that there is no such grant.
	_, ok, err := o.eng.Find(o.ctx, g.Position)
	o.is(err, "find on a retired shard", nil, dibs.ErrNotOpen)
	o.that(!ok, "a grant of a retired shard is found")
	r.holds("ann", h)
	other.grant("bob", 1, 1)

	// From here on only the ledger knows the first grant.
	o.open()
	o.replay(1, g)
	o.counts(2, 1)
	o.refuse("bob", 1, 1, dibs.Ended)
	r.holds("ann", g, h)
	o.settle(math.MaxInt)
}

// checkOpenAgain opens a shard anew in an engine that runs, as a repair does. The load
// holds the settled grant, the journal's tail the other one: an engine that keeps its
// own state besides counts both twice, and one that ignores the tail forgets a yes.
func checkOpenAgain(r *rig) {
	o := r.offer(5, limit(5))
	g := o.grant("ann", 1, 2)
	o.settle(math.MaxInt)
	h := o.grant("bob", 1, 1)
	// A rebuild in a running engine: the tail after the settled position counts.
	o.open()
	o.replay(1, g)
	o.replay(1, h)
	o.counts(2, 3)
	i := o.grant("cid", 1, 1)
	equal(r, "epoch", i.Epoch, 2)
	r.holds("ann", g)
	o.settle(math.MaxInt)
	o.counts(1, 4)
}

// checkOpenUnderLoad rebuilds a shard while it grants: what it granted until then
// belongs to the tail, and nothing is granted past the tail's end. The journal's end
// under the old epoch and the first entry of the new one must be one step: a grant
// between them would be in neither the load nor the tail.
func checkOpenUnderLoad(r *rig) {
	o := r.offer(1_000_000, nil)
	const clients, rebuilds = 32, 5
	l := newLoad(o, clients)
	l.during(r.ctx, func() {
		defer close(l.stop)
		for range rebuilds {
			// A part of the tail is settled each time, so that load and tail meet somewhere else
			// at each rebuild.
			o.settle(100)
			o.open()
		}
	})
	l.kept()
	o.settle(math.MaxInt)
}

// checkClosed checks what a closed engine answers: Unavailable with an effect that is
// true. The effect none tells a client that no claim of this key stands. An engine
// that is not Shared must say unknown for a claim with a key, since it cannot look the
// key up any more. On a Shared engine, none speaks of this call alone.
func checkClosed(r *rig) {
	o := r.offer(3, nil)
	o.grant("ann", 1, 1)
	eng := r.eng
	r.stop(false)
	fails := func(user string, key uint64, want dibs.Effect) {
		d, err := eng.Claim(r.ctx, o.request(user, key, 1))
		r.is(err, "a claim on a closed engine", dibs.ErrUnavailable)
		r.that(d.Outcome != dibs.Granted || d.Grant.Seq == 0, "a closed engine answers %+v beside its error", d)
		e, ok := errors.AsType[*dibs.Error](err)
		r.that(ok && e.Effect == want, "a claim on a closed engine fails with %+v, want the effect %s", err, want)
	}
	// Without a key there is no earlier call that could have granted this claim.
	fails("bob", 0, dibs.EffectNone)
	if eng.Shared() {
		fails("ann", 1, dibs.EffectNone)
	} else {
		// It was granted before, and cannot be looked up.
		fails("ann", 1, dibs.EffectUnknown)
	}
	r.that(eng.Ping(r.ctx) != nil, "a closed engine answers a ping")
}

// checkCloseUnderLoad closes while claims run: those that were granted are there
// afterwards. Close ends what was decided before it returns: a caller that gets an
// error of unknown effect finds out by its repeat, and a yes stays a yes.
func checkCloseUnderLoad(r *rig) {
	o := r.offer(1_000_000, nil)
	const clients = 32
	l := newLoad(o, clients)
	l.during(r.ctx, func() { r.stop(false) })
	r.start()
	o.open()
	l.kept()
	o.settle(math.MaxInt)
}

// checkCancelled sends a claim whose context has ended already. The engine may decide
// it or refuse to; both are fine, but the answer has to be true. A wrong
// implementation answers yes without a grant, or takes stock for a claim that no
// repeat finds.
func checkCancelled(r *rig) {
	o := r.offer(3, nil)
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	d, err := o.eng.Claim(ctx, o.request("ann", 1, 1))
	if err != nil {
		o.cancelledError(err)
	} else {
		equal(r, "the outcome of a cancelled claim", d.Outcome, dibs.Granted)
	}
	// One unit is gone in the end, whichever of the two calls took it.
	again := o.claim("ann", 1, 1)
	equal(r, "the outcome of its repeat", again.Outcome, dibs.Granted)
	o.that(err != nil || again.Replayed, "a grant is not found by its repeat")
	o.counts(2, 1)
	o.replay(1, again.Grant)
}

// cancelledError expects an error that a cancelled request may return.
func (o *offer) cancelledError(err error) {
	o.is(err, "a cancelled request", context.Canceled, context.DeadlineExceeded, dibs.ErrUnavailable, dibs.ErrOverloaded)
}

// checkCancelledWaiting cancels each request at about the moment at which it waits for
// its commit or its batch. The decision may stand although nobody waits for it: the
// repeat must find it. An engine that drops the waiting caller and its stock together,
// or only one of them, loses units or sells them twice.
func checkCancelledWaiting(r *rig) {
	o := r.offer(1_000, nil)
	const n = 200
	grants := make([]dibs.Grant, n)
	r.together(n, func(i int) {
		ctx, cancel := context.WithCancel(r.ctx)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			cancel()
		}()
		req := o.request(userName(i), 1, 1)
		d, err := o.eng.Claim(ctx, req)
		// The cancelling goroutine has ended before the repeat begins.
		<-gone
		if err != nil {
			o.cancelledError(err)
		}
		again := o.claim(req.UserID, 1, 1)
		o.that(again.Outcome == dibs.Granted, "the repeat of a cancelled claim is %v", again.Outcome)
		o.that(err != nil || again.Replayed && again.Grant.Position == d.Grant.Position, "granted at %v, the repeat found %v", d.Grant.Position, again.Grant.Position)
		grants[i] = again.Grant
	})
	o.counts(1_000-n, n)
	for _, g := range grants {
		o.replay(1, g)
	}
	o.settle(math.MaxInt)
	// Each user has one claim, not one for the cancelled call and one for its repeat.
	equal(r, "claims in the ledger", len(o.ledger.claims), n)
}

package enginetest

import (
	"math"

	"github.com/dibs-dev/dibs"
)

var releaseChecks = []Check{
	{"releases/give stock and allowance back", checkRelease},
	{"releases/reopen a sold-out shard at once", checkReleaseReopens},
	{"releases/happen once", checkReleaseOnce},
	{"releases/of an unknown claim are not found", checkReleaseUnknown},
	{"releases/of an older epoch are stale", checkReleaseStale},
	{"releases/are journalled with their target", checkReleaseJournal},
	{"releases/work outside of state and window", checkReleaseAnyTime},
}

// checkRelease checks that a release gives back both the stock and the user's
// allowance, to the unit.
func checkRelease(r *rig) {
	o := r.offer(10, limit(4))
	a := o.grant("ann", 1, 3)
	b := o.grant("ann", 2, 1)
	o.counts(6, 4)
	o.refuse("ann", 3, 1, dibs.LimitReached)
	o.release(a)
	o.counts(9, 1)
	o.refuse("ann", 3, 4, dibs.LimitReached)
	o.grant("ann", 3, 3)
	o.counts(6, 4)
	o.refuse("ann", 4, 1, dibs.LimitReached)
	o.release(b)
	o.grant("ann", 4, 1)
}

// checkReleaseReopens sells out, releases and sells again, five times: the first claim
// after a release has to be granted. Engines that remember "sold out" apart from the
// count refuse it.
func checkReleaseReopens(r *rig) {
	o := r.offer(1, nil)
	for i := range 5 {
		g := o.grant("ann", uint64(i)+1, 1)
		o.refuse("bob", 1, 1, dibs.SoldOut)
		o.release(g)
		o.counts(1, 0)
	}
	o.grant("bob", 1, 1)
	o.counts(0, 1)
}

// checkReleaseOnce repeats a release: in a row, after the stock was granted again, and
// from 16 sides at once. Commands are sent until they are answered, so a repeat is
// usual; an engine that gives the stock back each time oversells.
func checkReleaseOnce(r *rig) {
	o := r.offer(5, limit(2))
	g := o.grant("ann", 1, 2)
	cmd := o.release(g)
	entries := len(o.journal(dibs.Cursor{}))
	for range 3 {
		o.no(o.eng.Release(o.ctx, cmd), "repeat a release")
	}
	o.counts(5, 0)
	equal(r, "entries after repeated releases", len(o.journal(dibs.Cursor{})), entries)
	// The user claims anew: a late repeat must not take this grant for the released one.
	o.grant("ann", 2, 2)
	o.no(o.eng.Release(o.ctx, cmd), "repeat a release")
	o.refuse("ann", 3, 1, dibs.LimitReached)
	o.counts(3, 2)

	h := o.grant("bob", 1, 2)
	o.settle(math.MaxInt)
	o.no(o.ledger.release(h.Cursor), "release %v", h.Position)
	cmd = o.releaseOf(h)
	r.together(16, func(int) { o.no(o.eng.Release(o.ctx, cmd), "release %v from many sides", h.Position) })
	o.counts(3, 2)
}

// checkReleaseUnknown releases places without a grant: ErrNotFound, and nothing
// changes. The claim of the same place in another shard is another claim.
func checkReleaseUnknown(r *rig) {
	o := r.offer(5, nil)
	g := o.grant("ann", 1, 1)
	for _, at := range []dibs.Cursor{{Epoch: 1, Seq: 1}, {Epoch: 1, Seq: 3}, {Epoch: 1, Seq: math.MaxUint32}, {Epoch: 2, Seq: 2}, {}} {
		p := dibs.Position{ShardID: o.shard, Cursor: at}
		err := o.eng.Release(o.ctx, dibs.Release{Claim: p, Epoch: o.ledger.epoch})
		o.is(err, "the release of "+p.String(), dibs.ErrNotFound)
	}
	o.counts(4, 1)
	other := dibs.Position{ShardID: dibs.ShardID{Campaign: 999}, Cursor: g.Cursor}
	err := o.eng.Release(o.ctx, dibs.Release{Claim: other, Epoch: 1})
	o.is(err, "a release on a shard that is not open", dibs.ErrNotFound, dibs.ErrNotOpen)
	equal(r, "entries", len(o.journal(dibs.Cursor{})), 2)
}

// checkReleaseStale checks that a release of an older epoch changes nothing. The
// ledger released before the load, so the load has counted it; an engine that also
// obeys the command gives the stock back twice. The caller drops a command that is
// ErrStale.
func checkReleaseStale(r *rig) {
	o := r.offer(3, nil)
	g := o.grant("ann", 1, 1)
	o.settle(100)
	// The ledger releases, the command waits, and a rebuild overtakes it.
	o.no(o.ledger.release(g.Cursor), "release %v", g.Position)
	late := o.releaseOf(g)
	o.restart(false)
	o.counts(3, 0)
	o.grant("bob", 1, 1)
	// The claim is known as released, so that this is a repeat as well.
	o.is(o.eng.Release(o.ctx, late), "a release of an older epoch", dibs.ErrStale, nil)
	o.counts(2, 1)

	// A claim of this epoch that is not released: here ErrStale is the only right answer.
	h := o.grant("cid", 1, 1)
	stale := dibs.Release{Claim: h.Position, Epoch: o.ledger.epoch - 1}
	o.is(o.eng.Release(o.ctx, stale), "a release of an older epoch", dibs.ErrStale)
	o.counts(1, 2)
	o.release(h)
	o.counts(2, 1)
}

// checkReleaseJournal checks the entry of a release: its target, quantity and items.
// The ledger settles it as the sign that the engine has obeyed.
func checkReleaseJournal(r *rig) {
	o := r.offerItems(seats(3), limit(2))
	g := o.grant("ann", 1, 2)
	o.release(g)
	got := o.journal(g.Cursor)
	o.that(len(got) == 1, "a release has %d entries", len(got))
	e := got[0]
	o.that(e.Kind == dibs.EntryRelease && e.Target == g.Cursor && e.Quantity == 2 && e.Cursor == dibs.Cursor{Epoch: 1, Seq: 3},
		"the release's entry is %+v", e)
	o.that(len(e.Items) == 2, "the release's entry names items %v", e.Items)
	o.decidedNow("release", e.At)
	o.settle(100)
}

// checkReleaseAnyTime releases while the campaign is paused and after its end:
// payments fail and claims expire then too, and a repeat of them must not be lost.
func checkReleaseAnyTime(r *rig) {
	o := r.offer(2, nil)
	a, b := o.grant("ann", 1, 1), o.grant("bob", 1, 1)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	o.release(a)
	o.counts(1, 1)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.EndedState })
	o.release(b)
	o.counts(2, 0)
}

package enginetest

import (
	"time"

	"github.com/dibs-dev/dibs"
)

var repeatChecks = []Check{
	{"repeats/a repeated key returns the first result", checkRepeat},
	{"repeats/whatever state, window and stock are by then", checkRepeatAnyTime},
	{"repeats/after a release too", checkRepeatAfterRelease},
	{"repeats/the same key with another quantity is refused", checkKeyReused},
	{"repeats/keys belong to a user and a campaign", checkKeyScope},
	{"repeats/claims without a key are never repeats", checkNoKey},
	{"repeats/nothing new when only a repeat is asked for", checkOnlyRepeat},
}

// checkOnlyRepeat asks for repeats alone, as the service does while too much waits to
// be settled: a known key is answered with its first result, everything else with
// Overloaded, and nothing is granted. Without this a user whose yes was lost could not
// find it until the load has passed.
func checkOnlyRepeat(r *rig) {
	o := r.offer(10, limit(5))
	g := o.grant("ann", 1, 2)
	for _, c := range []struct {
		user string
		key  uint64
		want dibs.Reason
	}{{"ann", 1, dibs.Granted}, {"ann", 2, dibs.Overloaded}, {"bob", 1, dibs.Overloaded}} {
		req := o.request(c.user, c.key, 2)
		req.OnlyRepeat = true
		if d := o.decides(req, c.want); c.want == dibs.Granted {
			equal(r, "place", d.Grant.Position, g.Position)
		}
	}
	o.counts(8, 2)
}

// checkRepeat repeats a claim by its key: each time the first result, no stock, no
// entry. A client whose answer was lost repeats until it has one.
func checkRepeat(r *rig) {
	o := r.offer(10, limit(5))
	g := o.grant("ann", 1, 2)
	for range 3 {
		o.replay(1, g)
	}
	o.counts(8, 2)
	equal(r, "entries after repeats", len(o.journal(dibs.Cursor{})), 2)
	h := o.grant("ann", 2, 2)
	o.that(h.Position != g.Position, "two claims stand at %v", h.Position)
	o.replay(1, g)
}

// checkRepeatAnyTime repeats while the limit is reached, all is sold, the campaign is
// paused, ended, over or not yet open. The repeat is checked before all of these; an
// engine that asks for the state first tells a user who has a claim that it is too
// late.
func checkRepeatAnyTime(r *rig) {
	o := r.offer(2, func(c *dibs.Campaign) { c.PayWithin = time.Minute })
	g := o.grant("ann", 1, 1)
	if !r.factory.OwnClock {
		// Later than the grant, so that a time or deadline computed anew differs from the
		// first.
		r.setTime(r.time().Add(3 * time.Second))
	}
	o.refuse("ann", 2, 1, dibs.LimitReached)
	o.replay(1, g)
	h := o.grant("bob", 1, 1)
	o.refuse("cid", 1, 1, dibs.SoldOut)
	o.replay(1, g)
	o.replay(1, h)
	for _, change := range []func(c *dibs.Campaign){
		func(c *dibs.Campaign) { c.State = dibs.PausedState },
		func(c *dibs.Campaign) { c.State = dibs.EndedState },
		func(c *dibs.Campaign) {
			c.State = dibs.Published
			window(r, -2*time.Hour, -time.Hour)(c)
		},
		window(r, time.Hour, 2*time.Hour),
	} {
		o.configure(change)
		o.replay(1, g)
		o.replay(1, h)
		o.refuse("ann", 1, 2, dibs.KeyReused)
	}
	o.counts(0, 2)
}

// checkRepeatAfterRelease checks that the key of a released claim stays taken. A
// delayed copy of the first request would otherwise claim again for a user who has
// cancelled.
func checkRepeatAfterRelease(r *rig) {
	o := r.offer(1, nil)
	g := o.grant("ann", 1, 1)
	o.release(g)
	o.replay(1, g)
	o.counts(1, 0)
	h := o.grant("ann", 2, 1)
	o.replay(1, g)
	o.replay(2, h)
	o.counts(0, 1)
}

// checkKeyReused sends a known key with another quantity: that is a fault of the
// client, and neither the first result nor a new grant would be what it asked for. It
// stays refused after a release.
func checkKeyReused(r *rig) {
	o := r.offer(10, limit(5))
	g := o.grant("ann", 1, 2)
	o.refuse("ann", 1, 1, dibs.KeyReused)
	o.refuse("ann", 1, 3, dibs.KeyReused)
	o.refuse("ann", 1, 100, dibs.KeyReused)
	o.counts(8, 2)
	o.replay(1, g)
	o.release(g)
	o.refuse("ann", 1, 1, dibs.KeyReused)
}

// checkKeyScope uses one key for two users and two campaigns: these are three claims.
// Clients choose keys by themselves and meet by chance.
func checkKeyScope(r *rig) {
	a, b := r.offer(10, limit(5)), r.offer(10, limit(5))
	ga := a.grant("ann", 1, 1)
	gb := a.grant("bob", 1, 2)
	gc := b.grant("ann", 1, 3)
	a.replay(1, ga)
	a.replay(1, gb)
	b.replay(1, gc)
	a.counts(7, 3)
	b.counts(7, 3)
}

// checkNoKey claims without a key, which is 0: each such claim is a new one, up to the
// limit.
func checkNoKey(r *rig) {
	o := r.offer(10, limit(3))
	seen := map[dibs.Position]bool{}
	for range 3 {
		seen[o.grant("ann", 0, 1).Position] = true
	}
	equal(r, "positions of three claims", len(seen), 3)
	o.refuse("ann", 0, 1, dibs.LimitReached)
	o.counts(7, 3)
}

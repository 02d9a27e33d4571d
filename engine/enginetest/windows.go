package enginetest

import (
	"time"

	"github.com/dibs-dev/dibs"
)

var windowChecks = []Check{
	{"windows/before, within and after", checkWindowPhases},
	{"windows/starts_at is inclusive, ends_at exclusive", checkWindowEdges},
	{"windows/grants lie inside by the deciding clock", checkWindowPasses},
	{"windows/paused and ended refuse, published grants", checkStates},
	{"windows/state comes before window", checkStateBeforeWindow},
	{"windows/a late payer is refused by stock and limit alone", checkLate},
}

// window makes a campaign's window begin and end at offsets from now, in whole
// milliseconds.
func window(r *rig, from, to time.Duration) func(c *dibs.Campaign) {
	return func(c *dibs.Campaign) {
		now := r.time().UTC().Truncate(time.Millisecond)
		c.StartsAt, c.EndsAt = now.Add(from), now.Add(to)
	}
}

// checkWindowPhases checks the three phases by windows that are an hour away, so that
// an engine with a clock of its own is checked as well.
func checkWindowPhases(r *rig) {
	r.offer(1, window(r, time.Hour, 2*time.Hour)).refuse("ann", 1, 1, dibs.NotStarted)
	r.offer(1, window(r, -2*time.Hour, -time.Hour)).refuse("ann", 1, 1, dibs.Ended)
	r.offer(1, window(r, -time.Hour, time.Hour)).grant("ann", 1, 1)
}

// checkWindowEdges checks the edges to the millisecond: the first moment is inside,
// the last one outside, so that two campaigns whose windows meet never overlap.
func checkWindowEdges(r *rig) {
	if r.factory.OwnClock {
		checkWindowPasses(r)
		return
	}
	o := r.offer(10, window(r, time.Second, 2*time.Second))
	r.setTime(o.c.StartsAt.Add(-time.Millisecond))
	o.refuse("ann", 1, 1, dibs.NotStarted)
	r.setTime(o.c.StartsAt)
	o.grant("ann", 1, 1)
	r.setTime(o.c.EndsAt.Add(-time.Millisecond))
	o.grant("bob", 1, 1)
	r.setTime(o.c.EndsAt)
	o.refuse("cid", 1, 1, dibs.Ended)
	r.setTime(o.c.EndsAt.Add(24 * time.Hour))
	o.refuse("dan", 1, 1, dibs.Ended)
}

// checkWindowPasses claims without a pause while a window opens and closes, and holds
// each answer against the time at which it was decided. The time of the grant, which
// the ledger keeps, must lie inside too: an engine that checks one clock and records
// another sells outside of the window by its own account.
func checkWindowPasses(r *rig) {
	// A slow machine may sleep through a phase: then it is tried with a longer window.
	seen := map[dibs.Reason]int{}
	for _, scale := range []time.Duration{1, 5, 25} {
		seen = windowPasses(r, 150*time.Millisecond*scale, 600*time.Millisecond*scale)
		if seen[dibs.NotStarted] > 0 && seen[dibs.Granted] > 0 {
			return
		}
	}
	r.that(false, "a passing window answered %v", seen)
}

// windowPasses claims until the window has passed, and counts the answers.
func windowPasses(r *rig, from, to time.Duration) map[dibs.Reason]int {
	o := r.offer(1_000_000, nil)
	// Set when the shard is open, so that a slow machine sees it begin.
	o.configure(window(r, from, to))
	order := map[dibs.Reason]int{dibs.NotStarted: 1, dibs.Granted: 2, dibs.Ended: 3}
	phase, seen := 0, map[dibs.Reason]int{}
	for n := 0; phase < 3; n++ {
		d := o.claim(userName(n), 0, 1)
		// The answers change forward only: a clock that is read again and again must not go
		// back.
		o.that(order[d.Outcome] >= phase, "%v after phase %d of the window", d.Outcome, phase)
		phase = order[d.Outcome]
		seen[d.Outcome]++
		if d.Outcome == dibs.Granted {
			at := time.UnixMilli(d.Grant.At)
			o.that(!at.Before(o.c.StartsAt) && at.Before(o.c.EndsAt), "granted at %v, outside of [%v, %v)", at.UTC(), o.c.StartsAt, o.c.EndsAt)
		}
		if !r.factory.OwnClock {
			r.setTime(r.time().Add(7 * time.Millisecond))
		}
	}
	return seen
}

// checkStates checks that only a published campaign grants, whether it was opened so
// or changed later.
func checkStates(r *rig) {
	o := r.offer(3, nil)
	set := func(s dibs.State) { o.configure(func(c *dibs.Campaign) { c.State = s }) }
	set(dibs.PausedState)
	o.refuse("ann", 1, 1, dibs.Paused)
	set(dibs.Published)
	o.grant("ann", 1, 1)
	set(dibs.EndedState)
	o.refuse("bob", 1, 1, dibs.Ended)
	o.counts(2, 1)
	r.offer(1, func(c *dibs.Campaign) { c.State = dibs.PausedState }).refuse("ann", 1, 1, dibs.Paused)
	r.offer(1, func(c *dibs.Campaign) { c.State = dibs.EndedState }).refuse("ann", 1, 1, dibs.Ended)
}

// checkStateBeforeWindow checks that the state comes before the window, and both
// before the stock. A paused campaign is Paused at any time, so that users are not
// told that it has ended.
func checkStateBeforeWindow(r *rig) {
	cases := []struct {
		state    dibs.State
		from, to time.Duration
		want     dibs.Reason
	}{
		{dibs.PausedState, time.Hour, 2 * time.Hour, dibs.Paused},
		{dibs.PausedState, -2 * time.Hour, -time.Hour, dibs.Paused},
		{dibs.EndedState, time.Hour, 2 * time.Hour, dibs.Ended},
		{dibs.Published, time.Hour, 2 * time.Hour, dibs.NotStarted},
	}
	for _, x := range cases {
		o := r.offer(0, func(c *dibs.Campaign) {
			window(r, x.from, x.to)(c)
			c.State = x.state
		})
		// The empty stock must not show either: it comes last.
		o.refuse("ann", 1, 1, x.want)
	}
}

// checkLate claims for a payer whose claim was released before the money came. The
// user has paid: state and window do not refuse them, but stock and limit do, and a
// repeat returns the first result. The engine must not sell what it does not have,
// whoever has paid.
func checkLate(r *rig) {
	for _, change := range []func(c *dibs.Campaign){
		nil, window(r, -2*time.Hour, -time.Hour), window(r, time.Hour, 2*time.Hour),
		func(c *dibs.Campaign) { c.State = dibs.PausedState },
		func(c *dibs.Campaign) { c.State = dibs.EndedState },
	} {
		o := r.offer(3, func(c *dibs.Campaign) {
			c.LimitPerUser = 2
			if change != nil {
				change(c)
			}
		})
		late := func(user string, key uint64, quantity int64, want dibs.Reason) dibs.Decision {
			req := o.request(user, key, quantity)
			req.Late = true
			return o.decides(req, want)
		}
		g := late("ann", 1, 2, dibs.Granted)
		again := late("ann", 1, 2, dibs.Granted)
		o.that(again.Replayed && again.Grant.Position == g.Grant.Position, "a late claim again is %+v", again)
		late("bob", 1, 2, dibs.SoldOut)
		late("ann", 2, 1, dibs.LimitReached)
		o.counts(1, 2)
		late("bob", 2, 1, dibs.Granted)
		o.counts(0, 3)
	}
}

package enginetest

import (
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
)

var configureChecks = []Check{
	{"configure/an older version changes nothing", checkOlderVersion},
	{"configure/a raised limit works at once", checkLimitRaised},
	{"configure/a moved window works at once", checkWindowMoved},
	{"configure/reaches all shards", checkConfigureShards},
	{"configure/stock and grants stay", checkConfigureKeeps},
	{"configure/no later claim is decided by the old definition", checkConfigureUnderLoad},
}

// checkOlderVersion checks that Configure ignores a definition older than the one
// obeyed. Nodes deliver definitions in any order; an engine that takes the last to
// arrive reopens a paused sale, or ends one that goes on.
func checkOlderVersion(r *rig) {
	o := r.offer(5, nil)
	old := *o.c
	o.configure(func(c *dibs.Campaign) { c.LimitPerUser = 2 })
	old.State, old.LimitPerUser, old.EndsAt = dibs.EndedState, 1, old.StartsAt.Add(time.Minute)
	o.no(o.eng.Configure(o.ctx, &old), "configure an older version")
	o.grant("ann", 1, 2)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	old.State = dibs.Published
	o.no(o.eng.Configure(o.ctx, &old), "configure an older version")
	o.refuse("bob", 1, 1, dibs.Paused)
}

// checkLimitRaised checks that a raised limit counts for users who already hold
// something: the engine compares the units held with the new limit, and keeps no
// answer computed by the old one.
func checkLimitRaised(r *rig) {
	o := r.offer(5, nil)
	o.grant("ann", 1, 1)
	o.refuse("ann", 2, 1, dibs.LimitReached)
	o.configure(func(c *dibs.Campaign) { c.LimitPerUser = 3 })
	o.refuse("ann", 2, 3, dibs.LimitReached)
	o.grant("ann", 2, 2)
	o.refuse("ann", 3, 1, dibs.LimitReached)
}

// checkWindowMoved checks that a window moves both ways: a campaign that was over goes
// on, and one that was open is not yet open. An engine that remembers "ended" as a
// fact of its own never reopens.
func checkWindowMoved(r *rig) {
	o := r.offer(5, nil)
	o.grant("ann", 1, 1)
	o.configure(window(r, -2*time.Hour, -time.Hour))
	o.refuse("bob", 1, 1, dibs.Ended)
	o.configure(window(r, -2*time.Hour, time.Hour))
	o.grant("bob", 1, 1)
	o.configure(window(r, time.Hour, 2*time.Hour))
	o.refuse("cid", 1, 1, dibs.NotStarted)
}

// checkConfigureShards checks that one Configure reaches every shard of the campaign.
// An engine that changes only one shard goes on selling from the others while the
// admin sees the campaign as paused.
func checkConfigureShards(r *rig) {
	n := min(3, r.eng.MaxShards())
	c, all := r.spread(n, 5, 1)
	all[0].configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	for i, o := range all {
		o.refuse(shardUser(c, uint8(i), 0), 1, 1, dibs.Paused)
	}
	all[0].configure(func(c *dibs.Campaign) {
		c.State = dibs.Published
		c.LimitPerUser = 2
	})
	for i, o := range all {
		o.grant(shardUser(c, uint8(i), 0), 1, 2)
	}
}

// checkConfigureKeeps checks what Configure leaves alone: stock, grants and journal.
// The definition carries a stock total, but stock changes only by Adjust, which the
// ledger counts too; an engine that took the total from here would sell units that the
// ledger does not have.
func checkConfigureKeeps(r *rig) {
	o := r.offer(5, limit(2))
	g := o.grant("ann", 1, 2)
	o.configure(func(c *dibs.Campaign) {
		c.Title, c.Stock.Total = "Another title", 500
		c.EndsAt = c.EndsAt.Add(time.Hour)
	})
	o.counts(3, 2)
	o.replay(1, g)
	o.refuse("ann", 2, 1, dibs.LimitReached)
	equal(r, "entries", len(o.journal(dibs.Cursor{})), 2)
}

// checkConfigureUnderLoad pauses while claims run: what is claimed after Configure
// returned is refused. An admin who has paused a campaign relies on that: nothing is
// sold afterwards, from any shard's batch or cached reading.
func checkConfigureUnderLoad(r *rig) {
	o := r.offer(1_000_000, nil)
	for round := range 5 {
		paused := make(chan struct{})
		r.together(9, func(i int) {
			if i == 0 {
				defer close(paused)
				o.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
				return
			}
			for n := i; ; n += 9 {
				// Read before the claim: a claim that begins before the end of Configure may be
				// decided either way.
				var after bool
				select {
				case <-paused:
					after = true
				default:
				}
				d := o.claim(fmt.Sprint(round, "-", n), 0, 1)
				o.that(d.Outcome == dibs.Granted || d.Outcome == dibs.Paused, "a claim is %v", d.Outcome)
				o.that(!after || d.Outcome == dibs.Paused, "round %d: a claim is %v after Configure had returned", round, d.Outcome)
				if after {
					return
				}
			}
		})
		o.configure(func(c *dibs.Campaign) { c.State = dibs.Published })
	}
}

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

func checkLimitRaised(r *rig) {
	o := r.offer(5, nil)
	o.grant("ann", 1, 1)
	o.refuse("ann", 2, 1, dibs.LimitReached)
	o.configure(func(c *dibs.Campaign) { c.LimitPerUser = 3 })
	o.refuse("ann", 2, 3, dibs.LimitReached)
	o.grant("ann", 2, 2)
	o.refuse("ann", 3, 1, dibs.LimitReached)
}

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

func checkConfigureShards(r *rig) {
	n := min(3, r.eng.MaxShards())
	c := r.sale(func(c *dibs.Campaign) { c.Shards = n })
	var all []*offer
	for i := range n {
		all = append(all, r.openShard(c, dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}, 5, nil))
	}
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

// checkConfigureUnderLoad pauses while claims run: what is claimed after
// Configure returned is refused.
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

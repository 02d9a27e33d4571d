package enginetest

import (
	"context"
	"math"
	"slices"

	"github.com/dibs-dev/dibs"
)

var restartChecks = []Check{
	{"restarts/the state before comes back, wherever the ledger stands", checkRestartState},
	{"restarts/items come back", checkRestartItems},
	{"restarts/the new epoch opens after the last entry", checkRestartOpening},
	{"restarts/what the ledger released before is counted once", checkRestartReleases},
	{"restarts/a yes under load is kept by a kill", checkKillUnderLoad},
	{"restarts/limits hold over many lives", checkLimitOverLives},
}

// bothWays runs a check for a clean end and for a kill.
func bothWays(r *rig, f func(kill bool)) {
	f(false)
	f(true)
}

func checkRestartState(r *rig) {
	bothWays(r, func(kill bool) {
		// settled is how many of the entries the ledger has when the engine ends.
		for _, settled := range []int{0, 4, math.MaxInt} {
			o := r.offer(10, limit(3))
			a, b := o.grant("ann", 1, 2), o.grant("ann", 2, 1)
			c := o.grant("bob", 1, 3)
			o.withdraw("less", 1)
			o.settle(settled)
			d := o.grant("cid", 0, 1)
			r.restart(kill)
			o.counts(2, 7)
			o.replay(1, a)
			o.replay(2, b)
			o.replay(1, c)
			o.refuse("bob", 1, 1, dibs.KeyReused)
			refusal := o.refuse("ann", 3, 1, dibs.LimitReached)
			o.that(slices.Equal(refusal.Held, []dibs.Position{b.Position, a.Position}), "after a restart Held is %v", refusal.Held)
			for _, g := range []dibs.Grant{a, b, c, d} {
				found, ok, err := o.eng.Find(o.ctx, g.Position)
				o.no(err, "find %v", g.Position)
				o.that(ok && sameGrant(found, g), "after a restart Find(%v) is %+v, %v, want %+v", g.Position, found, ok, g)
			}
			r.holds("cid", append(heldBefore(r, o, "cid"), d)...)
			e := o.grant("cid", 5, 2)
			o.refuse("dan", 1, 1, dibs.SoldOut)
			r.restart(kill)
			o.replay(5, e)
			o.counts(0, 9)
			o.settle(math.MaxInt)
			equal(r, "left in the ledger", o.ledger.left, 0)
		}
	})
}

// heldBefore returns what a user holds on the other offers.
func heldBefore(r *rig, but *offer, user string) []dibs.Grant {
	var held []dibs.Grant
	for p, g := range r.holdings(user) {
		if p.ShardID != but.shard {
			held = append(held, g)
		}
	}
	return held
}

func checkRestartItems(r *rig) {
	bothWays(r, func(kill bool) {
		o := r.offerItems(seats(6), limit(2))
		a := o.grant("ann", 1, 2)
		b := o.grant("bob", 1, 1)
		o.release(b)
		o.restock("more", 1, "box")
		c := o.grant("cid", 1, 2)
		o.withdraw("less", 1)
		r.restart(kill)
		o.counts(2, 4)
		o.replay(1, a)
		o.replay(1, b)
		o.replay(1, c)
		d := o.grant("dan", 1, 2)
		o.refuse("eve", 1, 1, dibs.SoldOut)
		seen := map[string]bool{}
		for _, g := range []dibs.Grant{a, c, d} {
			for _, item := range g.Items {
				o.that(!seen[item], "item %q was granted twice", item)
				seen[item] = true
			}
		}
		o.settle(math.MaxInt)
		equal(r, "free items in the ledger", len(o.ledger.free), 0)
	})
}

func checkRestartOpening(r *rig) {
	o := r.offer(10, limit(10))
	o.grant("ann", 1, 1)
	last := o.stats().Head
	for i, kill := range []bool{false, true, true, false} {
		r.restart(kill)
		head := o.stats().Head
		equal(r, "head after a restart", head, dibs.Cursor{Epoch: uint16(i) + 2, Seq: 1})
		e := o.journal(last)[0]
		o.that(e.Kind == dibs.EntryOpen && e.Prev == last && e.Cursor == head, "the opening is %+v, want %v after %v", e, head, last)
		last = head
		if i%2 == 0 {
			last = o.grant("ann", 0, 1).Cursor
		}
	}
	o.settle(math.MaxInt)
}

// checkRestartReleases has releases and restocks in the tail: the ledger moved
// before their entries, so the load has counted them already.
func checkRestartReleases(r *rig) {
	bothWays(r, func(kill bool) {
		o := r.offer(4, limit(2))
		a, b, c := o.grant("ann", 1, 2), o.grant("bob", 1, 1), o.grant("cid", 1, 1)
		o.release(a)
		o.release(b)
		o.restock("more", 2)
		d := o.grant("ann", 2, 1)
		s := o.stats()
		r.restart(kill)
		equal(r, "Remaining after a restart", o.stats().Remaining, s.Remaining)
		equal(r, "Remaining", s.Remaining, 4)
		o.replay(1, a)
		o.replay(1, c)
		o.replay(2, d)
		o.grant("ann", 3, 1)
		o.refuse("ann", 4, 1, dibs.LimitReached)
		o.grant("bob", 2, 2)
		again := dibs.Release{Claim: a.Position, Epoch: o.ledger.epoch}
		o.no(o.eng.Release(o.ctx, again), "repeat a release of the epoch before")
		equal(r, "Remaining after all", o.stats().Remaining, 1)
		o.release(d)
		equal(r, "Remaining after a release of the epoch before", o.stats().Remaining, 2)
		o.settle(math.MaxInt)
	})
}

func checkKillUnderLoad(r *rig) {
	o := r.offer(1_000_000, nil)
	const clients = 32
	for range 3 {
		l, eng := newLoad(o, clients), r.eng
		ctx, cancel := context.WithCancel(r.ctx)
		r.together(clients+1, func(i int) {
			if i < clients {
				l.client(ctx, eng, i)
				return
			}
			<-l.enough
			r.stop(true)
			// A killed process answers nobody: whoever waits still, stops waiting.
			cancel()
		})
		r.start()
		// Nothing was settled: the whole journal is the tail.
		o.open()
		l.kept()
		o.settle(math.MaxInt)
		o = r.offer(1_000_000, nil)
	}
}

func checkLimitOverLives(r *rig) {
	o := r.offer(20, limit(4))
	for life := range 4 {
		o.grant("ann", uint64(life)+1, 1)
		o.settle(life)
		r.restart(life%2 == 0)
	}
	d := o.refuse("ann", 9, 1, dibs.LimitReached)
	equal(r, "claims that fill the limit", len(d.Held), 4)
	o.counts(16, 4)
	o.settle(math.MaxInt)
}

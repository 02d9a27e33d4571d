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

// bothWays runs a check for a clean end and for a kill. A clean end may write things
// that a kill does not: an implementation must need none of them.
func bothWays(r *rig, f func(kill bool)) {
	f(false)
	f(true)
}

// checkRestartState restarts with none, some and all of the entries settled: limits,
// keys, holdings and counts are as before. The load has what is settled, the tail the
// rest; an engine that reads only one of the two forgets a yes, and one that adds an
// entry of both counts it twice.
func checkRestartState(r *rig) {
	bothWays(r, func(kill bool) {
		// settled is how many of the entries the ledger has when the engine ends.
		for _, settled := range []int{0, 4, math.MaxInt} {
			o := r.offer(10, limit(3))
			a, b := o.grant("ann", 1, 2), o.grant("ann", 2, 1)
			c := o.grant("bob", 1, 3)
			o.withdraw("less", 1)
			o.settle(settled)
			// This grant is always in the tail alone.
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
				o.finds(g, false)
			}
			r.holds("cid", append(heldBefore(r, o, "cid"), d)...)
			// A second restart has a tail that spans two epochs.
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

// heldBefore returns what a user holds on the offers of the rounds before.
func heldBefore(r *rig, but *offer, user string) []dibs.Grant {
	var held []dibs.Grant
	for p, g := range r.holdings(user) {
		if p.ShardID != but.shard {
			held = append(held, g)
		}
	}
	return held
}

// checkRestartItems restarts with a tail of items: granted, released, restocked and
// withdrawn. Afterwards exactly the items that nobody has are granted, each once.
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
		// b was released, so its item may be with another user by now.
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

// checkRestartOpening checks the first entry of each epoch: seq 1, the next epoch, and
// as Prev the last entry before it, also when that was an opening itself. A reader
// knows by Prev that no entry is missing between two epochs.
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
		// The tail has the entries of the second release and of the restock, which the
		// ledger has counted, and this grant, which it has not.
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
		// A release with the new epoch, of a claim that was released in the epoch before.
		o.no(o.eng.Release(o.ctx, o.releaseOf(a)), "repeat a release of the epoch before")
		equal(r, "Remaining after all", o.stats().Remaining, 1)
		o.release(d)
		equal(r, "Remaining after a release of the epoch before", o.stats().Remaining, 2)
		o.settle(math.MaxInt)
	})
}

// checkKillUnderLoad kills the engine while 32 clients claim, three times on campaigns
// of their own: every claim that was answered yes is there afterwards, at its place.
// An engine that answers before its entry is durable loses some of them. Nothing was
// settled, so all of it has to come from the journal.
func checkKillUnderLoad(r *rig) {
	o := r.offer(1_000_000, nil)
	const clients = 32
	for range 3 {
		l := newLoad(o, clients)
		ctx, cancel := context.WithCancel(r.ctx)
		l.during(ctx, func() {
			r.stop(true)
			// A killed process answers no caller: those that wait still stop waiting.
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

// checkLimitOverLives claims once before each of four restarts, with more of the
// journal settled each time: the limit counts the claims of all epochs.
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

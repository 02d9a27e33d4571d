package enginetest

import (
	"math"
	"slices"

	"github.com/dibs-dev/dibs"
)

var readChecks = []Check{
	{"reads/a grant is found by its position", checkFind},
	{"reads/other positions are not found", checkFindUnknown},
	{"reads/a user's grants over several campaigns", checkHoldingsOf},
	{"reads/stats name the head of the journal", checkStatsHead},
	{"reads/stats name the version obeyed and the place settled", checkStatsTold},
	{"reads/a healthy engine answers ping and names itself", checkPing},
}

// checkFind finds grants of items by their places, released ones too, marked as such.
// The id of a claim decodes to its place, and users read their claims by id before the
// ledger has them.
func checkFind(r *rig) {
	o := r.offerItems(seats(5), limit(3))
	var all []dibs.Grant
	for i := range 3 {
		all = append(all, o.grant("ann", uint64(i), 1))
	}
	for _, g := range all {
		o.finds(g, false)
	}
	o.release(all[1])
	for i, g := range all {
		o.finds(g, i == 1)
	}
}

// checkFindUnknown asks for places without a grant: the opening, a release, a
// withdrawal, places past the head, other epochs, another shard. A guessed id decodes
// to some such place; an engine that answers with the nearest entry shows a stranger's
// claim.
func checkFindUnknown(r *rig) {
	o := r.offer(5, nil)
	g := o.grant("ann", 1, 1)
	o.release(g)
	o.withdraw("less", 1)
	places := []dibs.Cursor{
		{},
		{Epoch: 1},
		{Epoch: 1, Seq: 1},
		{Epoch: 1, Seq: 3},
		{Epoch: 1, Seq: 4},
		{Epoch: 1, Seq: 5},
		{Epoch: 1, Seq: math.MaxUint32},
		{Epoch: 2, Seq: 2},
		{Epoch: dibs.MaxEpoch, Seq: 2},
	}
	for _, at := range places {
		p := dibs.Position{ShardID: o.shard, Cursor: at}
		found, ok, err := o.eng.Find(o.ctx, p)
		o.no(err, "find %v", p)
		o.that(!ok, "Find(%v) is %+v, where no grant stands", p, found)
	}
	elsewhere := dibs.Position{ShardID: dibs.ShardID{Campaign: o.shard.Campaign + 7}, Cursor: g.Cursor}
	found, ok, err := o.eng.Find(o.ctx, elsewhere)
	o.is(err, "find on a shard that is not open", nil, dibs.ErrNotOpen)
	o.that(!ok, "Find(%v) is %+v, on a shard that is not open", elsewhere, found)
}

// holdings returns a user's grants that are not released, by position. It fails when
// one is listed twice or is another user's.
func (r *rig) holdings(user string) map[dibs.Position]dibs.Grant {
	got, err := r.eng.HoldingsOf(r.ctx, user)
	r.no(err, "list the grants of %s", user)
	all := map[dibs.Position]dibs.Grant{}
	for _, g := range got {
		_, twice := all[g.Position]
		r.that(!twice, "the grants of %s list %v twice", user, g.Position)
		r.that(g.UserID == user, "the grants of %s list %+v", user, g)
		all[g.Position] = g
	}
	for p, g := range all {
		if g.Released {
			delete(all, p)
		}
	}
	return all
}

// holds expects that a user's grants are exactly those wanted.
func (r *rig) holds(user string, want ...dibs.Grant) {
	got := r.holdings(user)
	r.that(len(got) == len(want), "%s holds %d grants, want %d", user, len(got), len(want))
	for _, w := range want {
		g, ok := got[w.Position]
		r.that(ok && sameGrant(g, w), "%s holds %+v at %v, want %+v", user, g, w.Position, w)
	}
}

// checkHoldingsOf lists one user's grants over several campaigns, also of one that has
// ended: grants stay until they are released or the shard is retired. Other users'
// grants must not show.
func checkHoldingsOf(r *rig) {
	a, b := r.offer(5, limit(2)), r.offerItems(seats(3), nil)
	r.holds("ann")
	g, h, i := a.grant("ann", 1, 1), b.grant("ann", 1, 1), a.grant("ann", 0, 1)
	j := a.grant("bob", 1, 2)
	r.holds("ann", g, h, i)
	r.holds("bob", j)
	r.holds("cid")
	a.release(g)
	r.holds("ann", h, i)
	b.configure(func(c *dibs.Campaign) { c.State = dibs.EndedState })
	r.holds("ann", h, i)
}

// checkStatsHead checks that Stats names the last durable entry and its time after
// each kind of entry, and that refusals and repeats add none. The settle lag, and
// whether a shard may be retired, follow from the head.
func checkStatsHead(r *rig) {
	o := r.offer(5, nil)
	step := func(doing string, seq uint32) {
		s := o.stats()
		o.that(s.Head == dibs.Cursor{Epoch: 1, Seq: seq}, "after %s the head is %v, want seq %d", doing, s.Head, seq)
		o.decidedNow("head", s.HeadAt)
		equal(r, "Queued after "+doing, s.Queued, 0)
		equal(r, "Waiting after "+doing, s.Waiting, 0)
		entries := o.journal(dibs.Cursor{})
		last := entries[len(entries)-1]
		o.that(last.Cursor == s.Head && last.At == s.HeadAt, "after %s the last entry is %+v, the head %v", doing, last, s.Head)
	}
	step("opening", 1)
	g := o.grant("ann", 1, 1)
	step("a grant", 2)
	o.release(g)
	step("a release", 3)
	o.restock("up", 1)
	step("a restock", 4)
	o.withdraw("down", 1)
	step("a withdrawal", 5)
	o.refuse("ann", 2, 6, dibs.SoldOut)
	o.replay(1, g)
	step("a refusal and a repeat", 5)
}

// checkStatsTold checks what the engine only hands on: the version obeyed, by which a
// node sees that a change has arrived, and the settled place, which the holder of the
// lease tells, and keeps when it tells none. A lease is granted to its holder again, and also for a shard that is
// not open, since a process takes it before it loads the shard.
func checkStatsTold(r *rig) {
	o := r.offer(5, nil)
	equal(r, "Version after opening", o.stats().Version, o.c.Version)
	equal(r, "Settled before it was told", o.stats().Settled, dibs.Cursor{})
	g := o.grant("ann", 1, 1)
	leases := func(shard dibs.ShardID, settled dibs.Cursor, doing string) {
		held, err := o.eng.Lease(o.ctx, shard, settled)
		o.no(err, "%s", doing)
		o.that(held, "%s: it was refused, and nobody else has it", doing)
	}
	leases(o.shard, g.Cursor, "take the lease")
	leases(o.shard, g.Cursor, "take the lease again")
	equal(r, "Settled", o.stats().Settled, g.Cursor)
	leases(o.shard, dibs.Cursor{}, "take the lease to load")
	equal(r, "Settled after a lease without a place", o.stats().Settled, g.Cursor)
	o.configure(func(c *dibs.Campaign) { c.LimitPerUser = 2 })
	equal(r, "Version after a change", o.stats().Version, o.c.Version)
	none := dibs.ShardID{Campaign: o.shard.Campaign + 7}
	leases(none, dibs.Cursor{}, "take the lease of a shard that is not open")
}

// checkPing checks that an open engine answers, and that level and shards are in their
// ranges.
func checkPing(r *rig) {
	r.no(r.eng.Ping(r.ctx), "ping")
	r.that(slices.Contains(dibs.Levels(), r.eng.Durability()), "the durability is %q, not one of %q", r.eng.Durability(), dibs.Levels())
	n := r.eng.MaxShards()
	r.that(n >= 1 && n <= dibs.MaxShards, "MaxShards is %d", n)
}

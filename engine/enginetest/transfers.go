package enginetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dibs-dev/dibs"
)

// Engines whose campaigns have one shard pass these checks: nothing moves there.
var transferChecks = []Check{
	{"transfers/what is left and what has moved add up", onShards(2, checkTransfers)},
	{"transfers/what has moved is known after a restart", onShards(2, checkMovedAfterRestart)},
	{"transfers/items move with their numbers and values", onShards(2, checkItemTransfers)},
	{"transfers/claims and transfers at once sell everything", onShards(5, checkTransfersUnderLoad)},
}

// onShards runs a check that needs so many shards, on an engine that has them.
func onShards(n int, check func(r *rig)) func(r *rig) {
	return func(r *rig) {
		if r.eng.MaxShards() >= n {
			check(r)
		}
	}
}

// spread opens a campaign on so many shards, each with a stock of its own.
func (r *rig) spread(shards int, each, limit int64) (c *dibs.Campaign, all []*offer) {
	c = r.sale(func(c *dibs.Campaign) { c.Shards, c.LimitPerUser = shards, limit })
	for i := range shards {
		all = append(all, r.openShard(c, dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}, each, nil))
	}
	return c, all
}

// leave has a donor's engine decide its half of a transfer.
func (o *offer) leave(t dibs.Transfer, n int64) error {
	return o.eng.Adjust(o.ctx, o.withdrawal(t.Leaves(), n))
}

// moved expects what a shard has, and what left it less what came.
func (o *offer) moved(remaining, moved int64) {
	s := o.stats()
	o.that(s.Remaining == remaining && s.Moved == moved, "shard %v counts %d remaining and %d moved, want %d and %d",
		o.shard, s.Remaining, s.Moved, remaining, moved)
}

// checkTransfers moves units between two shards: each half counts once, what remains
// and what has moved add up to the same before and after, and what is no transfer has
// not moved. A campaign is sold out only when the sum over its shards says so.
func checkTransfers(r *rig) {
	_, all := r.spread(2, 5, 10)
	a, b := all[0], all[1]
	t := dibs.Transfer{ID: "m-1", To: 1}
	for range 2 {
		r.no(a.leave(t, 3), "move 3 away")
		a.moved(2, 3)
	}
	b.moved(5, 0)
	cmd := b.restock(t.Arrives(), 3)
	r.no(r.eng.Adjust(r.ctx, cmd), "repeat an arrival")
	b.moved(8, -3)
	// More than is there: nothing leaves, not even a part.
	r.is(a.leave(dibs.Transfer{ID: "m-2", To: 1}, 3), "move 3 of 2 away", dibs.ErrInvalidState)
	a.moved(2, 3)
	// And back again.
	back := dibs.Transfer{ID: "m-3", To: 0}
	r.no(b.leave(back, 8), "move all away")
	b.moved(0, 5)
	a.restock(back.Arrives(), 8)
	a.moved(10, -5)
	a.restock("up", 2)
	a.withdraw("down", 1)
	a.moved(11, -5)
	b.refuse(shardUser(b.c, 1, 0), 1, 1, dibs.SoldOut)
	a.grant(shardUser(a.c, 0, 0), 1, 10)
	a.moved(1, -5)
	a.settle(math.MaxInt)
	b.settle(math.MaxInt)
}

// checkMovedAfterRestart restarts with transfers settled and not: an engine that
// forgets what moved would say that units are on their way that are not, or that none
// are while there are some.
func checkMovedAfterRestart(r *rig) {
	_, all := r.spread(2, 9, 10)
	a, b := all[0], all[1]
	first, second := dibs.Transfer{ID: "m-1", To: 1}, dibs.Transfer{ID: "m-2", To: 1}
	r.no(a.leave(first, 2), "move 2 away")
	a.settle(math.MaxInt)
	// The ledger has it, and its command was not sent: the load counts it.
	late := b.ledger.restock(first.Arrives(), 2, nil)
	for _, kill := range []bool{false, true} {
		r.restart(kill)
		a.moved(7, 2)
		b.moved(11, -2)
		r.is(r.eng.Adjust(r.ctx, late), "an arrival of the epoch before", dibs.ErrStale)
		b.moved(11, -2)
	}
	r.no(a.leave(second, 4), "move 4 away")
	r.restart(true)
	// It stands in the journal's tail: the units are on their way still.
	a.moved(3, 6)
	b.moved(11, -2)
	r.no(a.leave(second, 4), "repeat it")
	a.moved(3, 6)
	b.restock(second.Arrives(), 4)
	b.moved(15, -6)
	// The ledger counted the arrival before the journal had it.
	r.restart(true)
	a.moved(3, 6)
	b.moved(15, -6)
	a.settle(math.MaxInt)
	b.settle(math.MaxInt)
}

// checkItemTransfers moves items to another shard, and one of them back: they are
// granted there by their own values, after those that were there, also after a restart.
// Their numbers are the campaign's, so a shard's own do not follow one another.
func checkItemTransfers(r *rig) {
	all := seats(8)
	c := r.sale(func(c *dibs.Campaign) {
		c.Shards, c.LimitPerUser, c.Stock = 2, 10, dibs.Stock{Kind: dibs.Items, Total: 8}
	})
	open := func(shard uint8, from, to int) *offer {
		l := newLedger(c, dibs.ShardID{Campaign: c.Number, Shard: shard}, int64(to-from), all)
		l.free = l.free[from:to]
		return r.openLedger(l)
	}
	a, b := open(0, 0, 5), open(1, 5, 8)
	move := func(from, to *offer, id string, n int64, want ...uint32) {
		t := dibs.Transfer{ID: id, To: to.shard.Shard}
		r.no(from.leave(t, n), "move %d items away", n)
		entries := from.journal(from.ledger.position)
		last := entries[len(entries)-1]
		from.settle(math.MaxInt)
		r.that(slices.Equal(last.Items, want), "the items %v have left, want %v", last.Items, want)
		cmd := dibs.Adjustment{Shard: to.shard, Epoch: to.ledger.epoch, Ref: t.Arrives(), Delta: n, Numbers: last.Items}
		for _, item := range last.Items {
			cmd.Items = append(cmd.Items, all[item])
		}
		to.ledger.free, to.ledger.left = append(to.ledger.free, last.Items...), to.ledger.left+n
		to.ledger.restocks[cmd.Ref], to.ledger.moved = true, to.ledger.moved-n
		for range 2 {
			r.no(to.eng.Adjust(r.ctx, cmd), "bring %d items", n)
		}
	}
	move(a, b, "m-1", 2, 3, 4)
	a.moved(3, 2)
	b.moved(5, -2)
	g := b.grant(shardUser(c, 1, 0), 1, 4)
	r.that(slices.Equal(g.Items, []string{all[5], all[6], all[7], all[3]}), "granted %q", g.Items)
	move(b, a, "m-2", 1, 4)
	r.restart(true)
	a.moved(4, 1)
	b.moved(0, -1)
	g = a.grant(shardUser(c, 0, 0), 1, 4)
	r.that(slices.Equal(g.Items, []string{all[0], all[1], all[2], all[4]}), "granted after a restart: %q", g.Items)
	b.refuse(shardUser(c, 1, 0), 2, 1, dibs.SoldOut)
	a.settle(math.MaxInt)
	b.settle(math.MaxInt)
}

// checkTransfersUnderLoad lets users of five shards claim while units move between
// the shards at random: what is left anywhere goes to the shard that claims last, and
// all is granted, no more.
func checkTransfersUnderLoad(r *rig) {
	const shards, each = 5, 200
	c, all := r.spread(shards, each, 1_000)
	seed := rand.Uint64()
	r.tb.Logf("seed %d", seed)
	// Arrivals are sent by the test, which is the only one to write the ledgers.
	for round := range 4 {
		r.together(2*shards, func(i int) {
			o := all[i%shards]
			dice := rand.New(rand.NewPCG(seed, uint64(round*2*shards+i)))
			if i < shards {
				for n := range 20 {
					d := o.claim(shardUser(c, o.shard.Shard, n%4), uint64(round*100+n)+1, 1+dice.Int64N(3))
					o.that(d.Outcome == dibs.Granted || d.Outcome == dibs.SoldOut, "a claim beside transfers is %v", d.Outcome)
				}
				return
			}
			for n := range 5 {
				to := uint8((i + 1 + dice.IntN(shards-1)) % shards)
				err := o.leave(dibs.Transfer{ID: fmt.Sprintf("m-%d-%d-%d", round, i, n), To: to}, 1+dice.Int64N(20))
				o.is(err, "a transfer beside claims", nil, dibs.ErrInvalidState)
			}
		})
		r.arrive(all)
		r.sum(all, shards*each)
	}
	last := all[0]
	for _, o := range all[1:] {
		if n := o.stats().Remaining; n > 0 {
			r.no(o.leave(dibs.Transfer{ID: fmt.Sprintf("m-last-%d", o.shard.Shard), To: 0}, n), "move the rest away")
		}
	}
	r.arrive(all)
	if n := last.stats().Remaining; n > 0 {
		last.grant(shardUser(c, 0, 9), 1, n)
	}
	last.refuse(shardUser(c, 0, 10), 1, 1, dibs.SoldOut)
	for _, o := range all {
		o.settle(math.MaxInt)
		o.moved(0, o.stats().Moved)
	}
	r.sum(all, shards*each)
}

// arrive settles all shards, and brings what left them to its recipients.
func (r *rig) arrive(all []*offer) {
	for _, o := range all {
		for _, e := range o.journal(o.ledger.position) {
			r.no(o.ledger.settle(&e), "settle")
			if t, ok := dibs.TransferOf(e.Ref); ok && e.Quantity < 0 {
				all[t.To].restock(t.Arrives(), -e.Quantity)
			}
		}
	}
}

// sum expects that the shards together have what they began with, and that nothing is
// on its way.
func (r *rig) sum(all []*offer, stock int64) {
	var units, moved int64
	for _, o := range all {
		s := o.stats()
		r.that(s.Remaining >= 0, "shard %v has %d", o.shard, s.Remaining)
		units, moved = units+s.Remaining+s.Granted, moved+s.Moved
	}
	equal(r, "units left and granted", units, stock)
	equal(r, "units on their way", moved, 0)
}

package enginetest

import (
	"fmt"

	"github.com/dibs-dev/dibs"
)

var stockChecks = []Check{
	{"stock/a restock reopens a sold-out shard at once", checkRestock},
	{"stock/a withdrawal takes what is left, not more", checkWithdraw},
	{"stock/a repeated ref changes nothing", checkRefOnce},
	{"stock/a repeated ref changes nothing after a restart", checkRefAfterRestart},
	{"stock/a withdrawal may count in one epoch alone", checkWithdrawalOfEpoch},
	{"stock/a withdrawal that was settled ahead is taken once", checkSettledAhead},
	{"stock/a restock of an older epoch is stale", checkRestockStale},
	{"stock/a restock that the ledger has lost counts when it is sent again", checkRestockLost},
	{"stock/changes are journalled with their ref", checkStockJournal},
	{"stock/of a shard that is not open", checkStockNotOpen},
	{"stock/remaining and granted add up at every step", checkAddUp},
}

// checkRestock restocks a shard that is sold out: the next claim is granted. Users
// repeat at once when they see new stock, and an engine that keeps "sold out" for a
// while turns them away from stock that is there.
func checkRestock(r *rig) {
	o := r.offer(0, limit(10))
	o.refuse("ann", 1, 1, dibs.SoldOut)
	o.restock("one", 2)
	o.grant("ann", 1, 2)
	o.refuse("bob", 1, 1, dibs.SoldOut)
	o.restock("two", 1)
	o.grant("bob", 1, 1)
	o.refuse("cid", 1, 1, dibs.SoldOut)
	o.counts(0, 3)
}

// checkWithdraw takes stock away down to nothing. A withdrawal beyond what remains is
// ErrInvalidState and takes nothing, not even a part: the admin has to learn that
// users were faster.
func checkWithdraw(r *rig) {
	o := r.offer(5, limit(10))
	o.grant("ann", 1, 2)
	err := o.eng.Adjust(o.ctx, o.withdrawal("much", 4))
	o.is(err, "a withdrawal of 4 with 3 left", dibs.ErrInvalidState)
	o.counts(3, 2)
	equal(r, "entries after a refused withdrawal", len(o.journal(dibs.Cursor{})), 2)
	o.withdraw("some", 1)
	o.counts(2, 2)
	o.soldOut("bob", 1, 3, 2)
	o.withdraw("rest", 2)
	o.counts(0, 2)
	o.refuse("bob", 1, 1, dibs.SoldOut)
	o.is(o.eng.Adjust(o.ctx, o.withdrawal("none", 1)), "a withdrawal with none left", dibs.ErrInvalidState)
	o.settle(100)
}

// checkRefOnce repeats commands by their refs, also when the stock would not suffice
// any more, and from 16 sides at once. A command whose answer was lost is sent again,
// so a repeat returns nil and changes nothing.
func checkRefOnce(r *rig) {
	o := r.offer(5, limit(10))
	up := o.restock("up", 3)
	o.withdraw("down", 1)
	for range 3 {
		o.no(o.eng.Adjust(o.ctx, up), "repeat a restock")
		o.no(o.eng.Adjust(o.ctx, o.withdrawal("down", 1)), "repeat a withdrawal")
	}
	o.counts(7, 0)
	equal(r, "entries after repeats", len(o.journal(dibs.Cursor{})), 3)
	o.withdraw("all", 7)
	// Even where the stock would not suffice any more.
	o.no(o.eng.Adjust(o.ctx, o.withdrawal("all", 7)), "repeat a withdrawal of all")
	o.no(o.eng.Adjust(o.ctx, up), "repeat a restock")
	o.counts(0, 0)
	// Of 16 equal commands one takes a unit.
	another := o.withdrawal("another", 1)
	o.restock("more", 2)
	r.together(16, func(int) { o.no(o.eng.Adjust(o.ctx, another), "withdraw from many sides") })
	o.counts(1, 0)
}

// checkRefAfterRestart repeats commands after a restart. Withdrawals are known by the
// load's Refs when they were settled and by the tail when not; a restock of the epoch
// before is counted in the load, and ErrStale or nil says so.
func checkRefAfterRestart(r *rig) {
	for _, kill := range []bool{false, true} {
		o := r.offer(5, limit(10))
		up := o.restock("up", 3)
		o.withdraw("settled", 1)
		o.settle(100)
		o.withdraw("tail", 2)
		r.restart(kill)
		o.counts(5, 0)
		// By settling or by the tail: a withdrawal is known.
		o.no(o.eng.Adjust(o.ctx, o.withdrawal("settled", 1)), "repeat a settled withdrawal")
		o.no(o.eng.Adjust(o.ctx, o.withdrawal("tail", 2)), "repeat a withdrawal of the tail")
		o.is(o.eng.Adjust(o.ctx, up), "a restock of the epoch before", dibs.ErrStale, nil)
		o.counts(5, 0)
		r.restart(kill)
		o.no(o.eng.Adjust(o.ctx, o.withdrawal("tail", 2)), "repeat a withdrawal of the tail")
		o.counts(5, 0)
		o.settle(100)
	}
}

// checkWithdrawalOfEpoch withdraws in one epoch alone: in any other one nothing happens, but
// for a repeat of what was made.
func checkWithdrawalOfEpoch(r *rig) {
	o := r.offer(5, limit(10))
	one := o.withdrawal("one", 1)
	one.Epoch = o.ledger.epoch
	o.no(o.eng.Adjust(o.ctx, one), "a withdrawal of this epoch")
	o.counts(4, 0)
	r.restart(false)
	o.no(o.eng.Adjust(o.ctx, one), "repeat it in the next epoch")
	late := o.withdrawal("late", 1)
	late.Epoch = o.ledger.epoch - 1
	o.is(o.eng.Adjust(o.ctx, late), "a withdrawal of the epoch before", dibs.ErrStale)
	late.Epoch = o.ledger.epoch + 1
	o.is(o.eng.Adjust(o.ctx, late), "a withdrawal of an epoch that is not open", dibs.ErrUnavailable)
	o.counts(4, 0)
	o.settle(100)
}

// checkSettledAhead restarts with a withdrawal that the ledger settled before what stands
// before it in the journal: the load has taken its units, so the entry must not take them
// again, before its turn or after.
func checkSettledAhead(r *rig) {
	for _, kill := range []bool{false, true} {
		o := r.offer(9, limit(10))
		o.grant("u", 1, 2)
		o.withdraw("ahead", 3)
		o.no(o.ledger.settleAhead(o.withdrawal("ahead", 3).Ref, 3), "settle ahead")
		o.withdraw("in turn", 1)
		r.restart(kill)
		o.counts(3, 2)
		o.no(o.eng.Adjust(o.ctx, o.withdrawal("ahead", 3)), "repeat it")
		o.counts(3, 2)
		o.settle(100)
		r.restart(kill)
		o.counts(3, 2)
		o.settle(100)
	}
}

// checkRestockStale sends a restock that a load overtook: the load has counted it, and
// so the command must be ErrStale and leave no entry.
func checkRestockStale(r *rig) {
	o := r.offer(1, nil)
	// The ledger restocks, the command waits, and a rebuild counts it.
	late := o.ledger.restock("late", 2, nil)
	r.restart(false)
	o.counts(3, 0)
	o.is(o.eng.Adjust(o.ctx, late), "a restock of an older epoch", dibs.ErrStale)
	o.counts(3, 0)
	equal(r, "entries", len(o.journal(dibs.Cursor{})), 2)
}

// checkRestockLost restores the ledger from before a restock, which the journal has.
// The ledger forgot the restock, and so the load does not count it; the admin makes it
// again by the same ref, now with the new epoch. An engine that takes the ref as known
// from the tail's entry ignores it for good.
func checkRestockLost(r *rig) {
	o := r.offer(5, nil)
	lost := o.restock("more", 3)
	o.ledger.left -= lost.Delta
	r.restart(false)
	o.counts(5, 0)
	again := o.restock("more", 3)
	// offer.restock has sent it once; the second copy counts no more.
	o.no(o.eng.Adjust(o.ctx, again), "repeat a restock")
	o.counts(8, 0)
}

// checkStockJournal checks that each change of stock is one entry with its sign and
// ref.
func checkStockJournal(r *rig) {
	o := r.offer(5, nil)
	o.restock("up", 3)
	o.withdraw("down", 2)
	got := o.journal(dibs.Cursor{Epoch: 1, Seq: 1})
	o.that(len(got) == 2, "two changes have %d entries", len(got))
	for i, want := range []int64{3, -2} {
		e := got[i]
		o.that(e.Kind == dibs.EntryAdjust && e.Quantity == want && e.Ref == []string{"up", "down"}[i] && e.Seq == uint32(i)+2,
			"the entry of a change by %d is %+v", want, e)
		o.decidedNow("change", e.At)
	}
	o.settle(100)
}

// checkStockNotOpen sends a withdrawal, a claim and a count to a shard that the engine
// does not hold: ErrNotOpen, by which the service knows that it has to load the shard.
func checkStockNotOpen(r *rig) {
	o := r.offer(1, nil)
	unknown := dibs.ShardID{Campaign: o.shard.Campaign + 7}
	o.is(o.eng.Adjust(o.ctx, dibs.Adjustment{Shard: unknown, Ref: "x", Delta: -1}), "a withdrawal from a shard that is not open", dibs.ErrNotOpen)
	_, err := o.eng.Claim(o.ctx, dibs.EngineClaim{Shard: unknown, UserID: "ann", Key: 1, Quantity: 1})
	o.is(err, "a claim on a shard that is not open", dibs.ErrNotOpen)
	_, err = o.eng.Stats(o.ctx, unknown)
	o.is(err, "the count of a shard that is not open", dibs.ErrNotOpen)
}

// checkAddUp mixes all that moves stock, one call after the other: after each step
// what remains and what is granted are the stock.
func checkAddUp(r *rig) {
	o := r.offer(6, limit(3))
	total := int64(6)
	var held []dibs.Grant
	for i := range 40 {
		user := fmt.Sprint("user-", i%5)
		switch i % 8 {
		case 3:
			o.restock(fmt.Sprint("up-", i), 2)
			total += 2
		case 5:
			if o.stats().Remaining > 0 {
				o.withdraw(fmt.Sprint("down-", i), 1)
				total--
			}
		case 6, 7:
			if len(held) > 0 {
				o.release(held[0])
				held = held[1:]
			}
		default:
			if d := o.claim(user, uint64(i)+1, int64(1+i%2)); d.Outcome == dibs.Granted {
				held = append(held, d.Grant)
			}
		}
		s := o.stats()
		o.that(s.Remaining >= 0 && s.Remaining+s.Granted == total, "step %d: %d remaining and %d granted are not the stock of %d",
			i, s.Remaining, s.Granted, total)
	}
}

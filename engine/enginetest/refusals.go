package enginetest

import (
	"slices"

	"github.com/dibs-dev/dibs"
)

var refusalChecks = []Check{
	{"refusals/sold out comes before the limit", checkStockBeforeLimit},
	{"refusals/of a red packet, the limit comes before sold out", checkLimitBeforeStock},
	{"refusals/a quantity above what is left is sold out and says what is left", checkPartlyLeft},
	{"refusals/the limit counts units over several claims", checkLimitOverClaims},
	{"refusals/a quantity alone above the limit", checkQuantityAboveLimit},
	{"refusals/claims that fill the limit are listed newest first", checkHeld},
	{"refusals/at most 100 claims are listed", checkHeldBound},
	{"refusals/a refused key is free for a later grant", checkRefusedKey},
}

// checkStockBeforeLimit checks the order for sales and coupons: once all is gone,
// every user receives SoldOut, whether they hold something or not. The service can
// then answer new claims of all users alike without asking the engine. When stock
// comes back, the limit refuses again.
func checkStockBeforeLimit(r *rig) {
	for _, kind := range []dibs.Kind{dibs.Sale, dibs.Coupon} {
		o := r.offer(1, func(c *dibs.Campaign) { c.Kind = kind })
		o.grant("ann", 1, 1)
		o.soldOut("ann", 2, 1, 0)
		o.refuse("bob", 1, 1, dibs.SoldOut)
		o.restock("more", 1)
		o.refuse("ann", 2, 1, dibs.LimitReached)
		o.grant("bob", 1, 1)
	}
}

// checkLimitBeforeStock: a user at the limit is told so, with a key and without,
// however long all is gone. A red packet's user wants to know that they have a share
// already, not that others took the rest.
func checkLimitBeforeStock(r *rig) {
	o := r.offerItems([]string{"1:70", "2:30"}, func(c *dibs.Campaign) { c.Kind = dibs.RedPacket })
	a := o.grant("ann", 1, 1)
	o.refuse("ann", 2, 1, dibs.LimitReached)
	b := o.grant("bob", 1, 1)
	for range 3 {
		for key := range uint64(3) {
			d := o.refuse("ann", 10*key, 1, dibs.LimitReached)
			o.that(slices.Equal(d.Held, []dibs.Position{a.Position}), "Held is %v, want %v", d.Held, a.Position)
			o.soldOut("cid", 10*key, 1, 0)
		}
		// A quantity above the limit is refused by the limit also for a user who holds
		// nothing.
		o.refuse("cid", 0, 2, dibs.LimitReached)
	}
	o.replay(1, a)
	o.replay(1, b)
	// With a higher limit the same user is below it, and the stock decides.
	o.configure(func(c *dibs.Campaign) { c.LimitPerUser = 2 })
	o.refuse("ann", 3, 1, dibs.SoldOut)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.EndedState })
	o.refuse("ann", 3, 1, dibs.Ended)
}

// checkPartlyLeft checks a claim for more than is left: it is refused as a whole, with
// what is left, so that the user can claim less. A smaller claim is still granted
// afterwards: a refusal must not mark the shard as sold out.
func checkPartlyLeft(r *rig) {
	o := r.offer(5, limit(4))
	o.grant("ann", 1, 3)
	o.soldOut("bob", 1, 3, 2)
	o.counts(2, 3)
	o.grant("bob", 2, 2)
	o.counts(0, 5)
	o.soldOut("cid", 1, 1, 0)
}

// checkLimitOverClaims checks that the limit counts units over all claims of a user,
// with keys and without.
func checkLimitOverClaims(r *rig) {
	o := r.offer(100, limit(5))
	o.grant("ann", 1, 2)
	o.grant("ann", 2, 2)
	o.refuse("ann", 3, 2, dibs.LimitReached)
	o.grant("ann", 3, 1)
	o.refuse("ann", 4, 1, dibs.LimitReached)
	o.refuse("ann", 0, 1, dibs.LimitReached)
	o.grant("bob", 1, 5)
	o.counts(90, 10)
}

// checkQuantityAboveLimit claims more than the limit at once, without holding
// anything: the list of claims that fill the limit is then empty. Above the stock too,
// the stock comes first.
func checkQuantityAboveLimit(r *rig) {
	o := r.offer(10, limit(2))
	d := o.refuse("ann", 1, 3, dibs.LimitReached)
	o.that(len(d.Held) == 0, "a user without claims is told of %v", d.Held)
	o.soldOut("ann", 1, 11, 10)
	o.grant("ann", 1, 2)
}

// checkHeld checks the claims listed with LimitReached: those of this user that are
// not released, newest first. The user finds a lost yes by them.
func checkHeld(r *rig) {
	o := r.offer(10, limit(3))
	a := o.grant("ann", 1, 1)
	o.grant("bob", 1, 1)
	b := o.grant("ann", 2, 1)
	c := o.grant("ann", 0, 1)
	d := o.refuse("ann", 3, 1, dibs.LimitReached)
	want := []dibs.Position{c.Position, b.Position, a.Position}
	o.that(slices.Equal(d.Held, want), "Held is %v, want %v", d.Held, want)
	o.release(b)
	e := o.grant("ann", 4, 1)
	d = o.refuse("ann", 5, 1, dibs.LimitReached)
	want = []dibs.Position{e.Position, c.Position, a.Position}
	o.that(slices.Equal(d.Held, want), "Held after a release is %v, want %v", d.Held, want)
}

// checkHeldBound checks that at most MaxHeldListed claims are listed, the newest ones,
// so that the size of an answer is bounded.
func checkHeldBound(r *rig) {
	const n = dibs.MaxHeldListed + 5
	o := r.offer(n+1, limit(n))
	r.together(n, func(i int) {
		d := o.persist("ann", uint64(i)+1, 1)
		o.that(d.Outcome == dibs.Granted, "a claim within the limit is %v", d.Outcome)
	})
	d := o.refuse("ann", n+1, 1, dibs.LimitReached)
	o.that(len(d.Held) == dibs.MaxHeldListed, "%d claims are listed, want %d", len(d.Held), dibs.MaxHeldListed)
	for i, p := range d.Held {
		// Seq 1 opened the epoch, n grants followed.
		want := uint32(1 + n - i)
		o.that(p.Seq == want && p.ShardID == o.shard, "listed claim %d is %v, want seq %d", i, p, want)
	}
}

// checkRefusedKey checks that a refused claim leaves its key free, also for another
// quantity: the user presses again when there is stock. An engine that stores refusals
// under the key refuses that user for good.
func checkRefusedKey(r *rig) {
	o := r.offer(1, nil)
	o.grant("ann", 1, 1)
	o.refuse("bob", 9, 1, dibs.SoldOut)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	o.refuse("bob", 9, 2, dibs.Paused)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.Published })
	o.restock("more", 1)
	g := o.grant("bob", 9, 1)
	o.replay(9, g)
}

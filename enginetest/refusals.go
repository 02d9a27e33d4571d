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

func checkStockBeforeLimit(r *rig) {
	for _, kind := range []dibs.Kind{dibs.Sale, dibs.Coupon} {
		o := r.offer(1, func(c *dibs.Campaign) { c.Kind = kind })
		o.grant("ann", 1, 1)
		d := o.refuse("ann", 2, 1, dibs.SoldOut)
		equal(r, "Remaining", d.Remaining, 0)
		o.refuse("bob", 1, 1, dibs.SoldOut)
		o.restock("more", 1)
		o.refuse("ann", 2, 1, dibs.LimitReached)
		o.grant("bob", 1, 1)
	}
}

// checkLimitBeforeStock: who has his share hears that, with a key and without,
// however long all is gone.
func checkLimitBeforeStock(r *rig) {
	o := r.offerItems([]string{"1:70", "2:30"}, func(c *dibs.Campaign) { c.Kind = dibs.RedPacket })
	a := o.grant("ann", 1, 1)
	o.refuse("ann", 2, 1, dibs.LimitReached)
	b := o.grant("bob", 1, 1)
	for range 3 {
		for key := range uint64(3) {
			d := o.refuse("ann", 10*key, 1, dibs.LimitReached)
			o.that(slices.Equal(d.Held, []dibs.Position{a.Position}), "Held is %v, want %v", d.Held, a.Position)
			d = o.refuse("cid", 10*key, 1, dibs.SoldOut)
			equal(r, "Remaining", d.Remaining, 0)
		}
		o.refuse("cid", 0, 2, dibs.LimitReached)
	}
	o.replay(1, a)
	o.replay(1, b)
	o.configure(func(c *dibs.Campaign) { c.LimitPerUser = 2 })
	o.refuse("ann", 3, 1, dibs.SoldOut)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.EndedState })
	o.refuse("ann", 3, 1, dibs.Ended)
}

func checkPartlyLeft(r *rig) {
	o := r.offer(5, limit(4))
	o.grant("ann", 1, 3)
	d := o.refuse("bob", 1, 3, dibs.SoldOut)
	equal(r, "Remaining", d.Remaining, 2)
	o.counts(2, 3)
	o.grant("bob", 2, 2)
	o.counts(0, 5)
	d = o.refuse("cid", 1, 1, dibs.SoldOut)
	equal(r, "Remaining", d.Remaining, 0)
}

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

func checkQuantityAboveLimit(r *rig) {
	o := r.offer(10, limit(2))
	d := o.refuse("ann", 1, 3, dibs.LimitReached)
	o.that(len(d.Held) == 0, "a user without claims is told of %v", d.Held)
	d = o.refuse("ann", 1, 11, dibs.SoldOut)
	equal(r, "Remaining", d.Remaining, 10)
	o.grant("ann", 1, 2)
}

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

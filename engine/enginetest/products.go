package enginetest

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
)

// The checks of the limit per product. An engine without the ability opens no campaign
// with such a limit, and has nothing to show.
var productChecks = []Check{
	{"products/campaigns of a product share its limit", ofProducts(checkProductLimit)},
	{"products/a released unit gives its room back", ofProducts(checkProductRelease)},
	{"products/a campaign that left the engine counts", ofProducts(checkProductRetired)},
	{"products/nothing is granted until all campaigns are counted", ofProducts(checkProductUncounted)},
	{"products/a campaign that is opened again counts once", ofProducts(checkProductReopened)},
	{"products/the limit holds on each shard", ofProducts(onShards(2, checkProductShards))},
	{"products/users who claim everywhere at once get the limit", ofProducts(checkProductCrowd)},
}

// ofProducts runs a check on engines that have the ability.
func ofProducts(check func(r *rig)) func(r *rig) {
	return func(r *rig) {
		if r.eng.Abilities().Counts != nil {
			check(r)
		}
	}
}

// ofProduct makes a campaign one of a product with a limit per product. Its limit per
// user is far above.
func ofProduct(product string, limit int64) func(c *dibs.Campaign) {
	return func(c *dibs.Campaign) { c.ProductID, c.LimitPerProduct, c.LimitPerUser = product, limit, 100 }
}

// productOf is what the engine asks for a campaign's product by.
func (r *rig) productOf(campaign uint32) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.products[campaign], nil
}

// sharing lists the campaigns that share the limit of an offer, as the ledger does.
func (o *offer) sharing() (all []uint32) {
	seen := map[uint32]bool{o.c.Number: true}
	for _, other := range o.offers {
		if other.c.LimitedProduct() == o.c.LimitedProduct() && o.c.LimitedProduct() != "" && !seen[other.c.Number] {
			seen[other.c.Number] = true
			all = append(all, other.c.Number)
		}
	}
	return all
}

// refuseOfProduct claims and expects the refusal by the limit per product.
func (o *offer) refuseOfProduct(user string, key uint64, quantity int64) {
	d := o.refuse(user, key, quantity, dibs.LimitReached)
	o.that(d.OfProduct, "the refusal of %s with key %d does not say that it is by the limit per product", user, key)
}

// checkProductLimit checks that two campaigns share the limit, that each keeps its own
// limit per user, and that no other campaign is concerned.
func checkProductLimit(r *rig) {
	a, b := r.offer(10, ofProduct("phone", 2)), r.offer(10, ofProduct("phone", 2))
	small := r.offer(10, func(c *dibs.Campaign) { ofProduct("phone", 2)(c); c.LimitPerUser = 1 })
	other := r.offer(10, ofProduct("mug", 2))
	free := r.offer(10, func(c *dibs.Campaign) { c.ProductID, c.LimitPerUser = "phone", 100 })
	g := a.grant("ann", 1, 1)
	b.refuseOfProduct("ann", 1, 2)
	h := b.grant("ann", 2, 1)
	a.refuseOfProduct("ann", 2, 1)
	b.refuseOfProduct("ann", 3, 1)
	a.replay(1, g)
	b.replay(2, h)
	other.grant("ann", 1, 2)
	free.grant("ann", 1, 9)
	d := small.refuse("bob", 1, 2, dibs.LimitReached)
	small.that(!d.OfProduct, "the limit per user refuses as that per product")
	small.grant("bob", 2, 1)
	a.refuseOfProduct("cid", 1, 3)
	a.grant("bob", 3, 1)
	b.refuseOfProduct("bob", 4, 1)
	b.configure(func(c *dibs.Campaign) { c.LimitPerProduct = 3 })
	b.grant("bob", 4, 1)
	a.refuseOfProduct("bob", 5, 1)
	for _, o := range []*offer{a, b, small, other, free} {
		o.settle(math.MaxInt)
	}
}

// checkProductRelease checks that a release on one campaign makes room on the other,
// before a restart and after it, and once.
func checkProductRelease(r *rig) {
	bothWays(r, func(kill bool) {
		a, b := r.offer(10, ofProduct("phone", 2)), r.offer(10, ofProduct("phone", 2))
		user := fmt.Sprintf("ann-%t", kill)
		g := a.grant(user, 1, 2)
		b.refuseOfProduct(user, 1, 1)
		again := a.release(g)
		a.no(a.eng.Release(a.ctx, again), "release twice")
		h := b.grant(user, 2, 1)
		r.restart(kill)
		b.refuseOfProduct(user, 3, 2)
		a.grant(user, 4, 1)
		b.refuseOfProduct(user, 5, 1)
		b.release(h)
		a.grant(user, 6, 1)
		a.refuseOfProduct(user, 7, 1)
	})
}

// checkProductRetired checks that what a retired campaign granted counts on, and that
// a claim of it that is released gives its room back once the shard was opened again.
func checkProductRetired(r *rig) {
	counts := r.eng.Abilities().Counts
	a, b := r.offer(10, ofProduct("phone", 2)), r.offer(10, ofProduct("phone", 2))
	g := a.grant("ann", 1, 1)
	a.configure(func(c *dibs.Campaign) { c.State = dibs.EndedState })
	a.settle(math.MaxInt)
	a.no(a.eng.Retire(a.ctx, a.shard), "retire shard %v", a.shard)
	b.refuseOfProduct("ann", 1, 2)
	b.grant("ann", 2, 1)
	b.refuseOfProduct("ann", 3, 1)
	later := r.offer(10, ofProduct("phone", 2))
	equal(r, "Uncounted of a campaign that opens later", later.stats().Uncounted, 0)
	later.refuseOfProduct("ann", 1, 1)

	a.no(a.ledger.release(g.Cursor), "release %v", g.Position)
	a.is(a.eng.Release(a.ctx, a.releaseOf(g)), "a release on a retired shard", dibs.ErrNotOpen)
	counted := func() bool {
		counted, err := counts(a.ctx, a.shard)
		a.no(err, "ask whether shard %v counts", a.shard)
		return counted
	}
	a.that(counted(), "the claims of a retired shard do not count")
	a.open()
	a.that(!counted(), "a shard that is open is one that is not")
	later.grant("ann", 2, 1)
	later.refuseOfProduct("ann", 3, 1)
}

// checkProductUncounted checks that a shard grants nothing while a campaign that shares
// its limit was not opened, and answers repeats: what that one granted, the ledger and a
// journal know.
func checkProductUncounted(r *rig) {
	held := func(l *ledger) { l.preload("ann", 1, 0, r.time().UnixMilli()) }
	c := r.sale(ofProduct("phone", 2))
	a := &offer{rig: r, c: c, shard: c.ShardOf("any"), ledger: newLedger(c, c.ShardOf("any"), 10, nil)}
	held(a.ledger)
	r.offers = append(r.offers, a)
	b := r.offerAfter(10, ofProduct("phone", 2), held)
	equal(r, "Uncounted", b.stats().Uncounted, a.c.Number)
	b.refuse("ann", 1, 1, dibs.Unavailable)
	b.refuse("bob", 0, 1, dibs.Unavailable)
	b.replay(6, grantOf(b.shard, b.ledger.claims[0]))
	a.open()
	equal(r, "Uncounted once it is open", b.stats().Uncounted, 0)
	b.refuseOfProduct("ann", 1, 1)
	a.refuseOfProduct("ann", 1, 1)
	b.grant("bob", 0, 2)
	a.refuseOfProduct("bob", 0, 1)
}

// checkProductReopened opens a campaign again in an engine that runs: its claims count
// as they did, neither twice nor not at all.
func checkProductReopened(r *rig) {
	a, b := r.offer(10, ofProduct("phone", 3)), r.offer(10, ofProduct("phone", 3))
	g := a.grant("ann", 1, 1)
	for range 3 {
		a.open()
		equal(r, "Uncounted", b.stats().Uncounted, 0)
		b.refuseOfProduct("ann", 1, 3)
	}
	b.grant("ann", 2, 1)
	a.release(g)
	a.open()
	b.grant("ann", 3, 2)
	a.refuseOfProduct("ann", 2, 1)
}

// checkProductShards divides two campaigns into two shards. A user is on the same one
// of both, and the users of different shards do not count for each other.
func checkProductShards(r *rig) {
	two := func(c *dibs.Campaign) { ofProduct("phone", 2)(c); c.Shards = 2; c.Stock.Total = 20 }
	var on [2][2]*offer
	for i := range on {
		c := r.sale(two)
		for shard := range on[i] {
			on[i][shard] = r.openShard(c, dibs.ShardID{Campaign: c.Number, Shard: uint8(shard)}, 10, nil)
		}
	}
	for shard := range 2 {
		a, b := on[0][shard], on[1][shard]
		user := "ann"
		for n := 0; a.c.ShardOf(user).Shard != uint8(shard); n++ {
			user = fmt.Sprintf("ann%d", n)
		}
		a.grant(user, 1, 1)
		b.grant(user, 1, 1)
		a.refuseOfProduct(user, 2, 1)
		b.refuseOfProduct(user, 2, 1)
	}
}

// checkProductCrowd lets the same users claim on four campaigns at the same moment, and
// give some back: each ends with as many units as the limit allows, over all of them.
func checkProductCrowd(r *rig) {
	const campaigns, users, perProduct = 4, 25, 3
	var on [campaigns]*offer
	for i := range on {
		on[i] = r.offer(1000, ofProduct("phone", perProduct))
	}
	var granted [users]atomic.Int64
	r.together(campaigns*users, func(i int) {
		o, user := on[i%campaigns], i/campaigns
		for key := range uint64(perProduct) {
			d := o.claim(fmt.Sprintf("user-%d", user), key+1, 1)
			switch {
			case d.Outcome == dibs.Granted:
				granted[user].Add(1)
			case d.Outcome != dibs.LimitReached || !d.OfProduct:
				r.fatalf("a claim of user %d is %v", user, d.Outcome)
			}
		}
	})
	for user := range granted {
		equal(r, fmt.Sprintf("what user %d was granted", user), granted[user].Load(), perProduct)
	}
	held := map[string]int64{}
	for _, o := range on {
		o.settle(math.MaxInt)
		for _, h := range o.ledger.claims {
			held[h.UserID] += h.Quantity
		}
	}
	for user, units := range held {
		equal(r, "what the journals have of "+user, units, perProduct)
	}
}

package enginetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// offer is one shard of a campaign, open in the rig's engine, with its ledger. The
// ledger moves first for a release and a restock, the engine first for a grant and a
// withdrawal, as the contract of dibs.Engine says; settle moves the journal into the
// ledger and checks each entry. One goroutine at a time uses what writes the ledger.
type offer struct {
	*rig
	c      *dibs.Campaign
	shard  dibs.ShardID
	ledger *ledger
	// all are the campaign's shards, this one among them, by their numbers; nil where the
	// Factory asks for one. elsewhere is what another shard than the check's holds meanwhile.
	all       []*offer
	elsewhere *elsewhere
}

// sale describes a published sale of units with an open window and a limit of
// one; change may alter it.
func (r *rig) sale(change func(c *dibs.Campaign)) *dibs.Campaign {
	now := r.time().UTC().Truncate(time.Millisecond)
	n := uint32(1 + len(r.offers))
	c := &dibs.Campaign{
		Number: n, ID: fmt.Sprintf("campaign-%d", n), Kind: dibs.Sale, Title: "Phone at noon",
		StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), State: dibs.Published,
		Stock: dibs.Stock{Kind: dibs.Units}, LimitPerUser: 1, LatePayment: dibs.Reclaim,
		Shards: 1, Version: 1, CreatedAt: now.Add(-2 * time.Hour), UpdatedAt: now.Add(-2 * time.Hour),
	}
	if change != nil {
		change(c)
	}
	return c
}

// limit makes a campaign's limit per user n units.
func limit(n int64) func(c *dibs.Campaign) {
	return func(c *dibs.Campaign) { c.LimitPerUser = n }
}

// offer opens a sale of units.
func (r *rig) offer(stock int64, change func(c *dibs.Campaign)) *offer {
	return r.offerAfter(stock, change, func(*ledger) {})
}

// offerAfter opens a sale of units whose ledger has a past: past writes it before the
// first load, as a campaign that was live before has it.
func (r *rig) offerAfter(stock int64, change func(c *dibs.Campaign), past func(l *ledger)) *offer {
	c := r.sale(change)
	c.Stock.Total = stock
	return r.divided(c, nil, past)
}

// offerItems opens a sale of items; their number is the stock.
func (r *rig) offerItems(items []string, change func(c *dibs.Campaign)) *offer {
	c := r.sale(change)
	c.Stock = dibs.Stock{Kind: dibs.Items, Total: int64(len(items))}
	return r.divided(c, items, func(*ledger) {})
}

// openShard opens one shard of a campaign with a ledger of its own. The offer is added
// to the rig's, so that a restart opens it again.
func (r *rig) openShard(c *dibs.Campaign, shard dibs.ShardID, stock int64, items []string) *offer {
	return r.openLedger(newLedger(c, shard, stock, items))
}

// openLedger is openShard with a ledger that has a past.
func (r *rig) openLedger(l *ledger) *offer {
	o := &offer{rig: r, c: l.campaign, shard: l.shard, ledger: l}
	r.offers = append(r.offers, o)
	o.open()
	return o
}

// open opens the shard from its ledger, in a new epoch: the ledger raises the epoch
// for each load.
func (o *offer) open() {
	o.mu.Lock()
	o.products[o.c.Number] = o.c.LimitedProduct()
	o.mu.Unlock()
	load := o.ledger.load()
	load.Sharing = o.sharing()
	o.no(o.eng.Open(o.ctx, o.c, o.shard, load), "open shard %v", o.shard)
}

// request makes a claim request of one user.
func (o *offer) request(user string, key uint64, quantity int64) dibs.EngineClaim {
	// Where there is one shard, it is not checked by how many it was chosen.
	return dibs.EngineClaim{Shard: o.shard, UserID: user, Key: key, Quantity: quantity, Shards: len(o.all)}
}

// claim returns the engine's decision.
func (o *offer) claim(user string, key uint64, quantity int64) dibs.Decision {
	d, err := o.eng.Claim(o.ctx, o.request(user, key, quantity))
	o.no(err, "claim %d for user %s with key %d", quantity, user, key)
	return d
}

// grant claims and expects a new grant, whose place is in the epoch opened last. That
// it is new tells a repeat by accident apart from a second grant.
func (o *offer) grant(user string, key uint64, quantity int64) dibs.Grant {
	o.holdElsewhere()
	d := o.claim(user, key, quantity)
	o.that(d.Outcome == dibs.Granted && !d.Replayed, "a claim of %d by %s with key %d is %v (replayed: %v), want a new grant",
		quantity, user, key, d.Outcome, d.Replayed)
	o.that(d.Grant.UserID == user && d.Grant.Quantity == quantity && d.Grant.ShardID == o.shard && d.Grant.Epoch == o.ledger.epoch,
		"the grant %+v is not of %s, %d units, shard %v and epoch %d", d.Grant, user, quantity, o.shard, o.ledger.epoch)
	return d.Grant
}

// refuse claims and expects a refusal.
func (o *offer) refuse(user string, key uint64, quantity int64, reason dibs.Reason) dibs.Decision {
	d := o.claim(user, key, quantity)
	o.that(d.Outcome == reason, "a claim of %d by %s with key %d is %v, want %v", quantity, user, key, d.Outcome, reason)
	return d
}

// soldOut claims and expects the refusal that says what is left.
func (o *offer) soldOut(user string, key uint64, quantity, left int64) {
	equal(o.rig, "Remaining", o.refuse(user, key, quantity, dibs.SoldOut).Remaining, left)
}

// decides expects the outcome of a request that is more than a plain claim.
func (o *offer) decides(req dibs.EngineClaim, want dibs.Reason) dibs.Decision {
	d, err := o.eng.Claim(o.ctx, req)
	o.no(err, "claim %+v", req)
	o.that(d.Outcome == want, "%+v is %v, want %v", req, d.Outcome, want)
	return d
}

// finds expects a grant at its place.
func (o *offer) finds(g dibs.Grant, released bool) {
	found, ok, err := o.eng.Find(o.ctx, g.Position)
	o.no(err, "find %v", g.Position)
	o.that(ok && sameGrant(found, g) && found.Released == released, "Find(%v) is %+v, %v, want %+v, released: %v",
		g.Position, found, ok, g, released)
}

// replay claims and expects the first result again: Granted, Replayed, and the same
// grant but for whether it was released since.
func (o *offer) replay(key uint64, first dibs.Grant) {
	d := o.claim(first.UserID, key, first.Quantity)
	o.that(d.Outcome == dibs.Granted && d.Replayed, "the repeat of %v is %v (replayed: %v), want the first result again", first.Position, d.Outcome, d.Replayed)
	o.that(sameGrant(d.Grant, first), "the repeat returns %+v, the first result was %+v", d.Grant, first)
}

// sameGrant compares all of two grants but whether they were released.
func sameGrant(a, b dibs.Grant) bool {
	return a.Position == b.Position && a.UserID == b.UserID && a.Quantity == b.Quantity &&
		slices.Equal(a.Items, b.Items) && a.At == b.At && a.PayBy == b.PayBy
}

// release settles everything, releases the claim in the ledger, then commands it. The
// order is the contract's: a claim that is not settled cannot be released, and the
// ledger moves first, so that a load in between counts the release and makes the
// command stale.
func (o *offer) release(g dibs.Grant) dibs.Release {
	o.settle(math.MaxInt)
	o.no(o.ledger.release(g.Cursor), "release %v", g.Position)
	cmd := o.releaseOf(g)
	o.no(o.eng.Release(o.ctx, cmd), "release %v", g.Position)
	return cmd
}

// releaseOf is the command to release a claim, of the epoch opened last.
func (o *offer) releaseOf(g dibs.Grant) dibs.Release {
	return dibs.Release{Claim: g.Position, Epoch: o.ledger.epoch}
}

// restock adds units or items to the ledger, then commands the engine. A crash in
// between leaves the engine with less than the ledger, never with more.
func (o *offer) restock(ref string, n int64, items ...string) dibs.Adjustment {
	a := o.ledger.restock(ref, n, items)
	o.no(o.eng.Adjust(o.ctx, a), "restock %d by %s", n, ref)
	return a
}

// withdrawal is the command to take n units away. It has no epoch: the engine decides
// it, and knows its ref again in every epoch.
func (o *offer) withdrawal(ref string, n int64) dibs.Adjustment {
	return dibs.Adjustment{Shard: o.shard, Ref: ref, Delta: -n}
}

// withdraw takes n units away. The ledger learns of it by settling.
func (o *offer) withdraw(ref string, n int64) {
	o.no(o.eng.Adjust(o.ctx, o.withdrawal(ref, n)), "withdraw %d by %s", n, ref)
}

// configure changes the campaign and raises its version, as every change by an admin
// does. The old definition is left as it was, for checks that send it again.
func (o *offer) configure(change func(c *dibs.Campaign)) {
	c := *o.c
	c.Version++
	change(&c)
	for _, s := range o.shards() {
		s.c, s.ledger.campaign = &c, &c
	}
	o.no(o.eng.Configure(o.ctx, &c), "configure version %d", c.Version)
}

// stats counts the shard.
func (o *offer) stats() dibs.ShardStats {
	s, err := o.eng.Stats(o.ctx, o.shard)
	o.no(err, "count shard %v", o.shard)
	return s
}

// counts expects what remains and what is granted.
func (o *offer) counts(remaining, granted int64) {
	s := o.stats()
	o.that(s.Remaining == remaining && s.Granted == granted, "shard %v counts %d remaining and %d granted, want %d and %d",
		o.shard, s.Remaining, s.Granted, remaining, granted)
}

// settle moves up to n journal entries into the ledger, which checks each of them. It
// reads no more of the journal than it settles.
func (o *offer) settle(n int) {
	for n > 0 {
		page, err := o.eng.ReadJournal(o.ctx, o.shard, o.ledger.position, min(n, 500))
		o.no(err, "read the journal after %v", o.ledger.position)
		if len(page) == 0 {
			return
		}
		for i := range page {
			o.no(o.ledger.settle(&page[i]), "settle")
		}
		n -= len(page)
	}
}

// journal returns every entry after a place.
func (o *offer) journal(after dibs.Cursor) []dibs.Entry {
	var all []dibs.Entry
	for {
		page, err := o.eng.ReadJournal(o.ctx, o.shard, after, 500)
		o.no(err, "read the journal after %v", after)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = page[len(page)-1].Cursor
	}
}

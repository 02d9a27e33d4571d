package simulation

import (
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// offer holds the promises against one campaign.
func (j *judge) offer(o *offer) {
	p, err := j.placeOf(o)
	if err != nil {
		j.broken("%s cannot be read: %v", o.id, err)
		return
	}
	claims, err := j.claimsOf(o)
	if err != nil {
		j.broken("the claims of %s cannot be read: %v", o.id, err)
		return
	}
	j.rows(o, &p, claims)
	j.stock(o, &p)
	for _, r := range j.book.all() {
		if r.offer == o {
			j.request(r, &p, claims)
		}
	}
}

// claimsOf returns the ledger's claims of a campaign by their places.
func (j *judge) claimsOf(o *offer) (map[dibs.Position]*dibs.Claim, error) {
	claims := map[dibs.Position]*dibs.Claim{}
	page := dibs.Page{Limit: dibs.MaxPage}
	for {
		list, err := j.base.ledger.ClaimList(j.ctx, dibs.ClaimFilter{Campaign: o.number}, page)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			claims[list.Items[i].Position] = &list.Items[i]
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return claims, nil
		}
	}
}

// rows: no oversell, the limit holds, no phantom.
// held is what claims hold that are neither released nor restocked. Requests are
// counted over all claims: a released one was a grant as well.
func (j *judge) rows(o *offer, p *place, claims map[dibs.Position]*dibs.Claim) {
	held, holds, items := int64(0), map[string]int64{}, map[string]dibs.Position{}
	of := map[*request]dibs.Position{}
	for at, c := range claims {
		if c.Status != dibs.Released && !c.Restocked {
			held += c.Quantity
			holds[c.UserID] += c.Quantity
			for _, item := range c.Items {
				if other, twice := items[item]; twice {
					j.broken("no phantom: %s of %s belongs to %s and to %s", item, o.id, at, other)
				}
				items[item] = at
			}
		}
		d := j.grantOf(at, c)
		if d == nil {
			j.broken("no phantom: %s of %s is %s's with %d, and no server granted that", at, o.id, c.UserID, c.Quantity)
			continue
		}
		if d.request == nil {
			continue
		}
		if other, twice := of[d.request]; twice {
			j.broken("no phantom: %s's %q on %s was granted twice, %s and %s", d.request.user, d.request.key, o.id, at, other)
		}
		of[d.request] = at
		if yeses, maybe := d.request.told(); len(yeses) == 0 && !maybe {
			j.broken("no phantom: %s's %q on %s has %s, and every answer was that nothing was granted", d.request.user, d.request.key, o.id, at)
		}
	}
	if held > p.campaign.Stock.Total {
		j.broken("no oversell: %d of %d of %s are held", held, p.campaign.Stock.Total, o.id)
	}
	for user, n := range holds {
		if n > p.campaign.LimitPerUser {
			j.broken("the limit holds: %s has %d of %s, and may have %d", user, n, o.id, p.campaign.LimitPerUser)
		}
	}
}

// grantOf returns the decision behind a claim of the ledger; nil for none.
// Servers of two histories may have granted different things at one place, so user
// and quantity are compared too.
func (j *judge) grantOf(at dibs.Position, c *dibs.Claim) *decided {
	for _, d := range j.book.grantsAt(at) {
		if d.UserID == c.UserID && d.Quantity == c.Quantity {
			return d
		}
	}
	return nil
}

// stock: stock comes back once, and changes count once.
func (j *judge) stock(o *offer, p *place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kind == dibs.RedPacket {
		// The rest of one is withdrawn in the end.
		return
	}
	total, refs := o.stock, map[string]bool{}
	for _, c := range o.changes {
		// A withdrawal is kept under its own name, see campaigns.ChangeStock.
		used, err := j.counted(o, c)
		if err != nil {
			j.broken("a stock change cannot be read: %v", err)
			return
		}
		if c.done && !used && !j.wentBack() {
			j.broken("stock comes back once: an admin was told that %s changed the stock of %s, and the ledger does not know it", c.ref, o.id)
		}
		if refs[c.ref] {
			// Which of the two opposite ones counted, the sums beside say.
			return
		}
		refs[c.ref] = true
		if used {
			total += c.delta
		}
	}
	if total != p.campaign.Stock.Total {
		j.broken("stock comes back once: the stock of %s is %d, and by what it began with and its changes %d", o.id, p.campaign.Stock.Total, total)
	}
}

// counted reports whether the ledger knows a change of the stock, which may be divided
// over the shards.
func (j *judge) counted(o *offer, c *stockChange) (bool, error) {
	made, err := j.base.ledger.StockChanges(j.ctx, o.number, c.ref)
	var added, taken int64
	for _, part := range made {
		added, taken = added+max(part, 0), taken+min(part, 0)
	}
	return c.delta == added || c.delta == taken, err
}

// request: a yes is kept, with what its user did with it.
// A yes that is not in the ledger is excused only at dibs.LevelDurable, and only when
// its entry is in no history that is left, or may wait in the journal.
func (j *judge) request(r *request, p *place, claims map[dibs.Position]*dibs.Claim) {
	yeses, _ := r.told()
	for _, y := range yeses {
		c := claims[y.claim.Position]
		if c != nil && j.grantOf(y.claim.Position, c) != nil && c.UserID == r.user {
			j.life(y, c)
			continue
		}
		if j.plan.service.Ledgered && !j.wentBack() {
			j.broken("a yes is kept: %s is not in the ledger, which had it", y)
			continue
		}
		if s := &p.shards[y.claim.Position.Shard]; j.mayWait(p, s) && s.totals.Position.Before(y.claim.Position.Cursor) {
			continue
		}
		for _, d := range j.book.grantsAt(y.claim.Position) {
			if d.request == r && p.past[d] && (j.wentBack() || !j.book.gaveUp(y.claim.Position.ShardID, d)) {
				j.broken("a yes is kept: %s is not in the ledger, and the engine has not lost it", y)
			}
		}
	}
}

// life: what a user or an admin was told of a claim's life is so.
func (j *judge) life(y *yes, c *dibs.Claim) {
	// The ledger lists items by their numbers, the engine in the order in which it had
	// them: another one where items have come back, or from another shard.
	same := slices.Equal(slices.Sorted(slices.Values(y.claim.Items)), slices.Sorted(slices.Values(c.Items)))
	if y.request.offer.items && !same && c.Status != dibs.Released && !c.Restocked {
		j.broken("no phantom: %s had items %v, and has %v", y, y.claim.Items, c.Items)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if j.wentBack() {
		return
	}
	switch {
	case y.cancelled && c.Status != dibs.Released:
		j.broken("stock comes back once: %s was cancelled, and is %s", y, c.Status)
	case y.refunded && c.Status != dibs.Refunded:
		j.broken("stock comes back once: %s was refunded, and is %s", y, c.Status)
	case y.paid && !y.refunding && c.Status != dibs.Confirmed && !paidLate(c):
		j.broken("money is conserved: %s was paid, and is %s", y, c.Status)
	}
}

// paidLate reports whether a released claim's payment is accounted for.
func paidLate(c *dibs.Claim) bool {
	return slices.ContainsFunc(c.Events, func(e dibs.ClaimEvent) bool { return e.Step == dibs.StepReplace || e.Step == dibs.StepRefundDue })
}

// noticed reports whether the fleet says that something is wrong.
func (j *judge) noticed(why string) bool {
	if why != "" {
		j.story.tell("after the ledger went back: %s", why)
	}
	for _, s := range j.sites {
		p := s.running()
		if p == nil {
			return true
		}
		h := p.svc.Health(j.ctx)
		if !h.Ready || h.Dependencies["settling"].Warning != "" {
			return true
		}
	}
	report, err := j.saneSite().svc.Audit.Verify(j.ctx)
	return err != nil || !report.OK
}

// halted: a ledger that has lost what was granted sells nothing twice.
func (j *judge) halted() {
	j.story.tell("it was noticed that the ledger went back")
	for _, o := range j.book.offers {
		p, err := j.placeOf(o)
		if err != nil {
			j.broken("%s cannot be read: %v", o.id, err)
			return
		}
		j.probe(o)
		aside, err := j.setAside(o)
		if err != nil {
			j.broken("what is set aside of %s cannot be read: %v", o.id, err)
			return
		}
		most, told := o.stock, int64(0)
		o.mu.Lock()
		for _, c := range o.changes {
			most += max(c.delta, 0)
		}
		o.mu.Unlock()
		for _, r := range j.book.all() {
			if r.offer == o {
				told += j.unitsOf(r, &p, aside)
			}
		}
		if told > most {
			j.broken("no oversell: users were told that they have %d of %s, of which there were never more than %d", told, o.id, most)
		}
	}
}

// setAside has the places of claims that stayed set aside when an administrator decided to go on from an older ledger:
// people settle those with their users, and what is added since is sold to others.
func (j *judge) setAside(o *offer) (map[dibs.Position]bool, error) {
	places := map[dibs.Position]bool{}
	if !j.decided {
		return places, nil
	}
	aside, err := j.base.ledger.Quarantined(j.ctx, live.QuarantineFilter{Campaign: o.number}, 100)
	for i := range aside {
		places[aside[i].Place()] = true
	}
	return places, err
}

// unitsOf counts the units that a user was told of and still has: those that were given back, lost or set aside are not
// among them.
// Claims that were given back, or whose time to pay may run out, are left out: the
// sum may be too low and never too high.
func (j *judge) unitsOf(r *request, p *place, aside map[dibs.Position]bool) (units int64) {
	yeses, _ := r.told()
	for _, y := range yeses {
		y.mu.Lock()
		given := y.cancelling || y.refunding || r.offer.payWithin > 0
		y.mu.Unlock()
		for _, d := range j.book.grantsAt(y.claim.Position) {
			if d.request == r && p.past[d] && !given && !aside[y.claim.Position] {
				units += y.claim.Quantity
			}
		}
	}
	return units
}

// probe asks for what may be halted: strangers, one after the other.
func (j *judge) probe(o *offer) {
	c := client{j.world, newDice(j.plan.seed, "probe "+o.id)}
	for i := range 5 {
		r := j.book.ask(&request{user: "probe" + string(rune('a'+i)) + time.Now().Format("150405"), key: "probe", offer: o, quantity: 1})
		c.claim(j.ctx, r)
	}
}

package simulation

import (
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// judgeOffer holds the promises against one campaign.
func (w *world) judgeOffer(o *offer) {
	p, err := w.placeOf(o)
	if err != nil {
		w.broken("%s cannot be read: %v", o.id, err)
		return
	}
	claims, err := w.claimsOf(o)
	if err != nil {
		w.broken("the claims of %s cannot be read: %v", o.id, err)
		return
	}
	w.judgeRows(o, &p, claims)
	w.judgeStock(o, &p)
	for _, r := range w.book.all() {
		if r.offer == o {
			w.judgeRequest(r, &p, claims)
		}
	}
}

// claimsOf returns the ledger's claims of a campaign by their places.
func (w *world) claimsOf(o *offer) (map[dibs.Position]*dibs.Claim, error) {
	claims := map[dibs.Position]*dibs.Claim{}
	page := dibs.Page{Limit: dibs.MaxPage}
	for {
		list, err := w.base.ledger.ClaimList(w.ctx, dibs.ClaimFilter{Campaign: o.number}, page)
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

// judgeRows: no oversell, the limit holds, no phantom.
func (w *world) judgeRows(o *offer, p *place, claims map[dibs.Position]*dibs.Claim) {
	held, holds, items := int64(0), map[string]int64{}, map[string]dibs.Position{}
	of := map[*request]dibs.Position{}
	for at, c := range claims {
		if c.Status != dibs.Released && !c.Restocked {
			held += c.Quantity
			holds[c.UserID] += c.Quantity
			for _, item := range c.Items {
				if other, twice := items[item]; twice {
					w.broken("no phantom: %s of %s belongs to %s and to %s", item, o.id, at, other)
				}
				items[item] = at
			}
		}
		d := w.grantOf(at, c)
		if d == nil {
			w.broken("no phantom: %s of %s is %s's with %d, and no server granted that", at, o.id, c.UserID, c.Quantity)
			continue
		}
		if d.request == nil {
			continue
		}
		if other, twice := of[d.request]; twice {
			w.broken("no phantom: %s's %q on %s was granted twice, %s and %s", d.request.user, d.request.key, o.id, at, other)
		}
		of[d.request] = at
		if yeses, maybe := d.request.told(); len(yeses) == 0 && !maybe {
			w.broken("no phantom: %s's %q on %s has %s, and every answer was that nothing was granted", d.request.user, d.request.key, o.id, at)
		}
	}
	if held > p.campaign.Stock.Total {
		w.broken("no oversell: %d of %d of %s are held", held, p.campaign.Stock.Total, o.id)
	}
	for user, n := range holds {
		if n > p.campaign.LimitPerUser {
			w.broken("the limit holds: %s has %d of %s, and may have %d", user, n, o.id, p.campaign.LimitPerUser)
		}
	}
}

// grantOf returns the decision behind a claim of the ledger; nil for none.
func (w *world) grantOf(at dibs.Position, c *dibs.Claim) *decided {
	for _, d := range w.book.grantsAt(at) {
		if d.UserID == c.UserID && d.Quantity == c.Quantity {
			return d
		}
	}
	return nil
}

// judgeStock: stock comes back once, and changes count once.
func (w *world) judgeStock(o *offer, p *place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kind == dibs.RedPacket {
		// What is left of one is withdrawn in the end.
		return
	}
	total, refs := o.stock, map[string]bool{}
	for _, c := range o.changes {
		// A withdrawal is kept under its own name, see dibs.ChangeStock.
		made, err := w.base.ledger.StockChanges(w.ctx, o.number, c.ref, c.ref+" -")
		used := slices.Contains(made, c.delta)
		if err != nil {
			w.broken("a stock change cannot be read: %v", err)
			return
		}
		if c.done && !used && !w.wentBack() {
			w.broken("stock comes back once: an admin was told that %s changed the stock of %s, and the ledger does not know it", c.ref, o.id)
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
		w.broken("stock comes back once: the stock of %s is %d, and by what it began with and its changes %d", o.id, p.campaign.Stock.Total, total)
	}
}

// judgeRequest: a yes is kept, with what its user did with it.
func (w *world) judgeRequest(r *request, p *place, claims map[dibs.Position]*dibs.Claim) {
	yeses, _ := r.told()
	for _, y := range yeses {
		c := claims[y.claim.Position]
		if c != nil && w.grantOf(y.claim.Position, c) != nil && c.UserID == r.user {
			w.judgeLife(y, c)
			continue
		}
		if w.plan.service.Ledgered && !w.wentBack() {
			w.broken("a yes is kept: %s is not in the ledger, which had it", y)
			continue
		}
		for _, d := range w.book.grantsAt(y.claim.Position) {
			if d.request == r && p.past[d] && (w.wentBack() || !w.book.gaveUp(y.claim.Position.ShardID, d)) {
				w.broken("a yes is kept: %s is not in the ledger, and the engine has not lost it", y)
			}
		}
	}
}

// judgeLife: what a user or an admin was told of a claim's life is so.
func (w *world) judgeLife(y *yes, c *dibs.Claim) {
	if y.request.offer.items && !slices.Equal(y.claim.Items, c.Items) && c.Status != dibs.Released && !c.Restocked {
		w.broken("no phantom: %s had items %v, and has %v", y, y.claim.Items, c.Items)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if w.wentBack() {
		return
	}
	switch {
	case y.cancelled && c.Status != dibs.Released:
		w.broken("stock comes back once: %s was cancelled, and is %s", y, c.Status)
	case y.refunded && c.Status != dibs.Refunded:
		w.broken("stock comes back once: %s was refunded, and is %s", y, c.Status)
	case y.paid && !y.refunding && c.Status != dibs.Confirmed && !paidLate(c):
		w.broken("money is conserved: %s was paid, and is %s", y, c.Status)
	}
}

// paidLate reports whether a released claim's payment is accounted for.
func paidLate(c *dibs.Claim) bool {
	return slices.ContainsFunc(c.Events, func(e dibs.ClaimEvent) bool { return e.Step == dibs.StepReplace || e.Step == dibs.StepRefundDue })
}

// noticed reports whether the fleet says that something is wrong.
func (w *world) noticed(why string) bool {
	if why != "" {
		w.story.tell("after the ledger went back: %s", why)
	}
	for _, s := range w.sites {
		p := s.running()
		if p == nil {
			return true
		}
		h := p.svc.Health(w.ctx)
		if !h.Ready || h.Dependencies["settling"].Warning != "" {
			return true
		}
	}
	report, err := w.saneSite().svc.Audit.Verify(w.ctx)
	return err != nil || !report.OK
}

// judgeHalted: a ledger that has lost what was granted sells nothing twice.
func (w *world) judgeHalted() {
	w.story.tell("it was noticed that the ledger went back")
	for _, o := range w.book.offers {
		p, err := w.placeOf(o)
		if err != nil {
			w.broken("%s cannot be read: %v", o.id, err)
			return
		}
		w.probe(o)
		most, told := o.stock, int64(0)
		o.mu.Lock()
		for _, c := range o.changes {
			most += max(c.delta, 0)
		}
		o.mu.Unlock()
		for _, r := range w.book.all() {
			if r.offer == o {
				told += w.unitsOf(r, &p)
			}
		}
		if told > most {
			w.broken("no oversell: users were told that they have %d of %s, of which there were never more than %d", told, o.id, most)
		}
	}
}

// unitsOf is what a user was told is theirs and nobody has taken back or lost.
func (w *world) unitsOf(r *request, p *place) (units int64) {
	yeses, _ := r.told()
	for _, y := range yeses {
		y.mu.Lock()
		given := y.cancelling || y.refunding || r.offer.payWithin > 0
		y.mu.Unlock()
		for _, d := range w.book.grantsAt(y.claim.Position) {
			if d.request == r && p.past[d] && !given {
				units += y.claim.Quantity
			}
		}
	}
	return units
}

// probe asks for what may be halted: strangers, one after the other.
func (w *world) probe(o *offer) {
	d := newDice(w.plan.seed, "probe "+o.id)
	for i := range 5 {
		r := w.book.ask(&request{user: "probe" + string(rune('a'+i)) + time.Now().Format("150405"), key: "probe", offer: o, quantity: 1})
		w.claim(w.ctx, d, r)
	}
}

package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/live"
)

// goOn has an administrator decide to go on from a ledger that went back, and do what
// docs/OPERATIONS.md asks for. From then on every promise is held again, by what the
// ledger has by then. Items that move between shards are left as they are: such a
// campaign may stay halted, as docs/GUARANTEES.md says.
func (j *judge) goOn() {
	if slices.ContainsFunc(j.book.offers, func(o *offer) bool { return o.items && o.shards > 1 }) {
		return
	}
	j.story.tell("an administrator decides to go on from the ledger as it is")
	j.decided = true
	var why string
	for since := time.Now(); ; j.spend(lookEvery) {
		if why = j.decide(); why == "" {
			break
		}
		if time.Since(since) > calmFor && j.leftAside() {
			// It is told to everybody who asks, and people have to decide: items went to
			// other shards, say, which the ledger does not know any more.
			j.story.tell("what is set aside stays there: %s", why)
			// What was given up is sold again all the same.
			if err := j.forget(); err != nil {
				j.broken("the claims of an older ledger cannot be read: %v", err)
			}
			return
		}
		if time.Since(since) > settleWithin {
			j.broken("an administrator has decided to go on from an older ledger for %s, and %s", settleWithin, why)
			return
		}
	}
	if err := j.forget(); err != nil {
		j.broken("the claims of an older ledger cannot be read: %v", err)
		return
	}
	j.mu.Lock()
	j.restored = false
	j.mu.Unlock()
	j.hold()
}

// decide makes the changes again that the ledger does not know any more, and repairs. It
// says what is not whole yet; empty when all is. It may be called again and again.
func (j *judge) decide() string {
	p := j.saneSite()
	if p == nil {
		return "no node serves"
	}
	r, err := p.svc.Audit.Repair(j.ctx, audit.RepairRequest{OlderLedger: audit.OlderLedgerContinue})
	if err != nil {
		return fmt.Sprintf("the repair fails: %v", err)
	}
	for _, step := range r.Steps {
		j.story.tell("%s: repair: %s, done %v: %s", p.name, step.CampaignID, step.Done, step.What)
	}
	j.giveBackAgain(p)
	for _, o := range j.book.offers {
		if err := j.changeAgain(p, o); err != nil {
			return fmt.Sprintf("the stock of %s cannot be changed again: %v", o.id, err)
		}
		if r.OK {
			continue
		}
		if err := j.makeRoom(p, o); err != nil {
			return fmt.Sprintf("there is no room for what is set aside of %s: %v", o.id, err)
		}
	}
	if !r.OK {
		return fmt.Sprintf("the repair leaves %+v", r.After.Campaigns)
	}
	return j.unsettled()
}

// leftAside reports whether something is set aside.
func (j *judge) leftAside() bool {
	n, err := j.base.ledger.CountQuarantined(j.ctx)
	return err == nil && len(n) > 0
}

// changeAgain makes the stock changes again that an admin was told of and the ledger has
// lost. One that is refused by now is not made.
func (j *judge) changeAgain(p *process, o *offer) error {
	o.mu.Lock()
	changes := o.changes
	o.mu.Unlock()
	for _, c := range changes {
		if !c.done {
			continue
		}
		if used, err := j.counted(o, c); err != nil || used {
			c.done = c.done && !used
			if err != nil {
				return err
			}
			continue
		}
		if err := j.changeStock(p, o, c); errors.Is(err, dibs.ErrUnavailable) {
			return err
		}
		c.done = false
	}
	return nil
}

// giveBackAgain cancels and refunds again what was to be, since users may have claimed
// again what they had given back. A step that cannot be made is left out.
func (j *judge) giveBackAgain(p *process) {
	for _, r := range j.book.all() {
		yeses, _ := r.told()
		for _, y := range yeses {
			y.mu.Lock()
			cancels, refunds := y.cancelling, y.refunding
			y.mu.Unlock()
			var err error
			if cancels {
				_, _, err = p.svc.Orders.Cancel(j.ctx, y.claim.ID, r.user, "c-"+y.claim.ID)
				// Paid since the ledger knows nothing of the cancelling, it goes back with its money.
				refunds = refunds || errors.Is(err, dibs.ErrInvalidState)
			}
			if refunds {
				_, _, err = p.svc.Orders.Refund(j.ctx, y.claim.ID, dibs.RefundSpec{Restock: true}, "r-"+y.claim.ID)
			}
			if err != nil {
				j.story.tell("%s: %s is not given back again: %v", p.name, y, err)
			}
		}
	}
}

// changeStock sends a change of the stock once.
func (j *judge) changeStock(p *process, o *offer, c *stockChange) error {
	change := dibs.StockChange{Delta: c.delta, Items: c.items}
	if c.items != nil {
		change.Delta = 0
	}
	_, err := p.svc.Campaigns.ChangeStock(j.ctx, o.id, change, c.ref)
	j.story.tell("%s: admin changes the stock of %s by %+d again (%s): %v", p.name, o.id, c.delta, c.ref, err)
	return err
}

// makeRoom adds units for the grants that are set aside: what came back before they were
// granted, the ledger does not know any more.
func (j *judge) makeRoom(p *process, o *offer) error {
	aside, err := j.base.ledger.Quarantined(j.ctx, live.QuarantineFilter{Campaign: o.number}, 100)
	if err != nil || o.items || o.kind == dibs.RedPacket {
		return err
	}
	units := int64(0)
	for i := range aside {
		units += aside[i].Entry.Quantity
	}
	if units <= 0 {
		return nil
	}
	// A restock is divided over the shards: each gets as much as any of them may need.
	o.mu.Lock()
	c := &stockChange{ref: fmt.Sprintf("room-%d", len(o.changes)), delta: units * int64(o.shards)}
	o.changes = append(o.changes, c)
	o.mu.Unlock()
	return j.changeStock(p, o, c)
}

// forget has the book forget what the ledger does not know any more, by an
// administrator's decision.
func (j *judge) forget() error {
	for _, o := range j.book.offers {
		claims, err := j.claimsOf(o)
		if err != nil {
			return err
		}
		j.book.forget(o, func(y *yes) bool {
			c := claims[y.claim.Position]
			return c != nil && c.UserID == y.request.user
		})
	}
	return nil
}

// forget drops the yeses of an offer that are not kept, and what people were told of the
// steps and changes after a grant. The result of an attempt is not known any more.
func (b *book) forget(o *offer, keeps func(*yes) bool) {
	for _, r := range b.all() {
		if r.offer == o {
			r.forget(keeps)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.changes {
		c.done = false
	}
}

func (r *request) forget(keeps func(*yes) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.maybe = true
	var kept []*yes
	for _, y := range r.yeses {
		if !keeps(y) {
			continue
		}
		y.mu.Lock()
		y.paid, y.cancelled, y.refunded = false, false, false
		y.mu.Unlock()
		kept = append(kept, y)
	}
	r.yeses = kept
}

package redisengine_test

import (
	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// pay pays for the first claim through a node.
func (x *crossing) pay(n *member) error {
	c := x.firstYes().claim
	_, _, err := n.Orders.Confirm(x.ctx, c.ID, dibs.PaymentSpec{Amount: c.Amount, PaymentRef: "paid"})
	return err
}

// heldPayment holds a node that has written down a payment and does not know.
func heldPayment(x *crossing) {
	unsettled(x)
	x.h.holdAt(moved)
	x.again, x.ends = x.pay, dibs.Confirmed
	x.inBackground()
	x.inFlight()
}

// heldRefund holds a refund of a claim that was paid for, whose stock comes back.
func heldRefund(x *crossing, at step) {
	unsettled(x)
	must(x.T, x.pay(x.first))
	x.h.holdAt(at)
	id := x.firstYes().claim.ID
	// An older ledger may lack the payment too.
	x.again, x.ends = func(n *member) error {
		if err := x.pay(n); err != nil {
			return err
		}
		_, _, err := n.Orders.Refund(x.ctx, id, dibs.RefundSpec{Restock: true}, "back")
		return err
	}, dibs.Refunded
	x.inBackground()
	x.inFlight()
}

// heldRest holds a node on the way of what is left of a red packet to its sender.
func heldRest(x *crossing, at step) {
	x.h.holdAt(at)
	x.again = func(n *member) error {
		_, err := n.Campaigns.End(x.ctx, theCampaign)
		return err
	}
	x.inBackground()
	x.inFlight()
}

// inBackground has the first node asked for what is in flight. It may die before it
// answers.
func (x *crossing) inBackground() {
	first := x.first
	x.presses.Go(func() { _ = x.again(first) })
}

// isInTheEnd expects the first claim to be what was asked for.
func (x *crossing) isInTheEnd(n *member) {
	x.Helper()
	c, err := n.Claims.Find(x.ctx, x.firstYes().claim.ID)
	must(x.T, err)
	if c.Status != x.ends || c.Payment == nil || c.Payment.Ref != "paid" {
		x.Errorf("the first claim is %s in the end, want %s: %+v", c.Status, x.ends, c.Payment)
	}
}

// goesHome expects that what is left of a red packet reaches its sender, once, beside
// what the ledger's claims are worth.
func (x *crossing) goesHome(survivor *member, server *servers.Redis) {
	x.Helper()
	x.await("the end", func() bool { return x.again(survivor) == nil })
	x.await("the rest to be home", func() bool {
		funds, err := survivor.ledger.PacketFunds(x.ctx, 1)
		must(x.T, err)
		return !funds.ReturnedAt.IsZero()
	})
	x.presses.Wait()
	list, err := survivor.ledger.ClaimList(x.ctx, dibs.ClaimFilter{Campaign: 1}, dibs.Page{Limit: dibs.MaxPage})
	must(x.T, err)
	worth := int64(0)
	for i := range list.Items {
		for _, item := range list.Items[i].Items {
			_, amount, _ := dibs.ParseShare(item)
			worth += amount
		}
	}
	funds, err := survivor.ledger.PacketFunds(x.ctx, 1)
	must(x.T, err)
	if len(list.Items) == 0 || funds.Escrow != 0 || funds.Credited != worth || funds.Returned != packetTotal-worth {
		x.Errorf("of %d the claims have %d, and the funds are %+v", packetTotal, worth, funds)
	}
	bad, err := survivor.ledger.AuditAccounts(x.ctx, "CNY")
	must(x.T, err)
	if len(bad) > 0 {
		x.Errorf("the accounts do not balance: %v", bad)
	}
	x.noteJournal(server)
	x.keptYeses(survivor, server)
}

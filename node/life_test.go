package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/node"
)

const payWithin = 15 * time.Minute

// unpaid is the spec of a sale that has to be paid in time.
func (r *rig) unpaid(id string, units int64, late dibs.LatePayment) dibs.CampaignSpec {
	spec := r.sale(id, units)
	within := dibs.Duration(payWithin)
	spec.Price, spec.PayWithin, spec.LatePayment = &dibs.Money{Amount: 500, Currency: "CNY"}, &within, late
	return spec
}

// payment is what a claim of one unit costs.
func payment(ref string) dibs.PaymentSpec {
	return dibs.PaymentSpec{Amount: &dibs.Money{Amount: 500, Currency: "CNY"}, PaymentRef: ref}
}

func (r *rig) confirm(id, ref string) (*dibs.Claim, bool) {
	r.Helper()
	c, replayed, err := r.node.Service.Orders.Confirm(r.Context(), id, payment(ref))
	if err != nil {
		r.Fatalf("confirm %s by %s: %v", id, ref, err)
	}
	return c, replayed
}

// find reads a claim that must have a status.
func (r *rig) find(id string, want dibs.Status) *dibs.Claim {
	r.Helper()
	c, err := r.node.Service.Claims.Find(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	if c.Status != want {
		r.Fatalf("the claim %s is %s, want %s", id, c.Status, want)
	}
	return c
}

// eventually waits until a condition holds; the service works behind the test.
func (r *rig) eventually(what string, holds func() bool) {
	r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			r.Fatalf("%s: not within 20s", what)
		}
	}
}

// expire lets the time to pay pass and waits until nothing is pending.
func (r *rig) expire(campaign string) {
	r.Helper()
	r.pass(payWithin + time.Second)
	r.eventually("unpaid claims expire", func() bool { st := r.stats(campaign); return st.Pending == 0 && st.JournalBacklog == 0 })
}

// An unpaid claim expires, and what it held sells again at once.
func TestUnpaidClaimsExpireAndSellAgain(t *testing.T) {
	r := newRig(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond})
	r.publish(r.unpaid("phone", 3, dibs.Reclaim))
	first := r.wants(dibs.Granted, "phone", "u0", "k")
	paid := r.wants(dibs.Granted, "phone", "u1", "k")
	r.wants(dibs.Granted, "phone", "u2", "k")
	r.wants(dibs.SoldOut, "phone", "late", "k")
	r.confirm(paid.Claim.ID, "pay-1")
	r.expire("phone")
	r.find(first.Claim.ID, dibs.Released)
	r.eventually("the campaign sells again", func() bool { return r.claim("phone", "late", "k", 1).Outcome == dibs.Granted })
	r.wants(dibs.Granted, "phone", "u0", "again")
	r.wants(dibs.SoldOut, "phone", "u2", "again")
	r.find(paid.Claim.ID, dibs.Confirmed)
	r.verify()
	// The first press again is told what became of its claim.
	if res := r.claim("phone", "u0", "k", 1); !res.Replayed || res.Claim.Status != dibs.Released {
		t.Fatalf("the first press again: %+v", res)
	}
	r.reopen()
	r.verify()
	if st := r.stats("phone"); st.Pending != 2 || st.Confirmed != 1 || st.Released != 2 || st.Remaining != 0 || st.Granted != 3 {
		t.Fatalf("after a restart: %+v", st)
	}
}

// A payment may come before the claim is settled: it waits.
func TestPaymentOfAClaimOnItsWay(t *testing.T) {
	r := newRig(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
	r.publish(r.unpaid("phone", 3, dibs.Reclaim))
	id := r.wants(dibs.Granted, "phone", "u0", "k").Claim.ID
	c, replayed := r.confirm(id, "pay-1")
	if c.Status != dibs.Confirmed || replayed || c.Payment.Ref != "pay-1" || c.ID != id {
		t.Fatalf("%+v", c)
	}
	if _, replayed = r.confirm(id, "pay-1"); !replayed {
		t.Fatal("the same payment again is no repeat")
	}
	_, _, err := r.node.Service.Orders.Confirm(t.Context(), id, payment("pay-2"))
	r.fails(err, dibs.InvalidState)
	_, _, err = r.node.Service.Orders.Confirm(t.Context(), id, dibs.PaymentSpec{PaymentRef: "pay-1", Amount: &dibs.Money{Amount: 499, Currency: "CNY"}})
	r.fails(err, dibs.InvalidRequest)
	_, _, err = r.node.Service.Orders.Confirm(t.Context(), "0000000000000000", payment("pay-1"))
	r.fails(err, dibs.NotFound)
	for _, bad := range []dibs.PaymentSpec{
		{},
		{PaymentRef: "p", Amount: &dibs.Money{Amount: -1, Currency: "CNY"}},
		{PaymentRef: "p", Amount: &dibs.Money{Amount: 1 << 53, Currency: "CNY"}},
		{PaymentRef: "a\x00b"},
		{PaymentRef: "p", Amount: &dibs.Money{Amount: 500, Currency: "yuan"}},
	} {
		_, _, err = r.node.Service.Orders.Confirm(t.Context(), id, bad)
		r.fails(err, dibs.InvalidRequest)
	}
	r.verify()
}

func TestCancel(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	r.publish(r.unpaid("phone", 1, dibs.Reclaim))
	id := r.wants(dibs.Granted, "phone", "u0", "k").Claim.ID
	svc := r.node.Service
	_, _, err := svc.Orders.Cancel(t.Context(), id, "u1", "")
	r.fails(err, dibs.NotFound)
	c, _, err := svc.Orders.Cancel(t.Context(), id, "u0", "once")
	if err != nil || c.Status != dibs.Released {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, replayed, err := svc.Orders.Cancel(t.Context(), id, "u0", "once"); err != nil || !replayed {
		t.Fatalf("the same cancel again: %v, %v", replayed, err)
	}
	_, _, err = svc.Orders.Cancel(t.Context(), id, "u0", "")
	r.fails(err, dibs.InvalidState)
	r.eventually("sold out clears", func() bool { return r.claim("phone", "u1", "k", 1).Outcome == dibs.Granted })
	// Who gave a claim up and paid all the same gets the money back.
	if c, _ := r.confirm(id, "pay-1"); c.Status != dibs.Released || !c.Payment.Due || c.ID != id {
		t.Fatalf("%+v", c)
	}
	r.verify()
}

// TestLatePayment: a payment after the deadline is never lost, and takes stock
// again where the campaign says so and there is some.
func TestLatePayment(t *testing.T) {
	for _, x := range []struct {
		name    string
		rule    dibs.LatePayment
		before  func(r *rig)
		reclaim bool
	}{
		{"reclaim", dibs.Reclaim, nil, true},
		{"reclaim, sold out", dibs.Reclaim, func(r *rig) {
			r.eventually("it sells again", func() bool { return r.claim("phone", "u9", "k9", 1).Outcome == dibs.Granted })
		}, false},
		{"reclaim, limit reached", dibs.Reclaim, func(r *rig) {
			r.eventually("it sells again", func() bool { return r.claim("phone", "u0", "k9", 1).Outcome == dibs.Granted })
			r.changeStock("phone", dibs.StockChange{Delta: 5}, "")
		}, false},
		{"reclaim, ended", dibs.Reclaim, func(r *rig) {
			if _, err := r.node.Service.Campaigns.End(r.Context(), "phone"); err != nil {
				r.Fatal(err)
			}
		}, true},
		{"reclaim, after the window and gone from the engine", dibs.Reclaim, func(r *rig) {
			r.pass(2 * time.Hour)
			r.reopen()
		}, true},
		{"refund_due", dibs.RefundDue, nil, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRig(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond})
			r.publish(r.unpaid("phone", 1, x.rule))
			id := r.wants(dibs.Granted, "phone", "u0", "k").Claim.ID
			r.expire("phone")
			if x.before != nil {
				x.before(r)
			}
			r.eventually("the release reached the engine", func() bool {
				n, err := r.node.Ledger.Commands(t.Context(), 0, 1)
				return err == nil && len(n) == 0
			})
			c, replayed := r.confirm(id, "pay-1")
			again, repeated := r.confirm(id, "pay-1")
			if replayed || !repeated || again.ID != c.ID || again.Status != c.Status {
				t.Fatalf("%+v, and again %+v", c, again)
			}
			old := r.find(id, dibs.Released)
			if x.reclaim {
				if c.Status != dibs.Confirmed || c.Replaces != id || old.ReplacedBy != c.ID || c.Payment.Ref != "pay-1" || old.Payment != nil {
					t.Fatalf("the claim is %+v, the old one %+v", c, old)
				}
			} else if c.ID != id || !c.Payment.Due || c.Payment.Ref != "pay-1" {
				t.Fatalf("the claim is %+v", c)
			}
			_, _, err := r.node.Service.Orders.Confirm(t.Context(), id, payment("pay-2"))
			r.fails(err, dibs.InvalidState)
			r.verify()
			r.reopen()
			r.verify()
		})
	}
}

// A late payment that was interrupted after it took stock again goes on with
// that stock, or, when that has expired too, with new stock.
func TestLatePaymentGoesOn(t *testing.T) {
	for _, expires := range []bool{false, true} {
		t.Run(fmt.Sprint("the stock taken again expires: ", expires), func(t *testing.T) {
			r := newRig(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond})
			r.publish(r.unpaid("phone", 1, dibs.Reclaim))
			first := r.wants(dibs.Granted, "phone", "u0", "k").Claim
			r.expire("phone")
			r.eventually("it sells again", func() bool { return r.stats("phone").Remaining == 1 })
			// What the interrupted attempt did.
			d, err := r.node.Engine.Claim(t.Context(), dibs.EngineClaim{
				Shard: first.Position.ShardID, UserID: "u0", Quantity: 1, Key: dibs.LateKey(first.ID), Late: true,
			})
			if err != nil || d.Outcome != dibs.Granted {
				t.Fatalf("%+v, %v", d, err)
			}
			if expires {
				r.expire("phone")
				r.eventually("it sells again", func() bool { return r.stats("phone").Remaining == 1 })
			}
			c, _ := r.confirm(first.ID, "pay-1")
			if same := c.Position == d.Grant.Position; c.Status != dibs.Confirmed || same == expires {
				t.Fatalf("the claim is %+v, stock was taken at %v", c, d.Grant.Position)
			}
			r.verify()
		})
	}
}

func TestRefundsAndCoupons(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	r.publish(r.unpaid("phone", 2, dibs.Reclaim))
	svc, ctx := r.node.Service, t.Context()
	id := r.wants(dibs.Granted, "phone", "u0", "k").Claim.ID
	_, _, err := svc.Orders.Refund(ctx, id, dibs.RefundSpec{}, "")
	r.fails(err, dibs.InvalidState)
	r.confirm(id, "pay-1")
	if _, _, err := svc.Orders.Ship(ctx, id, dibs.ShipmentSpec{Carrier: "SF", TrackingNo: "1"}); err != nil {
		t.Fatal(err)
	}
	part := dibs.RefundSpec{Amount: &dibs.Money{Amount: 200, Currency: "CNY"}}
	for i := range 3 {
		c, replayed, err := svc.Orders.Refund(ctx, id, part, "ref-1")
		if err != nil || c.Status != dibs.Confirmed || c.Payment.Refunded != 200 || replayed != (i > 0) {
			t.Fatalf("%+v, %v, %v", c, replayed, err)
		}
	}
	_, _, err = svc.Orders.Refund(ctx, id, dibs.RefundSpec{Amount: &dibs.Money{Amount: 301, Currency: "CNY"}}, "")
	r.fails(err, dibs.InvalidState)
	c, _, err := svc.Orders.Refund(ctx, id, dibs.RefundSpec{Restock: true}, "")
	if err != nil || c.Status != dibs.Refunded || c.Payment.Refunded != 500 || !c.Restocked {
		t.Fatalf("%+v, %v", c, err)
	}
	r.eventually("the allowance came back", func() bool { return r.claim("phone", "u0", "k2", 1).Outcome == dibs.Granted })
	if res := r.claim("phone", "u0", "k", 1); res.Claim.Status != dibs.Refunded {
		t.Fatalf("the first press again: %+v", res.Claim)
	}

	codes := dibs.CampaignSpec{
		ID: "ten-off", Kind: dibs.Coupon, Title: "Ten off", StartsAt: r.now().Add(-time.Minute), EndsAt: r.now().Add(time.Hour),
		Stock: dibs.StockSpec{Codes: &dibs.CodesSpec{Count: 5}}, ValidFor: new(dibs.Duration(24 * time.Hour)),
	}
	r.publish(codes)
	coupon := r.wants(dibs.Granted, "ten-off", "u0", "k").Claim
	if coupon.ValidUntil != coupon.CreatedAt.Add(24*time.Hour) {
		t.Fatalf("valid until %v", coupon.ValidUntil)
	}
	if c, _, err = svc.Orders.Redeem(ctx, coupon.ID, dibs.RedeemSpec{Ref: "order-9"}); err != nil || c.Redemption.Ref != "order-9" {
		t.Fatalf("%+v, %v", c, err)
	}
	_, _, err = svc.Orders.Redeem(ctx, coupon.ID, dibs.RedeemSpec{Ref: "order-10"})
	r.fails(err, dibs.InvalidState)
	_, _, err = svc.Orders.Redeem(ctx, coupon.ID, dibs.RedeemSpec{Ref: "order-10", UserID: "u1"})
	r.fails(err, dibs.NotFound)
	if c, _, err = svc.Orders.Unredeem(ctx, coupon.ID, dibs.UnredeemSpec{Ref: "order-9"}); err != nil || c.Redemption != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	r.pass(25 * time.Hour)
	_, _, err = svc.Orders.Redeem(ctx, coupon.ID, dibs.RedeemSpec{Ref: "order-11"})
	r.fails(err, dibs.InvalidState)
	r.verify()
}

// TestClockJumps: a clock that jumps back brings nothing back and releases
// nothing twice; one that jumps ahead releases what is due, once.
func TestClockJumps(t *testing.T) {
	r := newRig(t, node.ServiceConfig{SweepEvery: 2 * time.Millisecond})
	r.publish(r.unpaid("phone", 50, dibs.Reclaim))
	for i := range 200 {
		if i%7 == 0 {
			r.pass(payWithin + time.Second)
		}
		if i%7 == 3 {
			r.pass(-payWithin - time.Second)
		}
		if res := r.claim("phone", fmt.Sprint("u", i), "k", 1); res.Outcome == dibs.Granted && i%3 == 0 {
			// The jump may have come first: then the payment is late.
			r.confirm(res.Claim.ID, fmt.Sprint("pay-", i))
		}
	}
	r.verify()
	r.pass(-2 * payWithin)
	r.reopen()
	r.verify()
	r.pass(3 * payWithin)
	r.expire("phone")
	r.verify()
	st := r.stats("phone")
	if st.Granted+st.Remaining != 50 || st.Confirmed != st.Granted {
		t.Fatalf("%+v", st)
	}
}

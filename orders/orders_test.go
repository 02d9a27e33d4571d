package orders_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/orders"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// An unpaid claim expires, and what it held sells again at once.
func TestUnpaidClaimsExpireAndSellAgain(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond})
	r.Publish(r.Unpaid("phone", 3, dibs.Reclaim))
	first := r.Wants(dibs.Granted, "phone", "u0", "k")
	paid := r.Wants(dibs.Granted, "phone", "u1", "k")
	r.Wants(dibs.Granted, "phone", "u2", "k")
	r.Wants(dibs.SoldOut, "phone", "late", "k")
	r.Confirm(paid.Claim.ID, "pay-1")
	r.Expire("phone")
	r.Find(first.Claim.ID, dibs.Released)
	r.Eventually("the campaign sells again", func() bool { return r.Claim("phone", "late", "k", 1).Outcome == dibs.Granted })
	r.Wants(dibs.Granted, "phone", "u0", "again")
	r.Wants(dibs.SoldOut, "phone", "u2", "again")
	r.Find(paid.Claim.ID, dibs.Confirmed)
	r.Verify()
	// The first press again is told what became of its claim.
	if res := r.Claim("phone", "u0", "k", 1); !res.Replayed || res.Claim.Status != dibs.Released {
		t.Fatalf("the first press again: %+v", res)
	}
	r.Reopen()
	r.Verify()
	if st := r.Stats("phone"); st.Pending != 2 || st.Confirmed != 1 || st.Released != 2 || st.Remaining != 0 || st.Granted != 3 {
		t.Fatalf("after a restart: %+v", st)
	}
}

// A testnode.Payment may come before the claim is settled: it waits.
func TestPaymentOfAClaimOnItsWay(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
	r.Publish(r.Unpaid("phone", 3, dibs.Reclaim))
	id := r.Wants(dibs.Granted, "phone", "u0", "k").Claim.ID
	c, replayed := r.Confirm(id, "pay-1")
	if c.Status != dibs.Confirmed || replayed || c.Payment.Ref != "pay-1" || c.ID != id {
		t.Fatalf("%+v", c)
	}
	if _, replayed = r.Confirm(id, "pay-1"); !replayed {
		t.Fatal("the same testnode.Payment again is no repeat")
	}
	_, _, err := r.Node.Orders.Confirm(t.Context(), id, testnode.Payment("pay-2"))
	r.Fails(err, dibs.InvalidState)
	_, _, err = r.Node.Orders.Confirm(t.Context(), id, dibs.PaymentSpec{PaymentRef: "pay-1", Amount: &dibs.Money{Amount: 499, Currency: "CNY"}})
	r.Fails(err, dibs.InvalidRequest)
	_, _, err = r.Node.Orders.Confirm(t.Context(), "0000000000000000", testnode.Payment("pay-1"))
	r.Fails(err, dibs.NotFound)
	for _, bad := range []dibs.PaymentSpec{
		{},
		{PaymentRef: "p", Amount: &dibs.Money{Amount: -1, Currency: "CNY"}},
		{PaymentRef: "p", Amount: &dibs.Money{Amount: 1 << 53, Currency: "CNY"}},
		{PaymentRef: "a\x00b"},
		{PaymentRef: "p", Amount: &dibs.Money{Amount: 500, Currency: "yuan"}},
	} {
		_, _, err = r.Node.Orders.Confirm(t.Context(), id, bad)
		r.Fails(err, dibs.InvalidRequest)
	}
	r.Verify()
}

func TestCancel(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Unpaid("phone", 1, dibs.Reclaim))
	id := r.Wants(dibs.Granted, "phone", "u0", "k").Claim.ID
	svc := r.Node.Service
	_, _, err := svc.Orders.Cancel(t.Context(), id, "u1", "")
	r.Fails(err, dibs.NotFound)
	c, _, err := svc.Orders.Cancel(t.Context(), id, "u0", "once")
	if err != nil || c.Status != dibs.Released {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, replayed, err := svc.Orders.Cancel(t.Context(), id, "u0", "once"); err != nil || !replayed {
		t.Fatalf("the same cancel again: %v, %v", replayed, err)
	}
	_, _, err = svc.Orders.Cancel(t.Context(), id, "u0", "")
	r.Fails(err, dibs.InvalidState)
	r.Eventually("sold out clears", func() bool { return r.Claim("phone", "u1", "k", 1).Outcome == dibs.Granted })
	// A user who gave a claim up and paid all the same gets the money back.
	if c, _ := r.Confirm(id, "pay-1"); c.Status != dibs.Released || !c.Payment.Due || c.ID != id {
		t.Fatalf("%+v", c)
	}
	r.Verify()
}

// TestLatePayment: a testnode.Payment after the deadline is never lost, and takes stock
// again where the campaign says so and there is some.
func TestLatePayment(t *testing.T) {
	for _, x := range []struct {
		name    string
		rule    dibs.LatePayment
		before  func(r *testnode.Rig)
		reclaim bool
	}{
		{"reclaim", dibs.Reclaim, nil, true},
		{"reclaim, sold out", dibs.Reclaim, func(r *testnode.Rig) {
			r.Eventually("it sells again", func() bool { return r.Claim("phone", "u9", "k9", 1).Outcome == dibs.Granted })
		}, false},
		{"reclaim, limit reached", dibs.Reclaim, func(r *testnode.Rig) {
			r.Eventually("it sells again", func() bool { return r.Claim("phone", "u0", "k9", 1).Outcome == dibs.Granted })
			r.ChangeStock("phone", dibs.StockChange{Delta: 5}, "")
		}, false},
		{"reclaim, ended", dibs.Reclaim, func(r *testnode.Rig) {
			if _, err := r.Node.Campaigns.End(r.Context(), "phone"); err != nil {
				r.Fatal(err)
			}
		}, true},
		{"reclaim, after the window and gone from the engine", dibs.Reclaim, func(r *testnode.Rig) {
			r.Pass(2 * time.Hour)
			r.Reopen()
		}, true},
		{"refund_due", dibs.RefundDue, nil, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := testnode.New(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond})
			r.Publish(r.Unpaid("phone", 1, x.rule))
			id := r.Wants(dibs.Granted, "phone", "u0", "k").Claim.ID
			r.Expire("phone")
			if x.before != nil {
				x.before(r)
			}
			r.Eventually("the release reached the engine", func() bool {
				n, err := r.Node.Ledger.Commands(t.Context(), 0, 1)
				return err == nil && len(n) == 0
			})
			c, replayed := r.Confirm(id, "pay-1")
			again, repeated := r.Confirm(id, "pay-1")
			if replayed || !repeated || again.ID != c.ID || again.Status != c.Status {
				t.Fatalf("%+v, and again %+v", c, again)
			}
			old := r.Find(id, dibs.Released)
			if x.reclaim {
				if c.Status != dibs.Confirmed || c.Replaces != id || old.ReplacedBy != c.ID || c.Payment.Ref != "pay-1" || old.Payment != nil {
					t.Fatalf("the claim is %+v, the old one %+v", c, old)
				}
			} else if c.ID != id || !c.Payment.Due || c.Payment.Ref != "pay-1" {
				t.Fatalf("the claim is %+v", c)
			}
			_, _, err := r.Node.Orders.Confirm(t.Context(), id, testnode.Payment("pay-2"))
			r.Fails(err, dibs.InvalidState)
			r.Verify()
			r.Reopen()
			r.Verify()
		})
	}
}

// A late testnode.Payment that was interrupted after it took stock again goes on with
// that stock, or, when that has expired too, with new stock.
func TestLatePaymentGoesOn(t *testing.T) {
	for _, expires := range []bool{false, true} {
		t.Run(fmt.Sprint("the stock taken again expires: ", expires), func(t *testing.T) {
			r := testnode.New(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond})
			r.Publish(r.Unpaid("phone", 1, dibs.Reclaim))
			first := r.Wants(dibs.Granted, "phone", "u0", "k").Claim
			r.Expire("phone")
			r.Eventually("it sells again", func() bool { return r.Stats("phone").Remaining == 1 })
			// The part that the interrupted attempt did.
			d, err := r.Node.Engine.Claim(t.Context(), dibs.EngineClaim{
				Shard: first.Position.ShardID, UserID: "u0", Quantity: 1, Key: orders.LateKey(first.ID), Late: true,
			})
			if err != nil || d.Outcome != dibs.Granted {
				t.Fatalf("%+v, %v", d, err)
			}
			if expires {
				r.Expire("phone")
				r.Eventually("it sells again", func() bool { return r.Stats("phone").Remaining == 1 })
			}
			c, _ := r.Confirm(first.ID, "pay-1")
			if same := c.Position == d.Grant.Position; c.Status != dibs.Confirmed || same == expires {
				t.Fatalf("the claim is %+v, stock was taken at %v", c, d.Grant.Position)
			}
			r.Verify()
		})
	}
}

// A late payment that was interrupted after it took stock again is due back when another payment has paid for that stock.
func TestLatePaymentFindsItsStockPaid(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond})
	r.Publish(r.Unpaid("phone", 1, dibs.Reclaim))
	first := r.Wants(dibs.Granted, "phone", "u0", "k").Claim
	r.Expire("phone")
	r.Eventually("it sells again", func() bool { return r.Stats("phone").Remaining == 1 })
	// The part that the interrupted attempt did. The user sees a claim that waits for a payment, and pays it.
	if d, err := r.Node.Engine.Claim(t.Context(), dibs.EngineClaim{
		Shard: first.Position.ShardID, UserID: "u0", Quantity: 1, Key: orders.LateKey(first.ID), Late: true,
	}); err != nil || d.Outcome != dibs.Granted {
		t.Fatalf("%+v, %v", d, err)
	}
	mine, err := r.Node.Claims.OfUser(t.Context(), "u0", dibs.Page{})
	if err != nil || len(mine.Items) != 2 {
		t.Fatalf("%+v, %v", mine, err)
	}
	for i := range mine.Items {
		if id := mine.Items[i].ID; id != first.ID {
			r.Confirm(id, "pay-2")
		}
	}
	for i := range 2 {
		if c, replayed := r.Confirm(first.ID, "pay-1"); c.ID != first.ID || c.Payment == nil || !c.Payment.Due || replayed != (i == 1) {
			t.Errorf("replayed %v: %+v", replayed, c)
		}
	}
	r.Verify()
}

func TestRefundsAndCoupons(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Unpaid("phone", 2, dibs.Reclaim))
	svc, ctx := r.Node.Service, t.Context()
	id := r.Wants(dibs.Granted, "phone", "u0", "k").Claim.ID
	_, _, err := svc.Orders.Refund(ctx, id, dibs.RefundSpec{}, "")
	r.Fails(err, dibs.InvalidState)
	r.Confirm(id, "pay-1")
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
	r.Fails(err, dibs.InvalidState)
	c, _, err := svc.Orders.Refund(ctx, id, dibs.RefundSpec{Restock: true}, "")
	if err != nil || c.Status != dibs.Refunded || c.Payment.Refunded != 500 || !c.Restocked {
		t.Fatalf("%+v, %v", c, err)
	}
	r.Eventually("the allowance came back", func() bool { return r.Claim("phone", "u0", "k2", 1).Outcome == dibs.Granted })
	if res := r.Claim("phone", "u0", "k", 1); res.Claim.Status != dibs.Refunded {
		t.Fatalf("the first press again: %+v", res.Claim)
	}

	codes := dibs.CampaignSpec{
		ID: "ten-off", Kind: dibs.Coupon, Title: "Ten off", StartsAt: r.Now().Add(-time.Minute), EndsAt: r.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Codes: &dibs.CodesSpec{Count: 5}}, ValidFor: new(dibs.Duration(24 * time.Hour)),
	}
	r.Publish(codes)
	coupon := r.Wants(dibs.Granted, "ten-off", "u0", "k").Claim
	if coupon.ValidUntil != coupon.CreatedAt.Add(24*time.Hour) {
		t.Fatalf("valid until %v", coupon.ValidUntil)
	}
	if c, _, err = svc.Orders.Redeem(ctx, coupon.ID, dibs.RedeemSpec{Ref: "order-9"}); err != nil || c.Redemption.Ref != "order-9" {
		t.Fatalf("%+v, %v", c, err)
	}
	_, _, err = svc.Orders.Redeem(ctx, coupon.ID, dibs.RedeemSpec{Ref: "order-10"})
	r.Fails(err, dibs.InvalidState)
	_, _, err = svc.Orders.Redeem(ctx, coupon.ID, dibs.RedeemSpec{Ref: "order-10", UserID: "u1"})
	r.Fails(err, dibs.NotFound)
	if c, _, err = svc.Orders.Unredeem(ctx, coupon.ID, dibs.UnredeemSpec{Ref: "order-9"}); err != nil || c.Redemption != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	r.Pass(25 * time.Hour)
	_, _, err = svc.Orders.Redeem(ctx, coupon.ID, dibs.RedeemSpec{Ref: "order-11"})
	r.Fails(err, dibs.InvalidState)
	r.Verify()
}

// TestClockJumps: a clock that jumps back brings nothing back and releases
// nothing twice; one that jumps ahead releases what is due, once.
func TestClockJumps(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SweepEvery: 2 * time.Millisecond})
	r.Publish(r.Unpaid("phone", 50, dibs.Reclaim))
	for i := range 200 {
		if i%7 == 0 {
			r.Pass(testnode.PayWithin + time.Second)
		}
		if i%7 == 3 {
			r.Pass(-testnode.PayWithin - time.Second)
		}
		if res := r.Claim("phone", fmt.Sprint("u", i), "k", 1); res.Outcome == dibs.Granted && i%3 == 0 {
			// The jump may have come first: then the testnode.Payment is late.
			r.Confirm(res.Claim.ID, fmt.Sprint("pay-", i))
		}
	}
	r.Verify()
	r.Pass(-2 * testnode.PayWithin)
	r.Reopen()
	r.Verify()
	r.Pass(3 * testnode.PayWithin)
	r.Expire("phone")
	r.Verify()
	st := r.Stats("phone")
	if st.Granted+st.Remaining != 50 || st.Confirmed != st.Granted {
		t.Fatalf("%+v", st)
	}
}

// A regular order is paid, expires, and is paid too late, as others are.
func TestRegularOrders(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond})
	svc := r.Node.Service
	within := dibs.Duration(testnode.PayWithin)
	if _, err := svc.Products.Create(t.Context(), dibs.ProductSpec{
		ID: "mug", Name: "Mug", Price: &dibs.Money{Amount: 500, Currency: "CNY"}, Stock: 2, PayWithin: &within,
	}); err != nil {
		t.Fatal(err)
	}
	order := func(user, key string) dibs.Result {
		t.Helper()
		res, err := svc.Orders.Place(t.Context(), orders.Request{ProductID: "mug", UserID: user, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	left := func() int64 {
		t.Helper()
		p, err := svc.Products.Get(t.Context(), "mug")
		if err != nil {
			t.Fatal(err)
		}
		return p.StockLeft
	}
	paid, unpaid := order("ann", "k").Claim, order("bob", "k").Claim
	if order("cy", "k").Outcome != dibs.SoldOut || !order("ann", "k").Replayed {
		t.Error("the stock is not what was ordered")
	}
	r.Confirm(paid.ID, "pay-1")
	r.Pass(testnode.PayWithin + time.Second)
	r.Eventually("the unpaid order expires", func() bool { return left() == 1 })
	r.Find(unpaid.ID, dibs.Released)
	// Its price rose meanwhile; the late payer pays what the order cost.
	if _, err := svc.Products.Patch(t.Context(), "mug", dibs.ProductPatch{Price: &dibs.Money{Amount: 900, Currency: "CNY"}}); err != nil {
		t.Fatal(err)
	}
	late, _ := r.Confirm(unpaid.ID, "pay-2")
	if late.Status != dibs.Confirmed || late.Replaces != unpaid.ID || late.OrderType != dibs.RegularOrder || left() != 0 {
		t.Errorf("a late testnode.Payment: %+v, %d left", late, left())
	}
	if again, replayed := r.Confirm(unpaid.ID, "pay-2"); !replayed || again.ID != late.ID {
		t.Errorf("again: %+v %v", again, replayed)
	}
	if _, _, err := svc.Orders.Ship(t.Context(), paid.ID, dibs.ShipmentSpec{Carrier: "SF", TrackingNo: "1"}); err != nil {
		t.Error(err)
	}
	if _, _, err := svc.Orders.Refund(t.Context(), paid.ID, dibs.RefundSpec{Restock: true}, ""); err != nil || left() != 1 {
		t.Errorf("%v, %d left", err, left())
	}
	if _, err := svc.Campaigns.ChangeStock(t.Context(), "product:mug", dibs.StockChange{Delta: 1}, ""); err == nil {
		t.Error("the campaign of regular orders was found")
	}
	r.Verify()
	r.Reopen()
	r.Verify()
}

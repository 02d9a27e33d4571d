package node_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/node"
)

// The second unit at half price, from the claim to the refund.
func TestTiers(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	spec := r.unpaid("shoes", 10, dibs.Reclaim)
	spec.Limit, spec.Tiers = new(int64(3)), []dibs.Tier{{FromUnit: 2, Percent: 50}}
	r.publish(spec)
	svc := r.node.Service
	res := r.claim("shoes", "ann", "k", 3)
	if res.Claim == nil || *res.Claim.Amount != (dibs.Money{Amount: 1000, Currency: "CNY"}) {
		t.Fatalf("three units: %+v", res)
	}
	pay := func(amount int64) (*dibs.Claim, error) {
		c, _, err := svc.Orders.Confirm(t.Context(), res.Claim.ID, dibs.PaymentSpec{
			PaymentRef: "p", Amount: &dibs.Money{Amount: amount, Currency: "CNY"},
		})
		return c, err
	}
	_, err := pay(1500)
	if e := r.fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/amount" {
		t.Errorf("the price without tiers: %+v", e)
	}
	if c, err := pay(1000); err != nil || c.Status != dibs.Confirmed {
		t.Fatalf("%+v %v", c, err)
	}
	if c := r.find(res.Claim.ID, dibs.Confirmed); c.Amount.Amount != 1000 {
		t.Errorf("the settled claim costs %d", c.Amount.Amount)
	}
	// Units count within one claim: another claim begins anew.
	for _, key := range []string{"k1", "k2"} {
		if one := r.claim("shoes", "bob", key, 1); one.Claim.Amount.Amount != 500 {
			t.Errorf("%s costs %d", key, one.Claim.Amount.Amount)
		}
	}
	c, _, err := svc.Orders.Refund(t.Context(), res.Claim.ID, dibs.RefundSpec{Restock: true}, "r")
	if err != nil || c.Status != dibs.Refunded || c.Payment.Refunded != 1000 {
		t.Errorf("%+v %v", c, err)
	}
	_, err = svc.Campaigns.Patch(t.Context(), "shoes", dibs.CampaignPatch{Tiers: []dibs.Tier{}})
	if e := r.fails(err, dibs.InvalidState); e.Faults[0].Field != "/tiers" {
		t.Errorf("tiers after publishing: %+v", e)
	}
	r.verify()
}

// Tiers need a price, at the latest when the product's is taken.
func TestTiersNeedAPrice(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	svc := r.node.Service
	if _, err := svc.Products.Create(t.Context(), dibs.ProductSpec{ID: "p", Name: "p"}); err != nil {
		t.Fatal(err)
	}
	spec := r.sale("c", 5)
	spec.ProductID, spec.Tiers = new("p"), []dibs.Tier{{FromUnit: 2, Percent: 50}}
	if _, err := svc.Campaigns.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	_, err := svc.Campaigns.Publish(t.Context(), "c")
	if e := r.fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/tiers" {
		t.Errorf("%+v", e)
	}
	// The sum that publishing checks is of the product's price.
	most := dibs.Money{Amount: dibs.MaxMinor - 1, Currency: "CNY"}
	if _, err := svc.Products.Patch(t.Context(), "p", dibs.ProductPatch{Price: &most}); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Campaigns.Patch(t.Context(), "c", dibs.CampaignPatch{Limit: new(int64(2))}); err != nil {
		t.Fatal(err)
	}
	_, err = svc.Campaigns.Publish(t.Context(), "c")
	if e := r.fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/price/amount" {
		t.Errorf("%+v", e)
	}
	free := []dibs.Tier{{FromUnit: 2, Percent: 0}}
	if c, err := svc.Campaigns.Patch(t.Context(), "c", dibs.CampaignPatch{Tiers: free}); err != nil || len(c.Tiers) != 1 {
		t.Fatalf("%+v %v", c, err)
	}
	if _, err = svc.Campaigns.Publish(t.Context(), "c"); err != nil {
		t.Error(err)
	}
}

// Stock that comes down to low_stock is told once, and again after it rose.
func TestLowStock(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	spec := r.unpaid("mugs", 5, dibs.Reclaim)
	spec.LowStock = 2
	r.publish(spec)
	svc := r.node.Service
	low := func(want bool) api.CampaignView {
		t.Helper()
		if err := settled(r, "mugs"); err != nil {
			t.Fatal(err)
		}
		c, err := svc.Live.Registry.Now(t.Context(), "mugs")
		if err != nil {
			t.Fatal(err)
		}
		v, err := svc.CampaignView(t.Context(), c, true)
		if err != nil || (v.LowSince != nil) != want || r.stats("mugs").Low != want || v.LowStock != 2 {
			t.Fatalf("low is to be %v: %+v %+v %v", want, v, r.stats("mugs"), err)
		}
		return v
	}
	low(false)
	r.sell("mugs", 2)
	low(false)
	third := r.wants(dibs.Granted, "mugs", "third", "k")
	since := low(true).LowSince
	r.wants(dibs.Granted, "mugs", "fourth", "k")
	if again := low(true).LowSince; !again.Equal(*since) {
		t.Errorf("low since %s, and then since %s", since, again)
	}
	if _, _, err := svc.Orders.Cancel(t.Context(), third.Claim.ID, "", ""); err != nil {
		t.Fatal(err)
	}
	low(true)
	if _, err := svc.Campaigns.ChangeStock(t.Context(), "mugs", dibs.StockChange{Delta: 3}, ""); err != nil {
		t.Fatal(err)
	}
	low(false)
	// The threshold can change at any time.
	if _, err := svc.Campaigns.Patch(t.Context(), "mugs", dibs.CampaignPatch{LowStock: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	r.verify()
}

// settled waits until all that was granted is in the ledger.
func settled(r *rig, campaign string) error {
	_, err := r.node.Service.Claims.OfCampaign(r.Context(), campaign, dibs.ClaimFilter{}, dibs.Page{})
	return err
}

// Imported codes are granted, those of a later batch too, and each once.
func TestImportedCodes(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	svc := r.node.Service
	spec := r.sale("spring", 0)
	spec.Kind, spec.Stock = dibs.Coupon, dibs.StockSpec{Items: []string{}}
	if _, err := svc.Campaigns.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	add := func(file, ref string) *dibs.Imported {
		t.Helper()
		done, err := svc.Campaigns.ImportCodes(t.Context(), "spring", strings.NewReader(file), ref, nil)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if done := add("code\nA1\nA2\n", "first"); done.Items != 2 || done.Campaign.Stock.Total != 2 {
		t.Errorf("%+v", done)
	}
	if _, err := svc.Campaigns.Publish(t.Context(), "spring"); err != nil {
		t.Fatal(err)
	}
	r.sell("spring", 2)
	r.wants(dibs.SoldOut, "spring", "late", "")
	if done := add("A3\nA4\n", "second"); done.Items != 2 || done.Campaign.Stock.Total != 4 {
		t.Errorf("%+v", done)
	}
	if done := add("A3\nA4\n", "second"); !done.Replayed || done.Campaign.Stock.Total != 4 {
		t.Errorf("again: %+v", done)
	}
	if c := r.wants(dibs.Granted, "spring", "late", "").Claim; !slices.Equal(c.Items, []string{"A3"}) {
		t.Errorf("the first of the second batch is %v", c.Items)
	}
	_, err := svc.Campaigns.ImportCodes(t.Context(), "spring", strings.NewReader("A9\nA4\n"), "", nil)
	if e := r.fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/lines/2" {
		t.Errorf("%+v", e)
	}
	// What waits in the outbox when the engine is loaded anew counts once.
	r.reopen()
	svc = r.node.Service
	r.wants(dibs.Granted, "spring", "later", "")
	r.wants(dibs.SoldOut, "spring", "last", "")
	r.verify()
}

// A regular order is paid, expires, and is paid too late, as others are.
func TestRegularOrders(t *testing.T) {
	r := newRig(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond})
	svc := r.node.Service
	within := dibs.Duration(payWithin)
	if _, err := svc.Products.Create(t.Context(), dibs.ProductSpec{
		ID: "mug", Name: "Mug", Price: &dibs.Money{Amount: 500, Currency: "CNY"}, Stock: 2, PayWithin: &within,
	}); err != nil {
		t.Fatal(err)
	}
	order := func(user, key string) dibs.Result {
		t.Helper()
		res, err := svc.Orders.Place(t.Context(), dibs.OrderRequest{ProductID: "mug", UserID: user, Key: key})
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
	r.confirm(paid.ID, "pay-1")
	r.pass(payWithin + time.Second)
	r.eventually("the unpaid order expires", func() bool { return left() == 1 })
	r.find(unpaid.ID, dibs.Released)
	// Its price rose meanwhile; the late payer pays what the order cost.
	if _, err := svc.Products.Patch(t.Context(), "mug", dibs.ProductPatch{Price: &dibs.Money{Amount: 900, Currency: "CNY"}}); err != nil {
		t.Fatal(err)
	}
	late, _ := r.confirm(unpaid.ID, "pay-2")
	if late.Status != dibs.Confirmed || late.Replaces != unpaid.ID || late.OrderType != dibs.RegularOrder || left() != 0 {
		t.Errorf("a late payment: %+v, %d left", late, left())
	}
	if again, replayed := r.confirm(unpaid.ID, "pay-2"); !replayed || again.ID != late.ID {
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
	r.verify()
	r.reopen()
	r.verify()
}

package campaigns_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// The second unit at half price, from the claim to the refund.
func TestTiers(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Unpaid("shoes", 10, dibs.Reclaim)
	spec.Limit, spec.Tiers = new(int64(3)), []dibs.Tier{{FromUnit: 2, Percent: 50}}
	r.Publish(spec)
	svc := r.Node.Service
	res := r.Claim("shoes", "ann", "k", 3)
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
	if e := r.Fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/amount" {
		t.Errorf("the price without tiers: %+v", e)
	}
	if c, err := pay(1000); err != nil || c.Status != dibs.Confirmed {
		t.Fatalf("%+v %v", c, err)
	}
	if c := r.Find(res.Claim.ID, dibs.Confirmed); c.Amount.Amount != 1000 {
		t.Errorf("the settled claim costs %d", c.Amount.Amount)
	}
	// Units count within one claim: another claim begins anew.
	for _, key := range []string{"k1", "k2"} {
		if one := r.Claim("shoes", "bob", key, 1); one.Claim.Amount.Amount != 500 {
			t.Errorf("%s costs %d", key, one.Claim.Amount.Amount)
		}
	}
	c, _, err := svc.Orders.Refund(t.Context(), res.Claim.ID, dibs.RefundSpec{Restock: true}, "r")
	if err != nil || c.Status != dibs.Refunded || c.Payment.Refunded != 1000 {
		t.Errorf("%+v %v", c, err)
	}
	_, err = svc.Campaigns.Patch(t.Context(), "shoes", dibs.CampaignPatch{Tiers: []dibs.Tier{}})
	if e := r.Fails(err, dibs.InvalidState); e.Faults[0].Field != "/tiers" {
		t.Errorf("tiers after publishing: %+v", e)
	}
	r.Verify()
}

// Tiers need a price, at the latest when the product's is taken.
func TestTiersNeedAPrice(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	svc := r.Node.Service
	if _, err := svc.Products.Create(t.Context(), dibs.ProductSpec{ID: "p", Name: "p"}); err != nil {
		t.Fatal(err)
	}
	spec := r.Sale("c", 5)
	spec.ProductID, spec.Tiers = new("p"), []dibs.Tier{{FromUnit: 2, Percent: 50}}
	if _, err := svc.Campaigns.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	_, err := svc.Campaigns.Publish(t.Context(), "c")
	if e := r.Fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/tiers" {
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
	if e := r.Fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/price/amount" {
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
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Unpaid("mugs", 5, dibs.Reclaim)
	spec.LowStock = 2
	r.Publish(spec)
	svc := r.Node.Service
	low := func(want bool) api.CampaignView {
		t.Helper()
		if err := r.Settle("mugs"); err != nil {
			t.Fatal(err)
		}
		c, err := svc.Live.Registry.Now(t.Context(), "mugs")
		if err != nil {
			t.Fatal(err)
		}
		v, err := svc.CampaignView(t.Context(), c, true)
		if err != nil || (v.LowSince != nil) != want || r.Stats("mugs").Low != want || v.LowStock != 2 {
			t.Fatalf("low is to be %v: %+v %+v %v", want, v, r.Stats("mugs"), err)
		}
		return v
	}
	low(false)
	r.Sell("mugs", 2)
	low(false)
	third := r.Wants(dibs.Granted, "mugs", "third", "k")
	since := low(true).LowSince
	r.Wants(dibs.Granted, "mugs", "fourth", "k")
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
	r.Verify()
}

// Imported codes are granted, those of a later batch too, and each once.
func TestImportedCodes(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	svc := r.Node.Service
	spec := r.Sale("spring", 0)
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
	r.Sell("spring", 2)
	r.Wants(dibs.SoldOut, "spring", "late", "")
	if done := add("A3\nA4\n", "second"); done.Items != 2 || done.Campaign.Stock.Total != 4 {
		t.Errorf("%+v", done)
	}
	if done := add("A3\nA4\n", "second"); !done.Replayed || done.Campaign.Stock.Total != 4 {
		t.Errorf("again: %+v", done)
	}
	if c := r.Wants(dibs.Granted, "spring", "late", "").Claim; !slices.Equal(c.Items, []string{"A3"}) {
		t.Errorf("the first of the second batch is %v", c.Items)
	}
	_, err := svc.Campaigns.ImportCodes(t.Context(), "spring", strings.NewReader("A9\nA4\n"), "", nil)
	if e := r.Fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/lines/2" {
		t.Errorf("%+v", e)
	}
	// A command that waits in the outbox when the engine is loaded anew counts once.
	r.Reopen()
	svc = r.Node.Service
	r.Wants(dibs.Granted, "spring", "later", "")
	r.Wants(dibs.SoldOut, "spring", "last", "")
	r.Verify()
}

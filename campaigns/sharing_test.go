package campaigns_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// sharing returns a sale of product p that shares a limit, open for an hour.
func sharing(r *testnode.Rig, id string, limit int64) dibs.CampaignSpec {
	spec, product, perUser := r.Sale(id, 1000), "p", int64(100)
	spec.ProductID, spec.Limit, spec.LimitPerProduct = &product, &perUser, &limit
	return spec
}

// newProduct makes product p.
func newProduct(r *testnode.Rig) {
	r.Helper()
	if _, err := r.Node.Products.Create(r.Context(), dibs.ProductSpec{ID: "p", Name: "Phone"}); err != nil {
		r.Fatal(err)
	}
}

// refusedByProduct claims and expects the refusal by the limit per product.
func refusedByProduct(r *testnode.Rig, campaign, user string, quantity int64) {
	r.Helper()
	res := r.Claim(campaign, user, "", quantity)
	if res.Outcome != dibs.LimitReached || !res.OfProduct || !strings.Contains(res.Explain().EN, "product p") || !strings.Contains(res.Explain().ZH, "商品 p") {
		r.Fatalf("%d of %s for %s: %s, %q", quantity, campaign, user, res.Outcome, res.Explain().EN)
	}
}

// Two campaigns of a product share a limit, over restarts and releases, and after one of
// them was ended and has left the engine.
func TestCampaignsShareALimit(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{TidyEvery: time.Millisecond})
	newProduct(r)
	noon := sharing(r, "noon", 2)
	price, pay := dibs.Money{Amount: 500, Currency: "CNY"}, dibs.Duration(testnode.PayWithin)
	noon.Price, noon.PayWithin = &price, &pay
	night := sharing(r, "night", 2)
	night.EndsAt = r.Now().Add(48 * time.Hour)
	r.Publish(noon)
	r.Publish(night)
	first := r.Claim("noon", "ann", "k", 1).Claim
	refusedByProduct(r, "night", "ann", 2)
	r.Wants(dibs.Granted, "night", "ann", "k")
	refusedByProduct(r, "noon", "ann", 1)
	r.Reopen()
	refusedByProduct(r, "noon", "ann", 1)
	refusedByProduct(r, "night", "ann", 1)
	paid := r.Claim("noon", "bob", "k", 2).Claim
	if _, _, err := r.Node.Orders.Cancel(t.Context(), first.ID, "", ""); err != nil {
		t.Fatal(err)
	}
	r.Eventually("a cancelled unit gives its room back", func() bool { return r.Claim("night", "ann", "k2", 1).Outcome == dibs.Granted })
	two := dibs.PaymentSpec{Amount: &dibs.Money{Amount: 1000, Currency: "CNY"}, PaymentRef: "pay"}
	if _, _, err := r.Node.Orders.Confirm(t.Context(), paid.ID, two); err != nil {
		t.Fatal(err)
	}

	if _, err := r.Node.Campaigns.End(t.Context(), "noon"); err != nil {
		t.Fatal(err)
	}
	r.Pass(10 * time.Minute)
	left := func() bool { return !r.Node.Live.Registry.Holds("noon") }
	r.Eventually("noon leaves the engine", left)
	refusedByProduct(r, "night", "bob", 1)
	r.Publish(sharing(r, "later", 2))
	refusedByProduct(r, "later", "bob", 1)
	refusedByProduct(r, "later", "ann", 1)
	// From here on only the ledger knows noon.
	r.Reopen()
	refusedByProduct(r, "night", "bob", 1)
	r.Eventually("noon leaves the engine again", left)
	if _, _, err := r.Node.Orders.Refund(t.Context(), paid.ID, dibs.RefundSpec{Restock: true}, ""); err != nil {
		t.Fatal(err)
	}
	r.Eventually("a refund of a campaign that is over gives its room back", func() bool { return r.Claim("later", "bob", "k", 2).Outcome == dibs.Granted })
	refusedByProduct(r, "night", "bob", 1)
	r.Verify()
}

// Users who claim on two campaigns at the same moment get the limit, exactly.
func TestSharedLimitUnderLoad(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	newProduct(r)
	r.Publish(sharing(r, "noon", 3))
	r.Publish(sharing(r, "night", 3))
	const users, claims = 20, 4
	var granted [users]atomic.Int64
	var all sync.WaitGroup
	for i := range users * claims * 2 {
		all.Go(func() {
			user, campaign := i%users, []string{"noon", "night"}[i/users%2]
			res, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: campaign, UserID: fmt.Sprint("u", user), Key: fmt.Sprint(i)})
			if err != nil {
				t.Error(err)
			} else if res.Outcome == dibs.Granted {
				granted[user].Add(1)
			}
		})
	}
	all.Wait()
	for user := range granted {
		if n := granted[user].Load(); n != 3 {
			t.Errorf("user %d was granted %d, want 3", user, n)
		}
	}
	r.Verify()
}

// Verify counts over the campaigns of a product.
func TestVerifySeesASharedLimitBroken(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	newProduct(r)
	r.Publish(sharing(r, "noon", 2))
	r.Publish(sharing(r, "night", 2))
	r.Wants(dibs.Granted, "noon", "ann", "k")
	r.Wants(dibs.Granted, "night", "ann", "k")
	r.Verify()
	r.Tamper(`UPDATE campaigns SET limit_per_product = 1`)
	broken := 0
	for _, c := range r.Report().Campaigns {
		for _, p := range c.Promises {
			if p.Promise == "the limit holds" && !p.Held && strings.Contains(p.Detail, "ann (product p)") {
				broken++
			}
		}
	}
	if broken != 2 {
		t.Errorf("%d campaigns are found whose shared limit does not hold, want 2", broken)
	}
}

// The faults of a limit per product, and of its changes, each with its field.
func TestBadSharedLimits(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	newProduct(r)
	campaigns := r.Node.Campaigns
	wants := func(what string, err error, reason dibs.Reason, field, says string) {
		t.Helper()
		if e := r.Fails(err, reason); len(e.Faults) != 1 || e.Faults[0].Field != field || !strings.Contains(e.Faults[0].Problem.EN, says) || e.Faults[0].Problem.ZH == "" {
			t.Errorf("%s: %v, want a fault of %s that says %q", what, err, field, says)
		}
	}
	for _, n := range []int64{0, -1, dibs.MaxLimitPerUser + 1} {
		_, err := campaigns.Create(t.Context(), sharing(r, "bad", n))
		wants("out of range", err, dibs.InvalidRequest, "/limit_per_product", "from 1 to")
	}
	alone := sharing(r, "alone", 2)
	alone.ProductID = nil
	_, err := campaigns.Create(t.Context(), alone)
	wants("no product", err, dibs.InvalidRequest, "/limit_per_product", "product_id")
	packet, product, limit := r.Packet("rain", "", 100, 10), "p", int64(2)
	packet.ProductID, packet.LimitPerProduct = &product, &limit
	_, err = campaigns.Create(t.Context(), packet)
	wants("a red packet", err, dibs.InvalidRequest, "/limit_per_product", "red packet")

	r.Publish(sharing(r, "noon", 2))
	if _, err := campaigns.Create(t.Context(), sharing(r, "other", 3)); err != nil {
		t.Fatal(err)
	}
	_, err = campaigns.Publish(t.Context(), "other")
	wants("another limit", err, dibs.InvalidRequest, "/limit_per_product", "must be 2, as campaign noon has")
	for _, c := range []struct {
		what, says string
		patch      dibs.CampaignPatch
	}{
		{"lower", "may only rise", dibs.CampaignPatch{LimitPerProduct: new(int64)}},
		{"away", "cannot change", nulled("limit_per_product")},
	} {
		_, err := campaigns.Patch(t.Context(), "noon", c.patch)
		wants(c.what, err, dibs.InvalidState, "/limit_per_product", c.says)
	}
	r.Publish(r.Sale("plain", 10))
	_, err = campaigns.Patch(t.Context(), "plain", dibs.CampaignPatch{LimitPerProduct: &limit})
	wants("given later", err, dibs.InvalidState, "/limit_per_product", "cannot change")

	r.Claim("noon", "ann", "", 2)
	three := int64(3)
	if c, err := campaigns.Patch(t.Context(), "noon", dibs.CampaignPatch{LimitPerProduct: &three}); err != nil || c.LimitPerProduct != 3 {
		t.Fatalf("a higher limit: %+v, %v", c, err)
	}
	r.Wants(dibs.Granted, "noon", "ann", "k")
	refusedByProduct(r, "noon", "ann", 1)
	if c, err := campaigns.Patch(t.Context(), "other", nulled("limit_per_product")); err != nil || c.LimitPerProduct != 0 {
		t.Errorf("a draft without the limit: %+v, %v", c, err)
	}
}

// nulled is a patch that takes a field away.
func nulled(field string) (p dibs.CampaignPatch) {
	p.Nulls([]string{field})
	return p
}

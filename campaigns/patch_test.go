package campaigns_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/orders"
)

// A product that is off sale takes no order, and no campaign of it opens; campaigns that
// run go on.
func TestOffSale(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	svc := r.Node.Service
	if p, err := svc.Products.Create(t.Context(), dibs.ProductSpec{ID: "mug", Name: "Mug", Stock: 5}); err != nil || p.Status != dibs.OnSale {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, id := range []string{"now", "later"} {
		spec := r.Sale(id, 5)
		spec.ProductID, spec.Price = new("mug"), &dibs.Money{Amount: 5, Currency: "CNY"}
		if _, err := svc.Campaigns.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := svc.Campaigns.Publish(t.Context(), "now"); err != nil {
		t.Fatal(err)
	}
	set := func(status string) error {
		_, err := svc.Products.Patch(t.Context(), "mug", dibs.ProductPatch{Status: &status})
		return err
	}
	if e := r.Fails(set("sold"), dibs.InvalidRequest); e.Faults[0].Field != "/status" {
		t.Errorf("%+v", e)
	}
	if err := set(dibs.OffSale); err != nil {
		t.Fatal(err)
	}
	res, err := svc.Orders.Place(t.Context(), orders.Request{ProductID: "mug", UserID: "u"})
	if err != nil || res.Outcome != dibs.Paused || !strings.Contains(res.Explain().EN, "off sale") {
		t.Errorf("an order: %+v, %v", res, err)
	}
	_, err = svc.Campaigns.Publish(t.Context(), "later")
	if e := r.Fails(err, dibs.InvalidState); !strings.Contains(e.Detail.EN, "mug is off sale") {
		t.Errorf("%+v", e)
	}
	r.Wants(dibs.Granted, "now", "u", "k")
	if err := set(dibs.OnSale); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Campaigns.Publish(t.Context(), "later"); err != nil {
		t.Error(err)
	}
	r.Verify()
}

// A null takes a field away where it is optional, and is refused where it is not.
func TestNullsOfPatches(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	svc := r.Node.Service
	if _, err := svc.Products.Create(t.Context(), dibs.ProductSpec{ID: "mug", Name: "Mug", Comment: "x", Price: &dibs.Money{Amount: 5, Currency: "CNY"}}); err != nil {
		t.Fatal(err)
	}
	of := func(names ...string) (p dibs.ProductPatch) { p.Nulls(names); return p }
	if p, err := svc.Products.Patch(t.Context(), "mug", of("comment", "price")); err != nil || p.Comment != "" || p.Price != nil {
		t.Errorf("%+v, %v", p, err)
	}
	_, err := svc.Products.Patch(t.Context(), "mug", of("name"))
	if e := r.Fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/name" {
		t.Errorf("%+v", e)
	}
	spec := r.Sale("phone", 5)
	spec.ProductID, spec.Comment, spec.LowStock, spec.Gate = new("mug"), "x", 2, &dibs.GateSpec{Limits: []dibs.LimitSpec{{Per: "user", Rate: 5}}}
	spec.Limit = new(int64(3))
	if _, err := svc.Campaigns.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	nulls := func(names ...string) (*dibs.Campaign, error) {
		var p dibs.CampaignPatch
		p.Nulls(names)
		return svc.Campaigns.Patch(t.Context(), "phone", p)
	}
	if c, err := nulls("comment", "product_id", "low_stock", "gate", "limit_per_user"); err != nil || c.Comment != "" || c.ProductID != "" ||
		c.LowStock != 0 || c.Gate != nil || c.LimitPerUser != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, name := range []string{"title", "starts_at", "stock"} {
		_, err := nulls(name)
		if e := r.Fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/"+name {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if _, err := svc.Campaigns.Publish(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	_, err = nulls("price")
	if e := r.Fails(err, dibs.InvalidState); e.Faults[0].Field != "/price" {
		t.Errorf("after publishing: %+v", e)
	}
}

// A patch of a draft's stock that is sent several times at once is counted once.
func TestPatchADraftsStockAtOnce(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	if _, err := r.Node.Campaigns.Create(t.Context(), r.Sale("phone", 5)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := r.Node.Campaigns.Patch(t.Context(), "phone", dibs.CampaignPatch{Stock: &dibs.StockSpec{Units: new(int64(10))}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if c, err := r.Node.Campaigns.Now(t.Context(), "phone"); err != nil || c.Stock.Total != 10 {
		t.Errorf("the stock is %d, %v; want 10", c.Stock.Total, err)
	}
}

// A draft's stock can be patched to another number of its kind.
func TestPatchADraftsStock(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	svc := r.Node.Service
	if _, err := svc.Campaigns.Create(t.Context(), r.Sale("phone", 5)); err != nil {
		t.Fatal(err)
	}
	codes := r.Sale("codes", 0)
	codes.Stock = dibs.StockSpec{Codes: &dibs.CodesSpec{Count: 5, Pattern: "XXXX-XXXX"}}
	if _, err := svc.Campaigns.Create(t.Context(), codes); err != nil {
		t.Fatal(err)
	}
	patch := func(id string, stock dibs.StockSpec) (*dibs.Campaign, error) {
		return svc.Campaigns.Patch(t.Context(), id, dibs.CampaignPatch{Stock: &stock, Comment: new("x")})
	}
	units := func(n int64) dibs.StockSpec { return dibs.StockSpec{Units: &n} }
	for _, n := range []int64{8, 2, 2} {
		if c, err := patch("phone", units(n)); err != nil || c.Stock.Total != n || c.Comment != "x" {
			t.Errorf("%d: %+v, %v", n, c, err)
		}
		if c, err := patch("codes", dibs.StockSpec{Codes: &dibs.CodesSpec{Count: n}}); err != nil || c.Stock.Total != n {
			t.Errorf("%d codes: %+v, %v", n, c, err)
		}
	}
	for _, bad := range []dibs.StockSpec{units(-1), {}, {Items: []string{"a"}}, {Codes: &dibs.CodesSpec{Count: 5}}, {Units: new(int64), Items: []string{"a"}}} {
		if _, err := patch("phone", bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	if _, err := svc.Campaigns.Publish(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	_, err := patch("phone", units(9))
	if e := r.Fails(err, dibs.InvalidState); e.Faults[0].Field != "/stock" {
		t.Errorf("after publishing: %+v", e)
	}
	for i := range 3 {
		want := dibs.Granted
		if i == 2 {
			want = dibs.SoldOut
		}
		r.Wants(want, "phone", string(rune('a'+i)), "k")
	}
	r.Verify()
}

// TestADraftOfAnotherStockIsAnotherVersion: a change of a draft's stock raises its version. Publishing or changing the
// version before is refused.
func TestADraftOfAnotherStockIsAnotherVersion(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	svc := r.Node.Service.Campaigns
	seen, err := svc.Create(t.Context(), r.Sale("phone", 5))
	if err != nil {
		t.Fatal(err)
	}
	stock := func(n int64, version *int64) (*dibs.Campaign, error) {
		return svc.Patch(t.Context(), "phone", dibs.CampaignPatch{Stock: &dibs.StockSpec{Units: &n}, Version: version})
	}
	changed, err := stock(5000, &seen.Version)
	if err != nil || changed.Version <= seen.Version {
		t.Fatalf("%+v, %v", changed, err)
	}
	_, published := svc.PublishVersion(t.Context(), "phone", &seen.Version)
	_, patched := stock(50, &seen.Version)
	for what, err := range map[string]error{"publishing": published, "another stock": patched} {
		if e := r.Fails(err, dibs.InvalidState); len(e.Faults) != 1 || e.Faults[0].Field != "/version" {
			t.Errorf("%s: %+v", what, e)
		}
	}
	if c, err := svc.PublishVersion(t.Context(), "phone", &changed.Version); err != nil || c.Stock.Total != 5000 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestPatchDecidesAboutWhatItChanges: a condition of a patch is asked again when another node has changed the campaign since,
// and the stock of a draft that another node has published is not changed by a patch of the draft.
func TestPatchDecidesAboutWhatItChanges(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	svc := r.Node.Service
	publish := func(id string) {
		r.Tamper("UPDATE campaigns SET state = 'published', version = version + 1 WHERE id = '" + id + "'")
	}
	onlyDrafts := errors.New("only drafts")
	for _, id := range []string{"title", "stock"} {
		if _, err := svc.Campaigns.Create(t.Context(), r.Sale(id, 5)); err != nil {
			t.Fatal(err)
		}
	}
	var asked []dibs.State
	_, err := svc.Campaigns.PatchIf(t.Context(), "title", dibs.CampaignPatch{Title: new("Another")}, func(c *dibs.Campaign) error {
		if asked = append(asked, c.State); len(asked) == 1 {
			publish("title")
		}
		if c.State != dibs.Draft {
			return onlyDrafts
		}
		return nil
	})
	if !errors.Is(err, onlyDrafts) || !slices.Equal(asked, []dibs.State{dibs.Draft, dibs.Published}) {
		t.Errorf("%v, asked about campaigns that are %v", err, asked)
	}
	if c, err := svc.Campaigns.Now(t.Context(), "title"); err != nil || c.Title == "Another" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, units := range []int64{8, 2} {
		_, err = svc.Campaigns.PatchIf(t.Context(), "stock", dibs.CampaignPatch{Stock: &dibs.StockSpec{Units: &units}}, func(*dibs.Campaign) error {
			publish("stock")
			return nil
		})
		if e := r.Fails(err, dibs.InvalidState); !strings.Contains(e.Detail.EN, "published meanwhile") {
			t.Errorf("%d units: %+v", units, e)
		}
		if c, err := svc.Campaigns.Now(t.Context(), "stock"); err != nil || c.Stock.Total != 5 {
			t.Errorf("%d units: %+v, %v", units, c, err)
		}
		r.Tamper("UPDATE campaigns SET state = 'draft' WHERE id = 'stock'")
	}
}

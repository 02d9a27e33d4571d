package node_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/node"
)

// unclaimed are all codes of a campaign that nobody has, by pages of two.
func (r *rig) unclaimed(campaign string) (codes []string) {
	r.Helper()
	for page := (dibs.Page{Limit: 2}); ; {
		l, err := r.node.Service.Campaigns.UnclaimedCodes(r.Context(), campaign, page)
		if err != nil {
			r.Fatal(err)
		}
		for _, c := range l.Items {
			codes = append(codes, c.Code)
		}
		if page.Cursor = l.NextCursor; page.Cursor == "" {
			return codes
		}
	}
}

// TestUnclaimedCodes: what is claimed or withdrawn is not listed, what came back
// is.
func TestUnclaimedCodes(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	spec := r.sale("seats", 0)
	spec.Stock = dibs.StockSpec{Items: []string{"A1", "A2", "A3", "A4", "A5"}}
	r.publish(spec)
	r.publish(r.sale("units", 5))
	first := r.wants(dibs.Granted, "seats", "ann", "k").Claim
	r.wants(dibs.Granted, "seats", "bob", "k")
	if got := r.unclaimed("seats"); !slices.Equal(got, []string{"A3", "A4", "A5"}) {
		t.Errorf("two are claimed, and %v are left", got)
	}
	if _, err := r.node.Service.Campaigns.ChangeStock(t.Context(), "seats", dibs.StockChange{Delta: -1}, "w"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.node.Service.Orders.Refund(t.Context(), first.ID, dibs.RefundSpec{Restock: true}, "r"); err != nil {
		t.Fatal(err)
	}
	if got := r.unclaimed("seats"); len(got) != 3 || !slices.Contains(got, first.Items[0]) {
		t.Errorf("one was withdrawn and %s came back: %v are left", first.Items[0], got)
	}
	_, err := r.node.Service.Campaigns.UnclaimedCodes(t.Context(), "units", dibs.Page{})
	r.fails(err, dibs.InvalidState)
	r.publish(r.packet("rain", "", 100, 5))
	_, err = r.node.Service.Campaigns.UnclaimedCodes(t.Context(), "rain", dibs.Page{})
	r.fails(err, dibs.InvalidState)
}

// TestOneImportManyTimes sends the same import from many sides at once: one of
// them imports, the others are told that it had been done.
func TestOneImportManyTimes(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	spec := r.sale("spring", 0)
	spec.Stock = dibs.StockSpec{Items: []string{}}
	if _, err := r.node.Service.Campaigns.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	var fresh, replayed, codes atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			done, err := r.node.Service.Campaigns.ImportCodes(t.Context(), "spring", strings.NewReader("A1\nA2\nA3\n"), "batch", nil)
			if err != nil {
				t.Error(err)
				return
			}
			codes.Add(done.Items)
			if done.Replayed {
				replayed.Add(1)
			} else {
				fresh.Add(1)
			}
		})
	}
	all.Wait()
	if fresh.Load() != 1 || replayed.Load() != 7 || codes.Load() != 3 {
		t.Errorf("%d imported %d codes, %d were repeats", fresh.Load(), codes.Load(), replayed.Load())
	}
}

// TestStockChangesAreTold: an import and a restock are told when the campaign is
// published, and neither of them before.
func TestStockChangesAreTold(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	spec := r.sale("spring", 0)
	spec.Stock = dibs.StockSpec{Items: []string{"A0"}}
	if _, err := r.node.Service.Campaigns.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	change := func(code string) {
		t.Helper()
		if _, err := r.node.Service.Campaigns.ImportCodes(t.Context(), "spring", strings.NewReader("I"+code+"\n"), "", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := r.node.Service.Campaigns.ChangeStock(t.Context(), "spring", dibs.StockChange{Items: []string{"R" + code}}, ""); err != nil {
			t.Fatal(err)
		}
	}
	told := func() (n int) {
		t.Helper()
		list, _, err := r.node.Service.Events.After(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if strings.HasSuffix(e.Type, "."+string(events.CampaignStockChanged)) {
				n++
			}
		}
		return n
	}
	change("1")
	if n := told(); n != 0 {
		t.Errorf("%d changes of a draft are told", n)
	}
	if _, err := r.node.Service.Campaigns.Publish(t.Context(), "spring"); err != nil {
		t.Fatal(err)
	}
	change("2")
	if n := told(); n != 2 {
		t.Errorf("of an import and a restock %d are told", n)
	}
}

// TestVerifyAProduct verifies the regular orders of one product by its name.
func TestVerifyAProduct(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	for _, id := range []string{"mug", "pen"} {
		if _, err := r.node.Service.Products.Create(t.Context(), dibs.ProductSpec{ID: id, Name: id, Stock: 5}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.node.Service.Orders.Place(t.Context(), dibs.OrderRequest{ProductID: "mug", UserID: "ann", Quantity: 2}); err != nil {
		t.Fatal(err)
	}
	report, err := r.node.Service.Audit.Verify(t.Context(), "product:mug")
	if err != nil || !report.OK || len(report.Campaigns) != 1 || report.Campaigns[0].CampaignID != "product:mug" || report.Campaigns[0].Granted != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	for _, id := range []string{"product:pen", "product:none", "product:"} {
		_, err = r.node.Service.Audit.Verify(t.Context(), id)
		r.fails(err, dibs.NotFound)
	}
	r.tamper(`UPDATE products SET stock_left = 1 WHERE id = 'mug'`)
	if report, err = r.node.Service.Audit.Verify(t.Context(), "product:mug"); err != nil || report.OK {
		t.Errorf("a product's stock was changed by hand: %+v, %v", report, err)
	}
}

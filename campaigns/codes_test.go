package campaigns_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// unclaimed are all codes of a campaign that nobody has, by pages of two.
func unclaimed(r *testnode.Rig, campaign string) (codes []string) {
	r.Helper()
	for page := (dibs.Page{Limit: 2}); ; {
		l, err := r.Node.Campaigns.UnclaimedCodes(r.Context(), campaign, page)
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
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Sale("seats", 0)
	spec.Stock = dibs.StockSpec{Items: []string{"A1", "A2", "A3", "A4", "A5"}}
	r.Publish(spec)
	r.Publish(r.Sale("units", 5))
	first := r.Wants(dibs.Granted, "seats", "ann", "k").Claim
	r.Wants(dibs.Granted, "seats", "bob", "k")
	if got := unclaimed(r, "seats"); !slices.Equal(got, []string{"A3", "A4", "A5"}) {
		t.Errorf("two are claimed, and %v are left", got)
	}
	if _, err := r.Node.Campaigns.ChangeStock(t.Context(), "seats", dibs.StockChange{Delta: -1}, "w"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Node.Orders.Refund(t.Context(), first.ID, dibs.RefundSpec{Restock: true}, "r"); err != nil {
		t.Fatal(err)
	}
	if got := unclaimed(r, "seats"); len(got) != 3 || !slices.Contains(got, first.Items[0]) {
		t.Errorf("one was withdrawn and %s came back: %v are left", first.Items[0], got)
	}
	_, err := r.Node.Campaigns.UnclaimedCodes(t.Context(), "units", dibs.Page{})
	r.Fails(err, dibs.InvalidState)
	r.Publish(r.Packet("rain", "", 100, 5))
	_, err = r.Node.Campaigns.UnclaimedCodes(t.Context(), "rain", dibs.Page{})
	r.Fails(err, dibs.InvalidState)
}

// TestOneImportManyTimes sends the same import from many sides at once: one of
// them imports, the others are told that it had been done.
func TestOneImportManyTimes(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Sale("spring", 0)
	spec.Stock = dibs.StockSpec{Items: []string{}}
	if _, err := r.Node.Campaigns.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	var fresh, replayed, codes atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			done, err := r.Node.Campaigns.ImportCodes(t.Context(), "spring", strings.NewReader("A1\nA2\nA3\n"), "batch", nil)
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
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Sale("spring", 0)
	spec.Stock = dibs.StockSpec{Items: []string{"A0"}}
	if _, err := r.Node.Campaigns.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	change := func(code string) {
		t.Helper()
		if _, err := r.Node.Campaigns.ImportCodes(t.Context(), "spring", strings.NewReader("I"+code+"\n"), "", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Node.Campaigns.ChangeStock(t.Context(), "spring", dibs.StockChange{Items: []string{"R" + code}}, ""); err != nil {
			t.Fatal(err)
		}
	}
	told := func() (n int) {
		t.Helper()
		list, _, err := r.Node.Events.After(t.Context(), 0, 1000)
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
	if _, err := r.Node.Campaigns.Publish(t.Context(), "spring"); err != nil {
		t.Fatal(err)
	}
	change("2")
	if n := told(); n != 2 {
		t.Errorf("of an import and a restock %d are told", n)
	}
}

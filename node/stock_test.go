package node_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/node"
)

func (r *rig) changeStock(campaign string, ch dibs.StockChange, ref string) *dibs.Campaign {
	r.Helper()
	c, err := r.node.Service.Campaigns.ChangeStock(r.Context(), campaign, ch, ref)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// A restock opens a sold-out campaign at once, happens once however often it
// is sent, and outlives a restart.
func TestRestockReopensOnce(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	r.publish(r.sale("phone", 2))
	r.sell("phone", 2)
	r.wants(dibs.SoldOut, "phone", "late", "k")
	for range 3 {
		if c := r.changeStock("phone", dibs.StockChange{Delta: 2, Why: "found two more"}, "restock-1"); c.Stock.Total != 4 {
			t.Fatalf("the stock is %d, want 4", c.Stock.Total)
		}
	}
	r.wants(dibs.Granted, "phone", "late", "k")
	r.reopen()
	r.changeStock("phone", dibs.StockChange{Delta: 2}, "restock-1")
	r.wants(dibs.Granted, "phone", "later", "k")
	r.wants(dibs.SoldOut, "phone", "last", "k")
	if st := r.stats("phone"); st.Stock != 4 || st.Granted != 4 || st.Remaining != 0 {
		t.Fatalf("%+v", st)
	}
	r.verify()
}

func TestWithdrawNeverGoesBelowWhatIsGranted(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	r.publish(r.sale("phone", 10))
	r.sell("phone", 4)
	_, err := r.node.Service.Campaigns.ChangeStock(t.Context(), "phone", dibs.StockChange{Delta: -7}, "")
	r.fails(err, dibs.InvalidState)
	for range 2 {
		if c := r.changeStock("phone", dibs.StockChange{Delta: -6}, "recall"); c.Stock.Total != 4 {
			t.Fatalf("the stock is %d, want 4", c.Stock.Total)
		}
	}
	r.wants(dibs.SoldOut, "phone", "late", "")
	r.reopen()
	r.changeStock("phone", dibs.StockChange{Delta: -6}, "recall")
	if st := r.stats("phone"); st.Stock != 4 || st.Granted != 4 || st.Remaining != 0 {
		t.Fatalf("%+v", st)
	}
	r.verify()
}

func TestADraftsStockCanChange(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	if _, err := r.node.Service.Campaigns.Create(t.Context(), r.sale("phone", 10)); err != nil {
		t.Fatal(err)
	}
	r.changeStock("phone", dibs.StockChange{Delta: 5}, "")
	if c := r.changeStock("phone", dibs.StockChange{Delta: -12}, ""); c.Stock.Total != 3 {
		t.Fatalf("the stock is %d, want 3", c.Stock.Total)
	}
	_, err := r.node.Service.Campaigns.ChangeStock(t.Context(), "phone", dibs.StockChange{Delta: -4}, "")
	r.fails(err, dibs.InvalidState)
	if _, err := r.node.Service.Campaigns.Publish(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	r.sell("phone", 3)
	r.wants(dibs.SoldOut, "phone", "late", "")
	r.verify()
}

// Items and codes: each goes to one claim at most, added ones too.
func TestItemsGoToOneClaimEach(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	seats := r.sale("seats", 0)
	seats.Stock = dibs.StockSpec{Items: []string{"A1", "A2", "A3", "A4"}}
	r.publish(seats)
	codes := r.sale("codes", 0)
	codes.Kind, codes.Stock = dibs.Coupon, dibs.StockSpec{Codes: &dibs.CodesSpec{Count: 3}}
	r.publish(codes)
	var got []string
	claim := func(user string) {
		t.Helper()
		got = append(got, r.wants(dibs.Granted, "seats", user, "k").Claim.Items...)
	}
	claim("u1")
	r.changeStock("seats", dibs.StockChange{Delta: -1}, "")
	claim("u2")
	r.reopen()
	claim("u3")
	r.wants(dibs.SoldOut, "seats", "u4", "k")
	r.changeStock("seats", dibs.StockChange{Items: []string{"B1", "B2"}}, "")
	claim("u4")
	r.reopen()
	claim("u5")
	r.wants(dibs.SoldOut, "seats", "u6", "k")
	if want := []string{"A1", "A2", "A3", "B1", "B2"}; !slices.Equal(got, want) {
		t.Errorf("granted %v, want %v", got, want)
	}
	for i, seat := range got {
		if again := r.wants(dibs.Granted, "seats", fmt.Sprint("u", i+1), "k"); !again.Replayed || !slices.Equal(again.Claim.Items, []string{seat}) {
			t.Errorf("u%d has %v, then %v", i+1, seat, again.Claim.Items)
		}
	}
	r.changeStock("codes", dibs.StockChange{Delta: 2}, "")
	seen := map[string]bool{}
	for i := range 5 {
		items := r.wants(dibs.Granted, "codes", fmt.Sprint("u", i), "").Claim.Items
		if len(items) != 1 || seen[items[0]] {
			t.Errorf("u%d got %v", i, items)
		}
		seen[items[0]] = true
	}
	r.verify()
}

func TestStockChangesThatMakeNoSense(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	r.publish(r.sale("phone", 10))
	seats := r.sale("seats", 0)
	seats.Stock = dibs.StockSpec{Items: []string{"A1"}}
	r.publish(seats)
	for _, c := range []struct {
		campaign string
		ch       dibs.StockChange
		field    string
	}{
		{"phone", dibs.StockChange{}, "/delta"},
		{"phone", dibs.StockChange{Delta: dibs.MaxStock}, "/delta"},
		{"phone", dibs.StockChange{Delta: -1 << 62}, "/delta"},
		{"phone", dibs.StockChange{Items: []string{"A"}}, "/items"},
		{"seats", dibs.StockChange{Delta: 1}, "/items"},
		{"seats", dibs.StockChange{Delta: 2, Items: []string{"B1"}}, "/delta"},
		{"seats", dibs.StockChange{Items: []string{"B1", "B1"}}, "/items/1"},
		{"seats", dibs.StockChange{Items: []string{"A1"}}, "/items/0"},
	} {
		_, err := r.node.Service.Campaigns.ChangeStock(t.Context(), c.campaign, c.ch, "")
		if e := r.fails(err, dibs.InvalidRequest); len(e.Faults) != 1 || e.Faults[0].Field != c.field {
			t.Errorf("%s %+v: %v, want a fault at %s", c.campaign, c.ch, err, c.field)
		}
	}
	if _, err := r.node.Service.Campaigns.End(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	_, err := r.node.Service.Campaigns.ChangeStock(t.Context(), "phone", dibs.StockChange{Delta: 1}, "")
	r.fails(err, dibs.InvalidState)
	_, err = r.node.Service.Campaigns.ChangeStock(t.Context(), "nothing", dibs.StockChange{Delta: 1}, "")
	r.fails(err, dibs.NotFound)
	r.verify()
}

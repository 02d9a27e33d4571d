package moving_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestStockComesBack sells again what was released, restocked, or left by a
// withdrawal, to users of any shard: nothing that was said of the campaign before
// outlives it.
func TestStockComesBack(t *testing.T) {
	f := newFleet(t, 2)
	c := f.publish("sale", 4, 8, 8)
	n := f.nodes[0]
	user := usersOf(c, 0, 1)[0]
	first := f.claim(n, c, user, "all", 8)
	if first.Outcome != dibs.Granted {
		t.Fatalf("all of it at once: %v", first.Outcome)
	}
	other := usersOf(c, 2, 40)
	sold := func(i int) {
		t.Helper()
		for _, n := range f.nodes {
			if r := f.claim(n, c, other[i], "", 1); r.Outcome != dibs.SoldOut {
				t.Fatalf("sold out: %v", r.Outcome)
			}
		}
	}
	sold(0)
	if _, _, err := n.Orders.Refund(t.Context(), first.Claim.ID, dibs.RefundSpec{Restock: true}, "back"); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		f.soon(f.nodes[i%2], c, other[i])
	}
	sold(8)
	// On a busy machine a shard may not be seen in time: the change is sent again, as its answer asks.
	change := func(delta int64, ref string) error {
		for over := time.Now().Add(time.Minute); ; {
			_, err := n.Campaigns.ChangeStock(t.Context(), c.ID, dibs.StockChange{Delta: delta}, ref)
			if !errors.Is(err, dibs.ErrUnavailable) || time.Now().After(over) {
				return err
			}
		}
	}
	if err := change(10, "more"); err != nil {
		t.Fatal(err)
	}
	// Seven of ten leave again, from whichever shards have them.
	for range 2 {
		if err := change(-7, "less"); err != nil {
			t.Fatal(err)
		}
	}
	if err := change(-4, "too-much"); !errors.Is(err, dibs.ErrInvalidState) {
		t.Errorf("a withdrawal of 4 of 3: %v", err)
	}
	for i := range 3 {
		f.soon(f.nodes[i%2], c, other[20+i])
	}
	sold(30)
	f.whole(c, 11, 0)
}

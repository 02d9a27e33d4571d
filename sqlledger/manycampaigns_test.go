package sqlledger_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestRegularOrdersAreAlwaysListed: however many campaigns a product has had
// since, its regular orders are among those that a search goes through.
func TestRegularOrdersAreAlwaysListed(t *testing.T) {
	l := openLedger(t, filepath.Join(t.TempDir(), "ledger.db"))
	defer closeAll(t, l)
	now := time.UnixMilli(1_700_000_000_000)
	if err := l.InsertProduct(t.Context(), &dibs.Product{ID: "p", Name: "p", Stock: 5, StockLeft: 5, Version: 1, CreatedAt: now, UpdatedAt: now}); err != nil {
		t.Fatal(err)
	}
	res, err := l.Order(t.Context(), dibs.Order{ProductID: "p", UserID: "u", Quantity: 1, At: now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range dibs.MaxCampaignsListed + 1 {
		c := &dibs.Campaign{
			ID: "c" + strconv.Itoa(i), Kind: dibs.Sale, ProductID: "p", State: dibs.Draft, LimitPerUser: 1, Shards: 1, Version: 1,
			StartsAt: now, EndsAt: now.Add(time.Hour), Stock: dibs.Stock{Kind: dibs.Units, Total: 1},
		}
		if err := l.InsertCampaign(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	numbers, err := l.CampaignsOf(t.Context(), "p")
	if err != nil || len(numbers) != dibs.MaxCampaignsListed || !slices.Contains(numbers, res.Campaign.Number) {
		t.Errorf("%d campaigns, that of the regular orders among them: %t, %v", len(numbers), slices.Contains(numbers, res.Campaign.Number), err)
	}
	if !slices.IsSortedFunc(numbers, func(a, b uint32) int { return int(b) - int(a) }) {
		t.Error("they are not the newest first")
	}
}

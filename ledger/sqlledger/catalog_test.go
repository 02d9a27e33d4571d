package sqlledger_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/orders"
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
	res, err := l.Order(t.Context(), orders.Order{ProductID: "p", UserID: "u", Quantity: 1, At: now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range orders.MaxCampaignsListed + 1 {
		c := &dibs.Campaign{
			ID: "c" + strconv.Itoa(i), Kind: dibs.Sale, ProductID: "p", State: dibs.Draft, LimitPerUser: 1, Shards: 1, Version: 1,
			StartsAt: now, EndsAt: now.Add(time.Hour), Stock: dibs.Stock{Kind: dibs.Units, Total: 1},
		}
		if err := l.InsertCampaign(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	numbers, err := l.CampaignsOf(t.Context(), "p")
	if err != nil || len(numbers) != orders.MaxCampaignsListed || !slices.Contains(numbers, res.Campaign.Number) {
		t.Errorf("%d campaigns, that of the regular orders among them: %t, %v", len(numbers), slices.Contains(numbers, res.Campaign.Number), err)
	}
	if !slices.IsSortedFunc(numbers, func(a, b uint32) int { return int(b) - int(a) }) {
		t.Error("they are not the newest first")
	}
}

// TestServerTexts: ids that differ in case or by spaces are different, texts
// keep every character, and what cannot be kept is the caller's mistake.
func TestServerTexts(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		ctx := t.Context()
		url, _ := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		title := "手机 📱 ’ \\ % _ \" ; --"
		for _, id := range []string{"abc", "ABC", "Abc"} {
			if err := l.InsertProduct(ctx, &dibs.Product{ID: id, Name: title + id}); err != nil {
				t.Fatal(err)
			}
		}
		p, err := l.Product(ctx, "ABC")
		if err != nil || p.Name != title+"ABC" {
			t.Errorf("found %+v, %v", p, err)
		}
		if _, err := l.Product(ctx, "aBC"); !errors.Is(err, dibs.ErrNotFound) {
			t.Errorf("an id in another case: %v", err)
		}
		values := []string{"a", "A", "a ", " a", "ä", "a\u0308", "ａ", strings.Repeat("码", dibs.MaxItemLen)}
		c := &dibs.Campaign{ID: "c", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Items, Total: int64(len(values))}}
		if err := l.InsertCampaign(ctx, c, values); err != nil {
			t.Fatal(err)
		}
		load, err := l.LoadShard(ctx, c, dibs.ShardID{Campaign: c.Number}, live.Opener{})
		if err != nil || fmt.Sprintf("%q", load.Items) != fmt.Sprintf("%q", values) {
			t.Errorf("items %+v, %v", load, err)
		}
		if _, err := l.Product(ctx, "\xff\xfe"); !errors.Is(err, dibs.ErrNotFound) && !errors.Is(err, dibs.ErrInvalid) {
			t.Errorf("bytes that are no text: %v", err)
		}
		if err := l.InsertProduct(ctx, &dibs.Product{ID: "nul", Name: "a\x00b"}); err != nil && !errors.Is(err, dibs.ErrInvalid) {
			t.Errorf("a NUL: %v", err)
		}
	})
}

package sqlledger_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// damage are wrong sums, of the campaigns that plant makes.
var damage = []string{
	`UPDATE positions SET stock_left = stock_left - 3 WHERE campaign = 2`,
	`UPDATE positions SET confirmed = 7, refunded = 2 WHERE campaign = 2`,
	`UPDATE positions SET stock = 40 WHERE campaign = 2`,
	`UPDATE campaigns SET stock_left = 0 WHERE number = 2`,
	`UPDATE campaigns SET stock_total = 99 WHERE number = 2`,
	`UPDATE positions SET stock_left = 1, pending = 9 WHERE campaign = 1`,
}

// TestRecount damages the sums and counts them afresh: claims and items stay.
func TestRecount(t *testing.T) {
	path, l, items, units := planted(t)
	recount(t, l, items, units, func(statements ...string) { raw(t, path, statements...) })
}

// TestServerRecount is TestRecount on servers.
func TestServerRecount(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, name := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		items, units := plant(t, l)
		recount(t, l, items, units, func(statements ...string) {
			if err := s.Exec(name, statements...); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func recount(t *testing.T, l *sqlledger.Ledger, items, units *dibs.Campaign, exec func(...string)) {
	t.Helper()
	exec(damage...)
	for _, c := range []*dibs.Campaign{items, units} {
		bad, err := l.Audit(t.Context(), c)
		if err != nil || len(bad.BadTotals) == 0 || bad.SumsAgree {
			t.Fatalf("the audit of %s finds %v, the sums agree %t: %v", c.ID, bad.BadTotals, bad.SumsAgree, err)
		}
		changed, err := l.Recount(t.Context(), c)
		if err != nil || !slices.Equal(changed, bad.BadTotals) {
			t.Errorf("recounted %q, want %q: %v", changed, bad.BadTotals, err)
		}
		good, err := l.Audit(t.Context(), c)
		if err != nil || len(good.BadTotals) > 0 || !good.SumsAgree || good.Claims != bad.Claims || good.Held != bad.Held {
			t.Errorf("the audit of %s: %+v, %v", c.ID, good, err)
		}
	}
	// Rows that contradict each other are left as they are.
	exec(`UPDATE claims SET quantity = 50 WHERE campaign = 2 AND seq = 2`, `DELETE FROM items WHERE n = 9`)
	for _, c := range []*dibs.Campaign{items, units} {
		before, err := l.Audit(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if changed, err := l.Recount(t.Context(), c); !errors.Is(err, dibs.ErrInvalidState) {
			t.Errorf("%s recounted to %q, %v", c.ID, changed, err)
		}
		after, err := l.Audit(t.Context(), c)
		if err != nil || !slices.Equal(before.BadTotals, after.BadTotals) {
			t.Errorf("the audit found %q, and finds %q: %v", before.BadTotals, after.BadTotals, err)
		}
	}
}

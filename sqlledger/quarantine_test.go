package sqlledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/sqlledger"
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
	// What contradicts itself is left as it is.
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

// TestWhatPassesIsNoPoison: faults that are not an entry's own never say so,
// and a claim at the place of an entry is a fork.
func TestWhatPassesIsNoPoison(t *testing.T) {
	path, l, _, units := planted(t)
	totals, err := l.Totals(t.Context(), dibs.ShardID{Campaign: units.Number})
	if err != nil {
		t.Fatal(err)
	}
	b := dibs.Batch{Campaign: units, Shard: dibs.ShardID{Campaign: units.Number}, Fence: totals.Epoch, From: totals.Position, To: totals.Position}
	b.To.Seq++
	b.Entries = []dibs.Entry{{Cursor: b.To, Kind: dibs.EntryGrant, UserID: "u", Quantity: 1}}
	settle := func(ctx context.Context) error { return l.Settle(ctx, []dibs.Batch{b}) }

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for what, spoil := range map[string][2]string{
		"nothing":                      {`UPDATE positions SET epoch = epoch`, `UPDATE positions SET epoch = epoch`},
		"the table of claims is lost":  {`ALTER TABLE claims RENAME TO hidden`, `ALTER TABLE hidden RENAME TO claims`},
		"the campaign's row is lost":   {`PRAGMA foreign_keys = 0; UPDATE campaigns SET number = 77 WHERE number = 2`, `UPDATE campaigns SET number = 2 WHERE number = 77`},
		"the position is another's":    {`UPDATE positions SET pos_seq = pos_seq - 1 WHERE campaign = 2`, `UPDATE positions SET pos_seq = pos_seq + 1 WHERE campaign = 2`},
		"the campaign has no position": {`PRAGMA foreign_keys = 0; UPDATE positions SET campaign = 77 WHERE campaign = 2`, `UPDATE positions SET campaign = 2 WHERE campaign = 77`},
	} {
		raw(t, path, spoil[0])
		ctx := t.Context()
		if what == "nothing" {
			ctx = gone
		}
		if err := settle(ctx); err == nil || errors.Is(err, dibs.ErrPoison) || errors.Is(err, dibs.ErrForked) {
			t.Errorf("%s: %v", what, err)
		}
		raw(t, path, spoil[1])
	}
	raw(t, path, `INSERT INTO claims (campaign, shard, epoch, seq, user_id, quantity, status, order_type, amount, currency, request_key, restocked, pay_by, created_at)
		SELECT campaign, shard, epoch, seq + 1, 'other', 1, 0, 2, 0, '', 0, 0, 0, 0 FROM claims WHERE campaign = 2 AND seq = 3`)
	if err := settle(t.Context()); !errors.Is(err, dibs.ErrForked) || errors.Is(err, dibs.ErrPoison) {
		t.Errorf("a claim at the place: %v", err)
	}
	if err := l.Quarantine(t.Context(), b, ""); !errors.Is(err, dibs.ErrForked) {
		t.Errorf("quarantine beside a claim at the place: %v", err)
	}
	raw(t, path, `DELETE FROM claims WHERE user_id = 'other'`)
	if err := settle(t.Context()); err != nil {
		t.Error(err)
	}
	closeAll(t, l)
	if err := settle(t.Context()); !errors.Is(err, dibs.ErrUnavailable) || errors.Is(err, dibs.ErrPoison) {
		t.Errorf("a closed ledger: %v", err)
	}
}

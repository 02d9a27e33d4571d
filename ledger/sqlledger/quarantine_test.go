package sqlledger_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// TestWhatPassesIsNoPoison: faults that are not an entry's own never say so,
// and a claim at the place of an entry is a fork.
func TestWhatPassesIsNoPoison(t *testing.T) {
	path, l, _, units := planted(t)
	totals, err := l.Totals(t.Context(), dibs.ShardID{Campaign: units.Number})
	if err != nil {
		t.Fatal(err)
	}
	b := live.Batch{Campaign: units, Shard: dibs.ShardID{Campaign: units.Number}, Fence: totals.Epoch, From: totals.Position, To: totals.Position}
	b.To.Seq++
	b.Entries = []dibs.Entry{{Cursor: b.To, Kind: dibs.EntryGrant, UserID: "u", Quantity: 1}}
	settle := func(ctx context.Context) error { return l.Settle(ctx, []live.Batch{b}) }

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

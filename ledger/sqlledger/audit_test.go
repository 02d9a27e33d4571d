package sqlledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// forbidden are statements that each break a promise.
var forbidden = map[string]string{
	"stock below zero":            `UPDATE campaigns SET stock_left = stock_left - 9 WHERE id = 'units'`,
	"a shard's stock below zero":  `UPDATE positions SET stock_left = stock_left - 9 WHERE campaign = 2`,
	"more left than there is":     `UPDATE campaigns SET stock_left = 11 WHERE id = 'units'`,
	"a shard with more than all":  `UPDATE positions SET stock_left = 11 WHERE campaign = 2`,
	"a claim's place twice":       `INSERT INTO claims (campaign, shard, epoch, seq, user_id, quantity, status, order_type, amount, currency, request_key, restocked, pay_by, created_at) SELECT campaign, shard, epoch, seq, 'x', 1, 0, 2, 0, '', 0, 0, 0, 0 FROM claims`,
	"an event of no claim":        `INSERT INTO claim_events (campaign, shard, epoch, seq, n, step, status, at, facts) VALUES (1, 0, 1, 99, 1, 'ship', 1, 0, x'')`,
	"a payment of no claim":       `INSERT INTO payments (campaign, shard, epoch, seq, ref, amount, currency, refunded, due, at) VALUES (1, 0, 1, 99, '', 1, '', 0, 0, 0)`,
	"more refunded than paid":     `INSERT INTO payments (campaign, shard, epoch, seq, ref, amount, currency, refunded, due, at) VALUES (1, 0, 1, 2, '', 1, '', 2, 0, 0)`,
	"a claim of nothing":          `UPDATE claims SET quantity = 0`,
	"a status that is none":       `UPDATE claims SET status = 7`,
	"an item of two claims":       `UPDATE items SET claim_seq = 3 WHERE n = 0`,
	"an item of no claim":         `UPDATE items SET claim_epoch = 1, claim_seq = 99 WHERE n = 5`,
	"half a place":                `UPDATE items SET claim_epoch = 1 WHERE n = 5`,
	"an item withdrawn and held":  `UPDATE items SET withdrawn = 1 WHERE n = 0`,
	"a value twice":               `UPDATE items SET value = 'v1' WHERE n = 5`,
	"a number twice":              `INSERT INTO items (campaign, n, value, shard) VALUES (1, 5, 'new', 0)`,
	"a claim gone from its item":  `DELETE FROM claims WHERE campaign = 1 AND seq = 2`,
	"a campaign's id twice":       `UPDATE campaigns SET id = 'items' WHERE id = 'units'`,
	"a position past the epochs":  `UPDATE positions SET pos_epoch = epoch + 1`,
	"an epoch past the last":      `UPDATE positions SET epoch = 4096`,
	"a text where a number is":    `UPDATE claims SET quantity = 'many'`,
	"an adjustment of no shard":   `INSERT INTO adjustments VALUES (1, 9, 'r', 1, '', 0)`,
	"a shard of no campaign":      `INSERT INTO positions VALUES (9, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, '', 0)`,
	"a negative sum of the shard": `UPDATE positions SET confirmed = -1`,
}

// TestConstraints plants rows that break a promise: the database refuses each
// by itself.
func TestConstraints(t *testing.T) {
	path, _, _, _ := planted(t)
	for what, statement := range forbidden {
		if err := tryRaw(t, path, statement); err == nil || !strings.Contains(err.Error(), "constraint") && !strings.Contains(err.Error(), "another claim") && !strings.Contains(err.Error(), "cannot store") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// auditFindings are what the constraints cannot see, with what the audit says
// of it.
var auditFindings = []struct {
	name, plant, finds string
	units              bool
}{
	{
		name: "an item whose claim is gone", plant: `PRAGMA foreign_keys = 0; DELETE FROM claims WHERE campaign = 1 AND seq = 2`,
		finds: "item 0 belongs to the claim 1/0@1.2, which does not exist",
	},
	{
		name: "a claim short of an item", plant: `UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 2`,
		finds: "the claim 1/0@1.3 should have 2 items and has 1",
	},
	{
		name: "a released claim with items", plant: `UPDATE claims SET status = -1 WHERE campaign = 1 AND seq = 3`,
		finds: "the claim 1/0@1.3 should have 0 items and has 2",
	},
	{name: "a lost item", plant: `DELETE FROM items WHERE n = 9`, finds: "shard 0 stock of items is 10, its rows add up to 9"},
	{
		name: "the campaign's stock left", plant: `UPDATE campaigns SET stock_left = 3 WHERE number = 2`, units: true,
		finds: "campaign stock_left is 3, its rows add up to 8",
	},
	{
		name: "the shard's stock left", plant: `UPDATE positions SET stock_left = 3 WHERE campaign = 2`, units: true,
		finds: "shard 0 stock_left is 3, its rows add up to 8",
	},
	{
		name: "the campaign's total", plant: `UPDATE campaigns SET stock_total = 12 WHERE number = 2`, units: true,
		finds: "campaign stock_total is 12, its rows add up to 10",
	},
	{
		name: "the shard's stock", plant: `UPDATE positions SET stock = 12 WHERE campaign = 2`, units: true,
		finds: "shard 0 stock is 12, its rows add up to 10",
	},
	{
		name: "a sum by status", plant: `UPDATE positions SET confirmed = 7 WHERE campaign = 2`, units: true,
		finds: "shard 0 confirmed is 7, its rows add up to 2",
	},
	{
		name: "an adjustment that changed nothing", plant: `INSERT INTO adjustments VALUES (2, 0, 'r', 5, '', 0)`, units: true,
		finds: "campaign stock_total is 10, its rows add up to 15",
	},
	{
		name: "a lost shard", plant: `PRAGMA foreign_keys = 0; DELETE FROM positions WHERE campaign = 2`, units: true,
		finds: "campaign shards is 1, its rows add up to 0",
	},
	{
		name: "a claim past the position", plant: `UPDATE positions SET pos_seq = 2 WHERE campaign = 2`, units: true,
		finds: "1 past the position",
	},
	{
		name: "a user over the limit", plant: `UPDATE claims SET quantity = 6 WHERE campaign = 2 AND seq = 2`, units: true,
		finds: "over the limit: u0",
	},
	{
		name: "a status without an event", plant: `UPDATE claims SET status = 2 WHERE campaign = 2 AND seq = 2`, units: true,
		finds: "the claim 2/0@1.2 has changed without an event",
	},
	{
		name: "a step without an event", plant: `UPDATE claims SET steps = 1 WHERE campaign = 2 AND seq = 2`, units: true,
		finds: "the claim 2/0@1.2 has 0 events and should have 1",
	},
	{
		name: "an event that the row does not show", plant: plantEvent + `UPDATE claims SET steps = 1 WHERE campaign = 2 AND seq = 2`, units: true,
		finds: "the claim 2/0@1.2 is confirmed, its events say refunded",
	},
	{
		name: "a refund without a payment", plant: plantEvent + `UPDATE claims SET steps = 1, status = 2 WHERE campaign = 2 AND seq = 2`, units: true,
		finds: "the claim 2/0@1.2 has a payment in its row or in its events, and not in both",
	},
}

// plantEvent writes a refund that happened nowhere else.
const plantEvent = `INSERT INTO claim_events (campaign, shard, epoch, seq, n, step, status, at, facts) VALUES (2, 0, 1, 2, 1, 'refund', 2, 0, x''); `

// TestAuditFinds plants each finding and checks that the audit names it.
func TestAuditFinds(t *testing.T) {
	for _, c := range auditFindings {
		t.Run(c.name, func(t *testing.T) {
			path, l, items, units := planted(t)
			raw(t, path, c.plant)
			of := items
			if c.units {
				of = units
			}
			a, err := l.Audit(t.Context(), of)
			if err != nil {
				t.Fatal(err)
			}
			said := append(append([]string{}, a.BadItems...), a.BadTotals...)
			said = append(said, a.BadLives...)
			said = append(said, fmt.Sprintf("%d past the position", a.BeyondPosition), "over the limit: "+strings.Join(a.OverLimit, " "))
			if all := strings.Join(said, "\n"); !strings.Contains(all, c.finds) {
				t.Errorf("the audit does not say %q, it says:\n%s", c.finds, all)
			}
		})
	}
}

// TestServerConstraints is TestConstraints on servers.
func TestServerConstraints(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, name := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		items, units := plant(t, l)
		for what, statement := range forbidden {
			if what == "an item of two claims" && strings.HasPrefix(url, "mysql") {
				// Its migration says why there is no trigger for this one.
				continue
			}
			if err := s.Exec(name, statement); err == nil {
				t.Errorf("%s was taken", what)
			}
		}
		for _, c := range []*dibs.Campaign{items, units} {
			a, err := l.Audit(t.Context(), c)
			if err != nil || len(a.BadItems)+len(a.BadTotals)+len(a.OverLimit) > 0 || a.BeyondPosition != 0 {
				t.Errorf("the audit of %s: %+v, %v", c.ID, a, err)
			}
		}
	})
}

// TestServerAuditFinds plants what the constraints cannot see, all at once.
func TestServerAuditFinds(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, name := s.DatabaseFor(t)
		l := openAt(t, url)
		defer closeAll(t, l)
		items, units := plant(t, l)
		unchecked := `SET session_replication_role = replica`
		if strings.HasPrefix(url, "mysql") {
			unchecked = `SET foreign_key_checks = 0`
		}
		if err := s.Exec(name, unchecked,
			`DELETE FROM claims WHERE campaign = 1 AND seq = 2`,
			`UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 2`,
			`DELETE FROM items WHERE n = 9`,
			`UPDATE campaigns SET stock_left = 2 WHERE number = 2`,
			`UPDATE positions SET confirmed = 9, pos_seq = 2 WHERE campaign = 2`,
			`UPDATE claims SET quantity = 6 WHERE campaign = 2 AND seq = 2`); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, c := range []*dibs.Campaign{items, units} {
			a, err := l.Audit(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			said = append(append(said, a.BadItems...), a.BadTotals...)
			said = append(said, fmt.Sprintf("%d past the position", a.BeyondPosition), "over the limit: "+strings.Join(a.OverLimit, " "))
		}
		all := strings.Join(said, "\n")
		for _, want := range []string{
			"item 0 belongs to the claim 1/0@1.2, which does not exist", "the claim 1/0@1.3 should have 2 items and has 1",
			"shard 0 stock of items is 10, its rows add up to 9", "campaign stock_left is 2, its rows add up to 3",
			"shard 0 confirmed is 9, its rows add up to 7", "1 past the position", "over the limit: u0",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("the audit does not say %q, it says:\n%s", want, all)
			}
		}
	})
}

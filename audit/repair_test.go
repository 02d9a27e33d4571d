package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// repair repairs and returns what was done and what was left.
func repair(r *testnode.Rig, campaigns ...string) (report *audit.RepairReport, done, left []string) {
	r.Helper()
	report, err := r.Node.Audit.Repair(r.Context(), audit.RepairRequest{Campaigns: campaigns})
	if err != nil {
		r.Fatal(err)
	}
	if report.OK != report.After.OK {
		r.Errorf("the repair is fine: %t, the report after it: %t", report.OK, report.After.OK)
	}
	for _, s := range report.Steps {
		if s.Done {
			done = append(done, s.What)
		} else {
			left = append(left, s.What)
		}
	}
	return report, done, left
}

// repairs expects that what is broken is put right, by steps of which one says
// something, and that a second repair finds nothing to do.
func repairs(r *testnode.Rig, says string) {
	r.Helper()
	report, done, left := repair(r)
	if report.Before.OK || !report.OK || len(left) > 0 {
		r.Errorf("fine before: %t, fine after: %t, left: %q", report.Before.OK, report.OK, left)
	}
	if !strings.Contains(strings.Join(done, "\n"), says) {
		r.Errorf("no step says %q: %q", says, done)
	}
	r.Verify()
	if report, done, left := repair(r); !report.Before.OK || !report.OK || len(done)+len(left) > 0 {
		r.Errorf("the second repair did %q and left %q", done, left)
	}
}

// leaves expects that what is broken stays as it is, with a word about it.
func leaves(r *testnode.Rig, says string) {
	r.Helper()
	before := claimsNow(r)
	report, done, left := repair(r)
	if report.OK || len(done) > 0 {
		r.Errorf("fine after: %t, done: %q", report.OK, done)
	}
	if !strings.Contains(strings.Join(left, "\n"), says) {
		r.Errorf("no step says %q: %q", says, left)
	}
	if after := claimsNow(r); !slices.Equal(before, after) {
		r.Errorf("the claims were %q and are %q", before, after)
	}
}

// claimsNow are the ledger's claims, in short.
func claimsNow(r *testnode.Rig) (found []string) {
	r.Helper()
	list, err := r.Node.Ledger.ClaimList(r.Context(), dibs.ClaimFilter{}, dibs.Page{Limit: dibs.MaxPage})
	if err != nil {
		r.Fatal(err)
	}
	for _, c := range list.Items {
		found = append(found, fmt.Sprint(c.Position, c.UserID, c.Quantity, c.Status, c.Items))
	}
	return found
}

// broken is a node with a campaign of ten seats of which three are granted and
// settled, whose ledger is then changed by hand.
func broken(t *testing.T, statements ...string) *testnode.Rig {
	t.Helper()
	r := testnode.New(t, node.ServiceConfig{})
	r.Seats("seats", 10)
	r.Sell("seats", 3)
	r.Verify()
	r.Tamper(statements...)
	return r
}

// Sums that somebody changed are counted afresh.
func TestRepairCountsSums(t *testing.T) {
	for name, statements := range map[string][]string{
		"a shard's stock left":      {`UPDATE positions SET stock_left = stock_left - 1`},
		"both stocks left":          {`UPDATE positions SET stock_left = stock_left - 1`, `UPDATE campaigns SET stock_left = stock_left - 1`},
		"a status":                  {`UPDATE positions SET confirmed = confirmed + 3`},
		"the stock":                 {`UPDATE positions SET stock = 40`, `UPDATE campaigns SET stock_total = 2`},
		"as if a claim were missed": {`UPDATE positions SET stock_left = 8, confirmed = 2`, `UPDATE campaigns SET stock_left = 8`},
	} {
		t.Run(name, func(t *testing.T) {
			r := broken(t, statements...)
			before := claimsNow(r)
			repairs(r, "counted afresh: ")
			if after := claimsNow(r); !slices.Equal(before, after) {
				t.Errorf("the claims were %q and are %q", before, after)
			}
			for i := range 7 {
				r.Wants(dibs.Granted, "seats", fmt.Sprint("late-", i), "k")
			}
			r.Wants(dibs.SoldOut, "seats", "too-late", "k")
			r.Verify()
		})
	}
}

// soon is the grant of a claim that is repeated while the campaign is being loaded:
// a command that the engine cannot take, and was under way when it was repaired, has
// it loaded once more.
func soon(r *testnode.Rig, campaign, user, key string) (res dibs.Result) {
	r.Helper()
	r.Eventually(user+" has one", func() bool {
		var err error
		res, err = r.Node.Claims.Claim(r.Context(), dibs.ClaimRequest{CampaignID: campaign, UserID: user, Key: key})
		if err != nil && !errors.Is(err, dibs.ErrUnavailable) {
			r.Fatal(err)
		}
		return err == nil
	})
	if res.Outcome != dibs.Granted {
		r.Fatalf("claim of %s on %s: %s", user, campaign, res.Outcome)
	}
	return res
}

// An engine that differs from a ledger that is whole is loaded anew.
func TestRepairLoadsTheEngineAnew(t *testing.T) {
	for name, statements := range map[string][]string{
		"a claim released by hand": {
			`UPDATE claims SET status = -1, steps = 1 WHERE user_id = 'u0'`,
			`INSERT INTO claim_events (campaign, shard, epoch, seq, n, step, status, at, facts)
				SELECT campaign, shard, epoch, seq, 1, 'cancel', -1, 0, x'' FROM claims WHERE user_id = 'u0'`, `UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 0`,
			`UPDATE positions SET stock_left = stock_left + 1, confirmed = confirmed - 1, released = released + 1`, `UPDATE campaigns SET stock_left = stock_left + 1`,
		},
		"items changed hands": {
			`UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 0`,
			`UPDATE items SET claim_epoch = (SELECT epoch FROM claims WHERE user_id = 'u0'), claim_seq = (SELECT seq FROM claims WHERE user_id = 'u0') WHERE n = 9`,
		},
		"a restock that the engine cannot take": {
			`INSERT INTO adjustments VALUES (1, 0, 'r', 1, '', 0)`, `INSERT INTO items (campaign, n, value, shard) VALUES (1, 10, 'new', 0)`,
			`UPDATE positions SET stock_left = stock_left + 1, stock = stock + 1`, `UPDATE campaigns SET stock_left = stock_left + 1, stock_total = stock_total + 1`,
			`INSERT INTO outbox (campaign, shard, epoch, payload) VALUES (1, 0, 9, CAST('{"campaign":1,"epoch":9,"ref":"r","delta":1,"first_item":10,"items":["new"]}' AS BLOB))`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := broken(t, statements...)
			repairs(r, "loaded anew from the ledger: shard 1/0")
			st := r.Stats("seats")
			sold := map[string]bool{}
			for i := range int(st.Remaining) {
				seat := soon(r, "seats", fmt.Sprint("late-", i), "k").Claim.Items[0]
				if sold[seat] {
					t.Errorf("%s is sold twice", seat)
				}
				sold[seat] = true
			}
			r.Wants(dibs.SoldOut, "seats", "too-late", "k")
			r.Verify()
		})
	}
}

// A restock that the engine cannot take is found, and mended, behind more commands of another
// campaign than are read at a time.
func TestRepairFindsARestockBehindOthers(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("beside", 10))
	r.Publish(r.Sale("phone", 10))
	const stuck = `INSERT INTO outbox (campaign, shard, epoch, payload) VALUES (%[1]d, 0, 9, CAST('{"campaign":%[1]d,"epoch":9,"ref":"r%[2]d","delta":1}' AS BLOB))`
	var statements []string
	for n := range live.OutboxPage {
		statements = append(statements, fmt.Sprintf(stuck, 1, n))
	}
	r.Tamper(append(statements, fmt.Sprintf(stuck, 2, 0), `INSERT INTO adjustments VALUES (2, 0, 'r0', 1, '', 0)`,
		`UPDATE positions SET stock_left = 11, stock = 11 WHERE campaign = 2`, `UPDATE campaigns SET stock_left = 11, stock_total = 11 WHERE number = 2`)...)
	report, err := r.Node.Audit.Verify(t.Context(), "phone")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Campaigns[0].Promises {
		if want := p.Promise != "no undersell"; p.Held != want {
			t.Errorf("%q is said to hold: %t, %s", p.Promise, p.Held, p.Detail)
		}
	}
	if report, done, left := repair(r, "phone"); !report.OK || len(left) > 0 || !slices.Contains(done, "loaded anew from the ledger: shard 2/0") {
		t.Errorf("%+v: done %q, left %q", report.After, done, left)
	}
}

// What claims say is never changed, nor painted over by sums, nor does the
// engine forget what only it knows.
func TestRepairLeavesClaims(t *testing.T) {
	for name, c := range map[string]struct {
		says      string
		statement []string
	}{
		"a lost claim": {"claims were removed or added by hand", []string{
			`DELETE FROM claims WHERE user_id = 'u0'`, `UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 0`,
		}},
		"a lost claim, and sums that hide it": {"of user u0 was granted and is not in the ledger", []string{
			`DELETE FROM claims WHERE user_id = 'u0'`, `UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 0`,
			`UPDATE positions SET stock_left = 8, confirmed = 2`, `UPDATE campaigns SET stock_left = 8`,
		}},
		"a claim of another user": {"was granted to user u0 with 1, and in the ledger it is user thief's", []string{`UPDATE claims SET user_id = 'thief' WHERE user_id = 'u0'`}},
		"an oversell":             {"units are held of 10: restock by", []string{`UPDATE claims SET quantity = 9 WHERE user_id = 'u0'`}},
		"a user over the limit":   {"users hold more than the limit: u0", []string{`UPDATE claims SET user_id = 'u0' WHERE user_id = 'u1'`}},
		"a phantom": {"claims lie past the settled position", []string{`INSERT INTO claims (campaign, shard, epoch, seq, user_id, quantity, status, order_type, amount, currency, request_key, restocked, pay_by, created_at)
			SELECT campaign, shard, epoch, seq + 100, 'ghost', quantity, status, order_type, amount, currency, 0, restocked, pay_by, created_at FROM claims WHERE user_id = 'u0'`}},
		"an item without its claim": {"should have 1 items and has 0: bring the row back", []string{`UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 0`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := broken(t, c.statement...)
			leaves(r, c.says)
			if again := r.Wants(dibs.Granted, "seats", "u0", "k0"); !again.Replayed || again.Claim.Items[0] != "seat-0" {
				t.Errorf("the engine forgot a yes: %+v", again)
			}
		})
	}
}

// An entry whose item was given away by hand stays in quarantine, its item is
// not sold again, and with the item given back it is settled.
func TestRepairSettlesTheQuarantine(t *testing.T) {
	tune, _ := testnode.Slowly()
	r := testnode.New(t, tune)
	r.Seats("seats", 10)
	r.Sell("seats", 3)
	r.Verify()
	r.Tamper(`UPDATE items SET claim_epoch = (SELECT epoch FROM claims WHERE user_id = 'u0'), claim_seq = (SELECT seq FROM claims WHERE user_id = 'u0') WHERE n = 3`)
	poisoned := r.Wants(dibs.Granted, "seats", "u3", "k3").Claim
	if err := r.Settle("seats"); err != nil || r.InQuarantine() != 1 {
		t.Fatalf("%d in quarantine, %v", r.InQuarantine(), err)
	}
	leaves(r, "stays in quarantine")
	r.Tamper(`UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 3`)
	r.Reopen()
	for i := range 6 {
		if late := r.Wants(dibs.Granted, "seats", fmt.Sprint("late-", i), "k").Claim; late.Items[0] == poisoned.Items[0] {
			t.Error("the item in quarantine is sold again")
		}
	}
	r.Wants(dibs.SoldOut, "seats", "too-late", "k")
	repairs(r, "settled from the quarantine: claim "+poisoned.ID)
	if r.InQuarantine() != 0 || r.Node.Health(t.Context()).Dependencies["settling"].Warning != "" {
		t.Errorf("%d are in quarantine", r.InQuarantine())
	}
	c, err := r.Node.Ledger.Claim(t.Context(), poisoned.Position)
	if err != nil || c.UserID != "u3" || c.Items[0] != poisoned.Items[0] {
		t.Errorf("the claim: %+v, %v", c, err)
	}
}

// A ledger that refuses one entry after the other is not an entry's fault: the
// quarantine is bounded, settling halts, claims go on, and a repair of the
// ledger lets everything be settled.
func TestTheQuarantineIsBounded(t *testing.T) {
	tune, log := testnode.Slowly()
	r := testnode.New(t, tune)
	r.Publish(r.Sale("phone", 1000))
	r.Tamper(`UPDATE positions SET stock_left = 2`)
	r.Sell("phone", 150)
	err := r.Settle("phone")
	r.Fails(err, dibs.Unavailable)
	if n := r.InQuarantine(); n != 100 || log.Count("level=ERROR msg=\"a journal entry is in quarantine") != 100 {
		t.Fatalf("%d in quarantine", n)
	}
	if h := r.Node.Health(t.Context()); h.Ready || h.Dependencies["settling"].OK {
		t.Errorf("health: %+v", h)
	}
	r.Wants(dibs.Granted, "phone", "late", "k")
	repairs(r, "counted afresh: ")
	if n := r.InQuarantine(); n != 0 {
		t.Errorf("%d in quarantine", n)
	}
	if st := r.Stats("phone"); st.Granted != 151 || st.Confirmed != 151 || st.Remaining != 849 {
		t.Errorf("%+v", st)
	}
	if h := r.Node.Health(context.Background()); !h.Ready {
		t.Errorf("health: %+v", h)
	}
}

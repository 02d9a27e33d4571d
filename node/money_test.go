package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/node"
)

// moneyFaults are what can be wrong with money, how it is put right, and what
// verify says of it.
var moneyFaults = []struct{ name, plant, undo, says string }{
	{
		"a balance that is not its entries", `UPDATE accounts SET balance = balance + 1 WHERE owner = 'u0'`,
		`UPDATE accounts SET balance = balance - 1 WHERE owner = 'u0'`, "the account user u0 has",
	},
	{
		"money from nowhere", `UPDATE accounts SET balance = balance + 7 WHERE kind = 'outside'`,
		`UPDATE accounts SET balance = balance - 7 WHERE kind = 'outside'`, "all accounts in CNY sum to 7",
	},
	{
		"a transfer whose sides differ", `UPDATE entries SET amount = amount + 1 WHERE what = 'fund' AND side = 1`,
		`UPDATE entries SET amount = amount - 1 WHERE what = 'fund' AND side = 1`, "has 2 entries that sum to 1",
	},
	{
		"a share credited to another user", `UPDATE entries SET owner = 'mallory' WHERE what = 'credit' AND owner = 'u1'`,
		`UPDATE entries SET owner = 'u1' WHERE owner = 'mallory'`, "was not credited with what its share is worth",
	},
	{
		"a share credited with more", `UPDATE entries SET amount = amount + CASE side WHEN 1 THEN 3 ELSE -3 END WHERE what = 'credit'
			AND seq = (SELECT MAX(seq) FROM entries)`,
		`UPDATE entries SET amount = amount - CASE side WHEN 1 THEN 3 ELSE -3 END WHERE what = 'credit' AND seq = (SELECT MAX(seq) FROM entries)`,
		"was not credited with what its share is worth",
	},
	{
		"a credit of no claim", `UPDATE entries SET seq = seq + 1000 WHERE what = 'credit' AND seq = (SELECT MAX(seq) FROM entries)`,
		`UPDATE entries SET seq = seq - 1000 WHERE seq > 1000`, "1 credits are of claims that do not exist",
	},
	{
		"a share worth more than its value", `UPDATE items SET amount = amount + 1 WHERE n = 0`,
		`UPDATE items SET amount = amount - 1 WHERE n = 0`, "share 0 is",
	},
	{
		"a red packet's row", `UPDATE packets SET credited = credited + 1`, `UPDATE packets SET credited = credited - 1`,
		"the red packet's row has",
	},
	{
		"a claim that nobody would credit", `UPDATE packets SET credit_seq = credit_seq + 1000`, `UPDATE packets SET credit_seq = credit_seq - 1000`, "",
	},
}

// TestMoneyAuditFinds plants each fault in the money of a red packet that is
// closed: verify says it, of all red packets of the currency when it is one of
// the accounts, and is content again when it is undone.
func TestMoneyAuditFinds(t *testing.T) {
	r := newRig(t, node.ServiceConfig{CreditEvery: time.Millisecond, SettleEvery: time.Millisecond})
	r.deposit("host", "d", 1_000)
	for _, id := range []string{"rain", "beside"} {
		r.publish(r.packet(id, "host", 500, 10))
		for i := range 6 {
			r.wants(dibs.Granted, id, fmt.Sprint("u", i), "k")
		}
		if _, err := r.node.Service.Campaigns.End(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		r.eventually("the rest is with the sender", func() bool { return r.stats(id).Funds.ReturnedAt != nil })
	}
	r.verify()
	for _, f := range moneyFaults {
		// By itself the database changes no entry.
		r.tamper(`DROP TRIGGER IF EXISTS entries_stay; ` + f.plant)
		said, others := "", 0
		for _, c := range r.report().Campaigns {
			for _, p := range c.Promises {
				switch {
				case p.Held:
				case p.Promise == "money is conserved":
					said += p.Detail + "\n"
				default:
					others++
				}
			}
		}
		if !strings.Contains(said, f.says) || said == "" != (f.says == "") {
			t.Errorf("%s: verify does not say %q, it says %q", f.name, f.says, said)
		}
		r.tamper(f.undo)
		r.verify()
	}
}

// A share in quarantine keeps the remainder from its sender, and is said; once
// it is settled, it is credited, and the rest goes back.
func TestAShareInQuarantine(t *testing.T) {
	var r *rig
	unsettled(t, func() bool {
		tune, _ := slowly()
		tune.CreditEvery = time.Millisecond
		r = newRig(t, tune)
		r.deposit("host", "d", 500)
		r.publish(r.packet("rain", "host", 500, 5))
		r.wants(dibs.Granted, "rain", "ann", "k")
		r.wants(dibs.Granted, "rain", "bob", "k")
		r.poison(1, 1, 0)
		if err := r.settle("rain"); err != nil {
			t.Fatal(err)
		}
		return r.inQuarantine() > 0
	})
	if _, err := r.node.Service.Campaigns.End(t.Context(), "rain"); err != nil {
		t.Fatal(err)
	}
	r.eventually("the rest waits, and says why", func() bool {
		f := r.stats("rain").Funds
		return f.ReturnedAt == nil && strings.Contains(f.Problem, "1 of its journal entries are in quarantine")
	})
	if got := r.balance("bob"); got != 0 {
		t.Errorf("bob has %d before his share is settled", got)
	}
	report := r.report()
	if report.OK {
		t.Error("verify is content with a share in quarantine")
	}
}

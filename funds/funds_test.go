package funds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

func TestMain(m *testing.M) { leaks.Main(m) }

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
		"a claim that nobody would credit", `UPDATE packet_positions SET seq = seq + 1000`, `UPDATE packet_positions SET seq = seq - 1000`, "",
	},
	{
		"a shard that nobody would credit", `INSERT INTO packet_positions (campaign, shard, epoch, seq) SELECT campaign, 1, 0, 0 FROM packets`,
		`DELETE FROM packet_positions WHERE shard = 1`, "2 of its 1 shards have a position",
	},
}

// TestMoneyAuditFinds plants each fault in the money of a red packet that is
// closed: verify says it, of all red packets of the currency when it is one of
// the accounts, and is content again when it is undone.
func TestMoneyAuditFinds(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{CreditEvery: time.Millisecond, SettleEvery: time.Millisecond})
	r.Deposit("host", "d", 1_000)
	for _, id := range []string{"rain", "beside"} {
		r.Publish(r.Packet(id, "host", 500, 10))
		for i := range 6 {
			r.Wants(dibs.Granted, id, fmt.Sprint("u", i), "k")
		}
		if _, err := r.Node.Campaigns.End(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		r.Eventually("the rest is with the sender", func() bool { return r.Stats(id).Funds.ReturnedAt != nil })
	}
	r.Verify()
	for _, f := range moneyFaults {
		// By itself the database changes no entry.
		r.Tamper(`DROP TRIGGER IF EXISTS entries_stay; ` + f.plant)
		said, others := "", 0
		for _, c := range r.Report().Campaigns {
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
		r.Tamper(f.undo)
		r.Verify()
	}
}

// TestAShareInQuarantine: a share in quarantine keeps the remainder from its sender, and
// is said; once it is settled, it is credited, and the rest goes back.
func TestAShareInQuarantine(t *testing.T) {
	tune, _ := testnode.Slowly()
	tune.CreditEvery = time.Millisecond
	r := testnode.New(t, tune)
	settle := func() {
		t.Helper()
		if err := r.Settle("rain"); err != nil {
			t.Fatal(err)
		}
	}
	r.Deposit("host", "d", 500)
	r.Publish(r.Packet("rain", "host", 500, 5))
	r.Wants(dibs.Granted, "rain", "ann", "k")
	settle()
	r.Eventually("ann has her share", func() bool { return r.Balance("ann") > 0 })
	// The share that is given next is given away by hand, to nobody.
	r.Tamper(`UPDATE items SET claim_epoch = 1, claim_seq = 999 WHERE n = 1`)
	r.Wants(dibs.Granted, "rain", "bob", "k")
	settle()
	if n := r.InQuarantine(); n != 1 {
		t.Fatalf("%d entries in quarantine", n)
	}
	if _, err := r.Node.Campaigns.End(t.Context(), "rain"); err != nil {
		t.Fatal(err)
	}
	r.Eventually("the rest waits, and says why", func() bool {
		f := r.Stats("rain").Funds
		return f.ReturnedAt == nil && strings.Contains(f.Problem, "1 of its journal entries are in quarantine")
	})
	if bob, host := r.Balance("bob"), r.Balance("host"); bob != 0 || host != 0 {
		t.Errorf("bob has %d and the sender %d before the share is settled", bob, host)
	}
	if r.Report().OK {
		t.Error("verify is content with a share in quarantine")
	}
	r.Tamper(`UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 1`)
	if _, err := r.Node.Audit.Repair(t.Context(), audit.RepairRequest{}); err != nil || r.InQuarantine() != 0 {
		t.Fatalf("%d entries in quarantine after the repair, %v", r.InQuarantine(), err)
	}
	r.Eventually("the rest is with the sender", func() bool { return r.Stats("rain").Funds.ReturnedAt != nil })
	if ann, bob, host := r.Balance("ann"), r.Balance("bob"), r.Balance("host"); bob == 0 || host == 0 || ann+bob+host != 500 {
		t.Errorf("ann has %d, bob %d, the sender %d of 500", ann, bob, host)
	}
	r.Verify()
}

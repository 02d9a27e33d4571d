package node_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// lost is how many claims the ledger of an olderLedger lacks.
const lost = 5

// olderLedger is a node on a ledger that was restored from a dump, of a campaign of 10 units: the dump has 2 claims and lacks
// 5, and the journal was trimmed to nothing since. before runs when those are settled, before the end.
func olderLedger(t *testing.T, before func(r *testnode.Rig)) *testnode.Rig {
	t.Helper()
	r := testnode.New(t, node.ServiceConfig{JournalKeep: time.Millisecond, TidyEvery: 5 * time.Millisecond, SettleEvery: 5 * time.Millisecond})
	r.Publish(r.Sale("phone", 10))
	r.Sell("phone", 2)
	restore := dumpLedger(r)
	for i := range lost {
		r.Wants(dibs.Granted, "phone", fmt.Sprint("lost-", i), "k")
	}
	shard := dibs.ShardID{Campaign: 1}
	r.Eventually("the journal to be trimmed to nothing", func() bool {
		entries, err := r.Node.Engine.ReadJournal(t.Context(), shard, dibs.Cursor{}, 1000)
		return err == nil && len(entries) == 0
	})
	before(r)
	restore()
	r.Open()
	return r
}

// dumpLedger copies the ledger of a node, which is restarted for that, and returns what closes the node and puts the copy
// back.
func dumpLedger(r *testnode.Rig) (restore func()) {
	r.Helper()
	r.Close()
	file := filepath.Join(r.Dir, node.LedgerFile)
	dump, err := os.ReadFile(file)
	if err != nil {
		r.Fatal(err)
	}
	r.Open()
	return func() {
		r.Close()
		for _, beside := range []string{"-wal", "-shm"} {
			if err := os.Remove(file + beside); err != nil && !errors.Is(err, os.ErrNotExist) {
				r.Fatal(err)
			}
		}
		if err := os.WriteFile(file, dump, 0o600); err != nil {
			r.Fatal(err)
		}
	}
}

// saysOlder expects a node to sell nothing and to say why, and to leave it so without a decision.
func saysOlder(r *testnode.Rig) {
	r.Helper()
	_, err := r.Node.Claims.Claim(r.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "late"})
	r.Fails(err, dibs.Unavailable)
	if h := r.Node.Health(r.Context()); h.Ready || !strings.Contains(h.Dependencies["campaigns"].Error, "older than its journal") {
		r.Errorf("the health is %+v", h)
	}
	if report := r.Report(); report.OK || !strings.Contains(fmt.Sprint(report.Campaigns), "older backup") {
		r.Errorf("verify says %+v", report)
	}
	repaired := repair(r, "")
	if said := fmt.Sprint(repaired.Steps); repaired.OK || !strings.Contains(said, "--older-ledger continue") {
		r.Errorf("the repair without a choice says %s", said)
	}
	_, err = r.Node.Claims.Claim(r.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "late"})
	r.Fails(err, dibs.Unavailable)
}

func repair(r *testnode.Rig, choice audit.OlderLedger) *audit.RepairReport {
	r.Helper()
	repaired, err := r.Node.Audit.Repair(r.Context(), audit.RepairRequest{OlderLedger: choice})
	if err != nil {
		r.Fatal(err)
	}
	return repaired
}

// TestAnOlderLedgerAfterItsJournal starts on a ledger that is older than its journal, which was trimmed to nothing: the node
// starts, sells nothing of that campaign and says why, until an administrator decides. A campaign that was retired and comes back
// is halted the same way.
func TestAnOlderLedgerAfterItsJournal(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(r *testnode.Rig)
		granted       int64
	}{
		"while it sells":       {func(*testnode.Rig) {}, func(*testnode.Rig) {}, 2},
		"retired and recalled": {retireAndRecall, recall, 3},
	} {
		t.Run(name+", continued", func(t *testing.T) {
			r := olderLedger(t, c.before)
			c.after(r)
			saysOlder(r)
			if repaired := repair(r, audit.OlderLedgerContinue); !repaired.OK {
				t.Fatalf("%+v", repaired)
			}
			// Grants made after the campaign came back are in the journal, and are settled.
			if st := r.Stats("phone"); st.Granted != c.granted || st.Remaining != 10-c.granted {
				t.Errorf("%+v", st)
			}
			r.Wants(dibs.Granted, "phone", "lost-0", "k")
			r.Verify()
			r.Reopen()
			r.Wants(dibs.Granted, "phone", "again", "k")
			r.Verify()
		})
		t.Run(name+", ended", func(t *testing.T) {
			r := olderLedger(t, c.before)
			c.after(r)
			saysOlder(r)
			if repaired := repair(r, audit.OlderLedgerEnd); !repaired.OK {
				t.Fatalf("%+v", repaired)
			}
			// The node looks a campaign up once a second that it does not hold.
			r.Eventually("the campaign to be over", func() bool {
				res, err := r.Node.Claims.Claim(r.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "late"})
				return err == nil && res.Outcome == dibs.Ended
			})
			r.Verify()
			r.Reopen()
			r.Wants(dibs.Ended, "phone", "late", "k")
		})
	}
}

// retireAndRecall lets the campaign be over for so long that it leaves the engine, and extends it.
func retireAndRecall(r *testnode.Rig) {
	r.Pass(2 * time.Hour)
	r.Eventually("the campaign to leave the engine", func() bool { return r.Node.Observe().Campaigns == nil })
	recall(r)
	r.Wants(dibs.Granted, "phone", "back", "k")
}

// recall brings a campaign back that is over, by extending it.
func recall(r *testnode.Rig) {
	r.Helper()
	later := r.Now().Add(time.Hour)
	if _, err := r.Node.Campaigns.Patch(r.Context(), "phone", dibs.CampaignPatch{EndsAt: &later}); err != nil {
		r.Logf("the campaign is extended, and not taken up: %v", err)
	}
}

// TestAnOlderLedgerWithoutACampaign: a node does not start on a ledger that does not know a campaign of the journal, since it
// would give the campaign's number to another one.
func TestAnOlderLedgerWithoutACampaign(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 10))
	restore := dumpLedger(r)
	r.Publish(r.Sale("forgotten", 10))
	r.Wants(dibs.Granted, "forgotten", "u", "k")
	restore()
	n, err := node.Open(t.Context(), node.Config{Dir: r.Dir})
	if err == nil || !strings.Contains(err.Error(), "the ledger is older than the journal") {
		t.Errorf("a node starts as %v: %v", n, err)
	}
}

// TestAnOlderLedgerWithoutARestock: of units that the ledger does not know the last grants are set aside, which the node and
// verify say; the restock made again, a repair settles them.
func TestAnOlderLedgerWithoutARestock(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SettleEvery: 5 * time.Millisecond})
	r.Publish(r.Sale("phone", 3))
	restore := dumpLedger(r)
	r.ChangeStock("phone", dibs.StockChange{Delta: 2}, "more")
	for i := range 4 {
		r.Wants(dibs.Granted, "phone", fmt.Sprint("u", i), "k")
	}
	restore()
	r.Open()
	r.Eventually("the last grant to be set aside", func() bool { return r.InQuarantine() == 1 })
	if h := r.Node.Health(t.Context()); h.Dependencies["settling"].Warning == "" || r.Report().OK {
		t.Errorf("the node and verify find nothing: %+v", h)
	}
	r.ChangeStock("phone", dibs.StockChange{Delta: 2}, "more")
	if repaired := repair(r, ""); !repaired.OK || r.InQuarantine() != 0 {
		t.Errorf("%+v", repaired)
	}
	r.Verify()
}

// TestAnOlderLedgerWithoutItsCodes: codes were added, and claimed, and a backup from before is restored. The claims are set
// aside until the same codes are added again, and then users have what they were told.
func TestAnOlderLedgerWithoutItsCodes(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SettleEvery: 5 * time.Millisecond})
	r.Seats("seats", 1)
	r.Wants(dibs.Granted, "seats", "u0", "k")
	restore := dumpLedger(r)
	add := func() {
		t.Helper()
		if _, err := r.Node.Campaigns.ImportCodes(t.Context(), "seats", strings.NewReader("C1\nC2\nC3\n"), "more", nil); err != nil {
			t.Fatal(err)
		}
	}
	add()
	told := map[string][]string{}
	for _, user := range []string{"u1", "u2"} {
		told[user] = r.Wants(dibs.Granted, "seats", user, "k").Claim.Items
	}
	restore()
	r.Open()
	r.Eventually("the claims to be set aside", func() bool { return r.InQuarantine() == 2 })
	add()
	if repaired := repair(r, ""); !repaired.OK || r.InQuarantine() != 0 {
		t.Errorf("%+v", repaired)
	}
	for user, items := range told {
		if again := r.Wants(dibs.Granted, "seats", user, "k"); !again.Replayed || !slices.Equal(again.Claim.Items, items) {
			t.Errorf("%s was told %v, and has %v", user, items, again.Claim.Items)
		}
	}
	r.Verify()
}

package node_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// crash takes the node's folder as a crash would leave it, files copied while
// nothing is written, and goes on with the copy.
func crash(r *testnode.Rig) {
	r.Helper()
	image := r.TempDir()
	copyFolder(r.T, r.Dir, image)
	r.Close()
	r.Dir = image
	r.Open()
}

// Grants that were not settled are settled after a crash, of live campaigns
// and of those that ended meanwhile.
func TestACrashLosesNoYes(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
	long := r.Sale("long", 100)
	long.EndsAt = r.Now().Add(48 * time.Hour)
	r.Publish(long)
	r.Publish(r.Sale("short", 100))
	ids := map[string]string{}
	for i := range 20 {
		for _, c := range []string{"long", "short"} {
			user := fmt.Sprint(c, "-", i)
			ids[user] = r.Wants(dibs.Granted, c, user, "k").Claim.ID
		}
	}
	if st := r.Stats("short"); st.JournalBacklog == 0 {
		t.Fatal("all is settled: the test proves nothing")
	}
	r.Pass(24 * time.Hour)
	crash(r)
	for user, id := range ids {
		c, err := r.Node.Claims.Find(t.Context(), id)
		if err != nil || c.UserID != user {
			t.Fatalf("claim %s of %s: %+v, %v", id, user, c, err)
		}
	}
	r.Wants(dibs.Ended, "short", "late", "k")
	if again := r.Wants(dibs.Granted, "short", "short-3", "k"); !again.Replayed || again.Claim.ID != ids["short-3"] {
		t.Fatalf("%+v", again)
	}
	if again := r.Wants(dibs.Granted, "long", "long-3", "k"); !again.Replayed || again.Claim.ID != ids["long-3"] {
		t.Fatalf("%+v", again)
	}
	r.Wants(dibs.Granted, "long", "late", "k")
	for _, c := range []string{"long", "short"} {
		list, err := r.Node.Claims.OfCampaign(t.Context(), c, dibs.ClaimFilter{}, dibs.Page{Limit: dibs.MaxPage})
		if err != nil || len(list.Items) < 20 {
			t.Fatalf("%s has %d claims in the ledger, %v", c, len(list.Items), err)
		}
	}
	r.Verify()
}

// A second process on the folder is told who has it.
func TestAFolderHasOneOwner(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	_, err := node.Open(t.Context(), node.Config{Dir: r.Dir})
	if !errors.Is(err, dibs.ErrOwned) {
		t.Fatalf("a second node: %v", err)
	}
	if err := node.Owned(t.Context(), node.Config{Dir: r.Dir}); !errors.Is(err, dibs.ErrOwned) {
		t.Fatalf("a folder that is in use: %v", err)
	}
	if err := node.Owned(t.Context(), node.Config{Dir: t.TempDir()}); err != nil {
		t.Fatalf("an empty folder: %v", err)
	}
	r.Publish(r.Sale("phone", 1))
	r.Wants(dibs.Granted, "phone", "42", "")
}

// The next start settles what Close had no time for.
func TestCloseInAHurry(t *testing.T) {
	var r *testnode.Rig
	testnode.Unsettled(t, func() bool {
		r = testnode.New(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
		r.Publish(r.Sale("phone", 100))
		r.Sell("phone", 50)
		return r.Abandon()
	})
	r.Open()
	if st := r.Stats("phone"); st.Granted != 50 || st.Remaining != 50 {
		t.Fatalf("%+v", st)
	}
	r.Verify()
}

// A ledger restored from an older backup is brought up to date from the
// journal, whose epochs it has not seen.
func TestAnOlderLedgerIsSettledAgain(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 100))
	r.Sell("phone", 10)
	r.Close()
	ledger := filepath.Join(r.Dir, node.LedgerFile)
	backup, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r.Open()
		r.Wants(dibs.Granted, "phone", fmt.Sprint("late-", i), "k")
		r.Close()
	}
	if err := os.WriteFile(ledger, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Open()
	if st := r.Stats("phone"); st.Granted != 13 || st.Remaining != 87 {
		t.Fatalf("%+v", st)
	}
	for i := range 3 {
		if again := r.Wants(dibs.Granted, "phone", fmt.Sprint("late-", i), "k"); !again.Replayed {
			t.Fatalf("%+v", again)
		}
	}
	r.Wants(dibs.Granted, "phone", "new", "k")
	r.Verify()
}

// A campaign that is over leaves the engine; its repeats, reads and numbers
// are the ledger's from then on, and an extended one comes back.
func TestWhatIsOverLeavesTheEngine(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{TidyEvery: time.Millisecond})
	r.Publish(r.Sale("phone", 5))
	r.Sell("phone", 3)
	id := r.Wants(dibs.Granted, "phone", "u1", "k1").Claim.ID
	r.Pass(2 * time.Hour)
	for deadline := time.Now().Add(20 * time.Second); r.Node.Observe().Campaigns != nil; {
		if time.Now().After(deadline) {
			t.Fatal("it stays in the engine")
		}
	}
	r.Wants(dibs.Ended, "phone", "new", "k")
	if again := r.Wants(dibs.Granted, "phone", "u1", "k1"); !again.Replayed || again.Claim.ID != id {
		t.Fatalf("%+v", again)
	}
	if st := r.Stats("phone"); st.Granted != 3 || st.Remaining != 2 || st.Confirmed != 3 {
		t.Fatalf("%+v", st)
	}
	later := r.Now().Add(time.Hour)
	if _, err := r.Node.Campaigns.Patch(t.Context(), "phone", dibs.CampaignPatch{EndsAt: &later}); err != nil {
		t.Fatal(err)
	}
	r.Wants(dibs.Granted, "phone", "new", "k")
	r.Wants(dibs.LimitReached, "phone", "u2", "other")
	r.Verify()
}

// One campaign's damaged journal stops that campaign and no other.
func TestDamageStopsOneCampaign(t *testing.T) {
	var r *testnode.Rig
	testnode.Unsettled(t, func() bool {
		r = testnode.New(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
		r.Publish(r.Sale("whole", 10))
		r.Publish(r.Sale("damaged", 10))
		r.Wants(dibs.Granted, "whole", "u1", "k")
		r.Wants(dibs.Granted, "damaged", "u1", "k")
		return r.Abandon()
	})
	r.TamperFile(node.JournalFile, `UPDATE journal SET payload = zeroblob(40) WHERE campaign = 2 AND last_seq > 1`)
	r.Open()
	if again := r.Wants(dibs.Granted, "whole", "u1", "k"); !again.Replayed {
		t.Fatalf("%+v", again)
	}
	r.Wants(dibs.Granted, "whole", "u2", "k")
	_, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "damaged", UserID: "u2"})
	r.Fails(err, dibs.Unavailable)
	if h := r.Node.Health(t.Context()); h.Ready || h.Dependencies["campaigns"].OK {
		t.Fatalf("health: %+v", h)
	}
}

// The journal of a campaign that has left the engine is trimmed too.
func TestTheJournalOfWhatIsOverIsTrimmed(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{TidyEvery: time.Millisecond})
	r.Publish(r.Sale("phone", 10))
	r.Sell("phone", 10)
	r.Pass(48 * time.Hour)
	r.Reopen()
	for deadline := time.Now().Add(20 * time.Second); ; {
		shards, err := r.Node.Engine.JournalShards(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the journal still has %v, %v", shards, err)
		}
		if len(shards) == 0 {
			return
		}
	}
}

func TestMain(m *testing.M) { leaks.Main(m) }

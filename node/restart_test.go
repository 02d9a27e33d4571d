package node_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// crash takes the node's folder as a crash would leave it, files copied while
// nothing is written, and goes on with the copy.
func (r *rig) crash() {
	r.Helper()
	image := r.TempDir()
	files, err := filepath.Glob(filepath.Join(r.dir, "*"))
	if err != nil {
		r.Fatal(err)
	}
	for _, name := range files {
		bytes, err := os.ReadFile(name)
		if err != nil {
			r.Fatal(err)
		}
		if filepath.Ext(name) == ".db-shm" {
			continue
		}
		if err := os.WriteFile(filepath.Join(image, filepath.Base(name)), bytes, 0o600); err != nil {
			r.Fatal(err)
		}
	}
	r.close()
	r.dir = image
	r.open()
}

// What was granted and not settled is settled after a crash, of live campaigns
// and of those that ended meanwhile.
func TestACrashLosesNoYes(t *testing.T) {
	r := newRig(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
	long := r.sale("long", 100)
	long.EndsAt = r.now().Add(48 * time.Hour)
	r.publish(long)
	r.publish(r.sale("short", 100))
	ids := map[string]string{}
	for i := range 20 {
		for _, c := range []string{"long", "short"} {
			user := fmt.Sprint(c, "-", i)
			ids[user] = r.wants(dibs.Granted, c, user, "k").Claim.ID
		}
	}
	if st := r.stats("short"); st.JournalBacklog == 0 {
		t.Fatal("all is settled: the test proves nothing")
	}
	r.pass(24 * time.Hour)
	r.crash()
	for user, id := range ids {
		c, err := r.node.Service.Claims.Find(t.Context(), id)
		if err != nil || c.UserID != user {
			t.Fatalf("claim %s of %s: %+v, %v", id, user, c, err)
		}
	}
	r.wants(dibs.Ended, "short", "late", "k")
	if again := r.wants(dibs.Granted, "short", "short-3", "k"); !again.Replayed || again.Claim.ID != ids["short-3"] {
		t.Fatalf("%+v", again)
	}
	if again := r.wants(dibs.Granted, "long", "long-3", "k"); !again.Replayed || again.Claim.ID != ids["long-3"] {
		t.Fatalf("%+v", again)
	}
	r.wants(dibs.Granted, "long", "late", "k")
	for _, c := range []string{"long", "short"} {
		list, err := r.node.Service.Claims.OfCampaign(t.Context(), c, dibs.ClaimFilter{}, dibs.Page{Limit: dibs.MaxPage})
		if err != nil || len(list.Items) < 20 {
			t.Fatalf("%s has %d claims in the ledger, %v", c, len(list.Items), err)
		}
	}
	r.verify()
}

// A second process on the folder is told who has it.
func TestAFolderHasOneOwner(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	_, err := node.Open(t.Context(), node.Config{Dir: r.dir})
	if !errors.Is(err, dibs.ErrOwned) {
		t.Fatalf("a second node: %v", err)
	}
	if err := node.Owned(t.Context(), node.Config{Dir: r.dir}); !errors.Is(err, dibs.ErrOwned) {
		t.Fatalf("a folder that is in use: %v", err)
	}
	if err := node.Owned(t.Context(), node.Config{Dir: t.TempDir()}); err != nil {
		t.Fatalf("an empty folder: %v", err)
	}
	r.publish(r.sale("phone", 1))
	r.wants(dibs.Granted, "phone", "42", "")
}

// What Close had no time to settle, the next start settles.
func TestCloseInAHurry(t *testing.T) {
	var r *rig
	unsettled(t, func() bool {
		r = newRig(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
		r.publish(r.sale("phone", 100))
		r.sell("phone", 50)
		return r.abandon()
	})
	r.open()
	if st := r.stats("phone"); st.Granted != 50 || st.Remaining != 50 {
		t.Fatalf("%+v", st)
	}
	r.verify()
}

// A ledger restored from an older backup is brought up to date from the
// journal, whose epochs it has not seen.
func TestAnOlderLedgerIsSettledAgain(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	r.publish(r.sale("phone", 100))
	r.sell("phone", 10)
	r.close()
	ledger := filepath.Join(r.dir, node.LedgerFile)
	backup, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r.open()
		r.wants(dibs.Granted, "phone", fmt.Sprint("late-", i), "k")
		r.close()
	}
	if err := os.WriteFile(ledger, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	r.open()
	if st := r.stats("phone"); st.Granted != 13 || st.Remaining != 87 {
		t.Fatalf("%+v", st)
	}
	for i := range 3 {
		if again := r.wants(dibs.Granted, "phone", fmt.Sprint("late-", i), "k"); !again.Replayed {
			t.Fatalf("%+v", again)
		}
	}
	r.wants(dibs.Granted, "phone", "new", "k")
	r.verify()
}

// A campaign that is over leaves the engine; its repeats, reads and numbers
// are the ledger's from then on, and an extended one comes back.
func TestWhatIsOverLeavesTheEngine(t *testing.T) {
	r := newRig(t, node.ServiceConfig{TidyEvery: time.Millisecond})
	r.publish(r.sale("phone", 5))
	r.sell("phone", 3)
	id := r.wants(dibs.Granted, "phone", "u1", "k1").Claim.ID
	r.pass(2 * time.Hour)
	for deadline := time.Now().Add(20 * time.Second); r.node.Service.Observe().Campaigns != nil; {
		if time.Now().After(deadline) {
			t.Fatal("it stays in the engine")
		}
	}
	r.wants(dibs.Ended, "phone", "new", "k")
	if again := r.wants(dibs.Granted, "phone", "u1", "k1"); !again.Replayed || again.Claim.ID != id {
		t.Fatalf("%+v", again)
	}
	if st := r.stats("phone"); st.Granted != 3 || st.Remaining != 2 || st.Confirmed != 3 {
		t.Fatalf("%+v", st)
	}
	later := r.now().Add(time.Hour)
	if _, err := r.node.Service.Campaigns.Patch(t.Context(), "phone", dibs.CampaignPatch{EndsAt: &later}); err != nil {
		t.Fatal(err)
	}
	r.wants(dibs.Granted, "phone", "new", "k")
	r.wants(dibs.LimitReached, "phone", "u2", "other")
	r.verify()
}

// One campaign's damaged journal stops that campaign and no other.
func TestDamageStopsOneCampaign(t *testing.T) {
	var r *rig
	unsettled(t, func() bool {
		r = newRig(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
		r.publish(r.sale("whole", 10))
		r.publish(r.sale("damaged", 10))
		r.wants(dibs.Granted, "whole", "u1", "k")
		r.wants(dibs.Granted, "damaged", "u1", "k")
		return r.abandon()
	})
	r.tamperFile(node.JournalFile, `UPDATE journal SET payload = zeroblob(40) WHERE campaign = 2 AND last_seq > 1`)
	r.open()
	if again := r.wants(dibs.Granted, "whole", "u1", "k"); !again.Replayed {
		t.Fatalf("%+v", again)
	}
	r.wants(dibs.Granted, "whole", "u2", "k")
	_, err := r.node.Service.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "damaged", UserID: "u2"})
	r.fails(err, dibs.Unavailable)
	if h := r.node.Service.Health(t.Context()); h.Ready || h.Dependencies["campaigns"].OK {
		t.Fatalf("health: %+v", h)
	}
}

// The journal of a campaign that has left the engine is trimmed too.
func TestTheJournalOfWhatIsOverIsTrimmed(t *testing.T) {
	r := newRig(t, node.ServiceConfig{TidyEvery: time.Millisecond})
	r.publish(r.sale("phone", 10))
	r.sell("phone", 10)
	r.pass(48 * time.Hour)
	r.reopen()
	for deadline := time.Now().Add(20 * time.Second); ; {
		shards, err := r.node.Engine.JournalShards(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the journal still has %v, %v", shards, err)
		}
		if len(shards) == 0 {
			return
		}
	}
}

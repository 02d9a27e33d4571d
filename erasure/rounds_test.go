package erasure_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// A user is erased while a campaign goes on: the engine needs the user's id until
// its journal is gone, and the erasure waits for that, over a restart, and ends by
// itself. All promises hold on every unit, before and after.
func TestEraseUserOfALiveCampaign(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{
		TidyEvery: 20 * time.Millisecond, EraseEvery: 20 * time.Millisecond, EraseRest: time.Millisecond, SettleEvery: time.Millisecond,
	})
	r.Publish(r.Sale("phone", 3))
	r.Publish(r.Sale("other", 3))
	claim := r.Wants(dibs.Granted, "phone", "ann", "k1").Claim.ID
	r.Wants(dibs.Granted, "phone", "bob", "k2")
	r.Wants(dibs.Granted, "other", "bob", "k3")
	// Two rounds are a millisecond apart here: they would not wait for the claim.
	r.Eventually("the ledger has the claim", func() bool { return r.Stats("phone").JournalBacklog == 0 })
	e, _, err := r.Node.Erasures.Erase(r.Context(), "ann", erasure.ErasureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	state := func() erasure.ErasureView {
		v, err := r.Node.Erasures.Get(r.Context(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	waits := func() bool {
		v := state()
		return v.State == erasure.ErasureWaiting && fmt.Sprint(v.WaitsFor) == "[campaign phone]"
	}
	r.Eventually("it waits for the campaign", waits)
	onlyLooks(r, e.ID)
	// Meanwhile the limit holds, and the repeat of a yes is found.
	r.Wants(dibs.LimitReached, "phone", "ann", "k9")
	if res := r.Wants(dibs.Granted, "phone", "ann", "k1"); !res.Replayed || res.Claim.ID != claim {
		t.Errorf("the repeat: %+v", res)
	}
	r.Verify()
	r.Reopen()
	r.Eventually("it waits still", waits)
	r.Wants(dibs.LimitReached, "phone", "ann", "k9")
	// Over, but the journal has the user still.
	r.Pass(time.Hour + 2*time.Minute)
	r.Eventually("it waits for the journal", waits)
	if c := r.Find(claim, dibs.Confirmed); c.UserID != "ann" {
		t.Errorf("the claim is %s's already", c.UserID)
	}
	r.Pass(3 * time.Hour)
	r.Eventually("it is done", func() bool { return state().State == erasure.ErasureDone })
	if c := r.Find(claim, dibs.Confirmed); !strings.HasPrefix(c.UserID, erasure.PseudonymPrefix) {
		t.Errorf("the claim is %s's", c.UserID)
	}
	record, err := r.Node.Erasures.Record(r.Context(), "ann")
	if err != nil || len(record.Campaigns) > 0 || record.Erasure != nil {
		t.Errorf("what there is: %+v %v", record, err)
	}
	if bob, err := r.Node.Erasures.Record(r.Context(), "bob"); err != nil || len(bob.Campaigns) != 2 {
		t.Errorf("bob: %+v %v", bob, err)
	}
	if s := r.Stats("phone"); s.Granted != 2 || s.Remaining != 1 {
		t.Errorf("%+v", s)
	}
	r.Verify()
}

// onlyLooks expects that an erasure which waits comes to look at nothing but what it
// waits for: a round reads all lists and the audit log.
func onlyLooks(r *testnode.Rig, id string) {
	r.Helper()
	stored := func() *erasure.Erasure {
		e, err := r.Node.Ledger.ErasureByID(r.Context(), id)
		if err != nil {
			r.Fatal(err)
		}
		return e
	}
	r.Eventually("it only looks", func() bool { return stored().Step == erasure.EraseCheck })
	looked := stored().Version
	r.Eventually("it looks again and again", func() bool {
		now := stored()
		if now.Step != erasure.EraseCheck && now.Step != erasure.EraseEnd {
			r.Fatalf("while it waits for the same, it is at %s again", now.Step)
		}
		return now.Version >= looked+4
	})
}

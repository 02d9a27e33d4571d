package node_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/node"
)

// 2,000 users at 5,000 concurrent requests on 200 units.
func TestManyUsersGetExactlyTheStock(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	r.publish(r.sale("phone", 200))
	var granted atomic.Int64
	var perUser [2000]atomic.Int64
	var wg sync.WaitGroup
	for i := range 5000 {
		wg.Go(func() {
			user := i % len(perUser)
			if r.claim("phone", fmt.Sprint("u", user), "", 1).Outcome == dibs.Granted {
				granted.Add(1)
				perUser[user].Add(1)
			}
		})
	}
	wg.Wait()
	if granted.Load() != 200 {
		t.Errorf("%d claims were granted, want 200", granted.Load())
	}
	for u := range perUser {
		if n := perUser[u].Load(); n > 1 {
			t.Errorf("user %d got %d", u, n)
		}
	}
	r.verify()
}

// One user at 10,000 concurrent requests.
func TestOneUserGetsExactlyOne(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	r.publish(r.sale("phone", 200))
	var granted atomic.Int64
	var wg sync.WaitGroup
	for i := range 10_000 {
		wg.Go(func() {
			res := r.claim("phone", "42", fmt.Sprint("press-", i), 1)
			switch {
			case res.Outcome == dibs.Granted:
				granted.Add(1)
			case res.Outcome != dibs.LimitReached || len(res.ClaimIDs) != 1:
				t.Errorf("press %d: %+v", i, res)
			}
		})
	}
	wg.Wait()
	if granted.Load() != 1 {
		t.Errorf("%d claims were granted, want 1", granted.Load())
	}
	r.verify()
}

// A yes whose answer got lost is found again whatever happened since.
func TestALostYesIsFoundAgain(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	ctx := t.Context()
	r.publish(r.sale("phone", 1))
	first := r.wants(dibs.Granted, "phone", "42", "press").Claim
	again := func(when string) {
		t.Helper()
		res := r.wants(dibs.Granted, "phone", "42", "press")
		if !res.Replayed || res.Claim.ID != first.ID || !res.Claim.CreatedAt.Equal(first.CreatedAt) {
			t.Fatalf("%s: %+v, want claim %s again", when, res.Claim, first.ID)
		}
		if res := r.claim("phone", "42", "press", 2); res.Outcome != dibs.KeyReused {
			t.Fatalf("%s: another quantity under the key: %s", when, res.Outcome)
		}
	}
	do := func(_ *dibs.Campaign, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r.wants(dibs.SoldOut, "phone", "43", "press")
	again("sold out")
	do(r.node.Service.Campaigns.Pause(ctx, "phone"))
	r.wants(dibs.Paused, "phone", "43", "press")
	again("paused")
	r.reopen()
	again("paused and restarted")
	do(r.node.Service.Campaigns.Resume(ctx, "phone"))
	r.pass(2 * time.Hour)
	r.wants(dibs.Ended, "phone", "43", "press")
	again("the window is over")
	r.reopen()
	r.wants(dibs.Ended, "phone", "43", "press")
	again("over, and restarted: the ledger answers")
	do(r.node.Service.Campaigns.End(ctx, "phone"))
	again("ended")
	r.verify()
}

func TestWhatUsersAreTold(t *testing.T) {
	r := newRig(t, node.ServiceConfig{})
	spec := r.sale("later", 5)
	spec.StartsAt = r.now().Add(time.Minute)
	r.publish(spec)
	draft := r.sale("draft", 5)
	if _, err := r.node.Service.Campaigns.Create(t.Context(), draft); err != nil {
		t.Fatal(err)
	}
	r.wants(dibs.NotFound, "nothing", "42", "")
	r.wants(dibs.NotFound, "draft", "42", "k")
	if res := r.wants(dibs.NotStarted, "later", "42", ""); !res.Campaign.StartsAt.Equal(spec.StartsAt.Truncate(time.Millisecond)) {
		t.Errorf("not started, but starts at %v", res.Campaign.StartsAt)
	}
	r.pass(2 * time.Minute)
	if res := r.claim("later", "42", "", 6); res.Outcome != dibs.SoldOut || res.Remaining != 5 {
		t.Errorf("6 of 5: %s with %d remaining", res.Outcome, res.Remaining)
	}
	if res := r.claim("later", "42", "", 2); res.Outcome != dibs.LimitReached || len(res.ClaimIDs) != 0 {
		t.Errorf("2 with a limit of 1: %+v", res)
	}
	_, err := r.node.Service.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "later", UserID: "4 2", Quantity: -1})
	if e := r.fails(err, dibs.InvalidRequest); len(e.Faults) != 2 {
		t.Errorf("faults %+v", e.Faults)
	}
	if st := r.stats("later"); st.Granted != 0 || st.Refused["sold_out"] != 1 || st.Refused["limit_reached"] != 1 || st.Refused["not_started"] != 1 {
		t.Errorf("stats %+v", st)
	}
}

// While too much waits to be settled, claims are refused; nothing is lost.
func TestTheBacklogIsBounded(t *testing.T) {
	r := newRig(t, node.ServiceConfig{MaxBacklog: 100, SettleEvery: 5 * time.Second})
	r.publish(r.sale("phone", 100_000))
	r.wants(dibs.Granted, "phone", "first", "press")
	deadline := time.Now().Add(20 * time.Second)
	granted := int64(1)
	for refused := false; !refused; granted++ {
		res, err := r.node.Service.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: fmt.Sprint("u", granted)})
		switch {
		case errors.Is(err, dibs.ErrOverloaded):
			if e := r.fails(err, dibs.Overloaded); e.Effect != dibs.EffectNone || e.RetryAfter <= 0 {
				t.Fatalf("%+v", e)
			}
			refused, granted = true, granted-1
		case err != nil || res.Outcome != dibs.Granted:
			t.Fatalf("%+v, %v", res, err)
		case time.Now().After(deadline):
			t.Fatalf("%d claims were granted with a backlog of at most 100", granted)
		}
	}
	if again := r.wants(dibs.Granted, "phone", "first", "press"); !again.Replayed {
		t.Fatalf("the repeat of a yes: %+v", again)
	}
	r.tune.MaxBacklog = 0
	r.reopen()
	if st := r.stats("phone"); st.Granted != granted {
		t.Fatalf("%d are granted, %d were answered", st.Granted, granted)
	}
	r.wants(dibs.Granted, "phone", "later", "")
	r.verify()
}

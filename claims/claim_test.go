package claims_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/node"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// A user who claims and cancels is stopped after MaxClaimsPerUser claims, and
// their late testnode.Payment is due back; the first results are found all the same.
func TestAUserWhoClaimsAndCancelsIsStopped(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SweepEvery: 5 * time.Millisecond, SettleEvery: time.Millisecond})
	r.Publish(r.Unpaid("phone", 2, dibs.Reclaim))
	svc := r.Node.Service
	late := r.Wants(dibs.Granted, "phone", "u0", "late").Claim.ID
	r.Expire("phone")
	var res dibs.Result
	granted := 1
	for res.Outcome == dibs.Granted && granted <= dibs.MaxClaimsPerUser {
		key := fmt.Sprint("k", granted)
		// A claim that was cancelled may fill the limit until its command is sent.
		r.Eventually("the claim before is released", func() bool {
			res = r.Claim("phone", "u0", key, 1)
			return res.Outcome != dibs.LimitReached
		})
		if res.Outcome == dibs.Granted {
			granted++
			if _, _, err := svc.Orders.Cancel(t.Context(), res.Claim.ID, "u0", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if res.Outcome != dibs.TooManyClaims || granted != dibs.MaxClaimsPerUser {
		t.Fatalf("after %d claims: %+v", granted, res)
	}
	refusal := web.RefusalOf(&res)
	p, zh := refusal.View(false, ""), refusal.View(true, "")
	if p.Status != 409 || p.Code != 30015 || p.Retryable || p.Reason != "too_many_claims" || !strings.Contains(p.Detail, "at most 1000 claims") ||
		!strings.Contains(zh.Detail, "1000 次") {
		t.Errorf("the refusal is %+v and %+v", p, zh)
	}
	if st := r.Stats("phone"); st.Refused["too_many_claims"] != 1 {
		t.Errorf("the refusals are counted as %v", st.Refused)
	}
	if c, _ := r.Confirm(late, "pay-1"); c.ID != late || c.Status != dibs.Released || !c.Payment.Due {
		t.Errorf("the late testnode.Payment: %+v", c)
	}
	r.Wants(dibs.Granted, "phone", "u1", "k")
	r.Verify()
	r.Reopen()
	r.Wants(dibs.TooManyClaims, "phone", "u0", "another")
	if again := r.Claim("phone", "u0", "k1", 1); !again.Replayed || again.Claim.Status != dibs.Released {
		t.Errorf("the first cancelled claim again: %+v", again)
	}
	r.Verify()
}

// 2,000 users at 5,000 concurrent requests on 200 units.
func TestManyUsersGetExactlyTheStock(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 200))
	var granted atomic.Int64
	var perUser [2000]atomic.Int64
	var wg sync.WaitGroup
	for i := range 5000 {
		wg.Go(func() {
			user := i % len(perUser)
			if r.Claim("phone", fmt.Sprint("u", user), "", 1).Outcome == dibs.Granted {
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
	r.Verify()
}

// One user at 10,000 concurrent requests.
func TestOneUserGetsExactlyOne(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 200))
	var granted atomic.Int64
	var wg sync.WaitGroup
	for i := range 10_000 {
		wg.Go(func() {
			res := r.Claim("phone", "42", fmt.Sprint("press-", i), 1)
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
	r.Verify()
}

// A yes whose answer got lost is found again whatever happened since.
func TestALostYesIsFoundAgain(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	ctx := t.Context()
	r.Publish(r.Sale("phone", 1))
	first := r.Wants(dibs.Granted, "phone", "42", "press").Claim
	again := func(when string) {
		t.Helper()
		res := r.Wants(dibs.Granted, "phone", "42", "press")
		if !res.Replayed || res.Claim.ID != first.ID || !res.Claim.CreatedAt.Equal(first.CreatedAt) {
			t.Fatalf("%s: %+v, want claim %s again", when, res.Claim, first.ID)
		}
		if res := r.Claim("phone", "42", "press", 2); res.Outcome != dibs.KeyReused {
			t.Fatalf("%s: another quantity under the key: %s", when, res.Outcome)
		}
	}
	do := func(_ *dibs.Campaign, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Wants(dibs.SoldOut, "phone", "43", "press")
	again("sold out")
	do(r.Node.Campaigns.Pause(ctx, "phone"))
	r.Wants(dibs.Paused, "phone", "43", "press")
	again("paused")
	r.Reopen()
	again("paused and restarted")
	do(r.Node.Campaigns.Resume(ctx, "phone"))
	r.Pass(2 * time.Hour)
	r.Wants(dibs.Ended, "phone", "43", "press")
	again("the window is over")
	r.Reopen()
	r.Wants(dibs.Ended, "phone", "43", "press")
	again("over, and restarted: the ledger answers")
	do(r.Node.Campaigns.End(ctx, "phone"))
	again("ended")
	r.Verify()
}

func TestWhatUsersAreTold(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Sale("later", 5)
	spec.StartsAt = r.Now().Add(time.Minute)
	r.Publish(spec)
	draft := r.Sale("draft", 5)
	if _, err := r.Node.Campaigns.Create(t.Context(), draft); err != nil {
		t.Fatal(err)
	}
	r.Wants(dibs.NotFound, "nothing", "42", "")
	r.Wants(dibs.NotFound, "draft", "42", "k")
	if res := r.Wants(dibs.NotStarted, "later", "42", ""); !res.Campaign.StartsAt.Equal(spec.StartsAt.Truncate(time.Millisecond)) {
		t.Errorf("not started, but starts at %v", res.Campaign.StartsAt)
	}
	r.Pass(2 * time.Minute)
	if res := r.Claim("later", "42", "", 6); res.Outcome != dibs.SoldOut || res.Remaining != 5 {
		t.Errorf("6 of 5: %s with %d remaining", res.Outcome, res.Remaining)
	}
	if res := r.Claim("later", "42", "", 2); res.Outcome != dibs.LimitReached || len(res.ClaimIDs) != 0 {
		t.Errorf("2 with a limit of 1: %+v", res)
	}
	_, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "later", UserID: "4 2", Quantity: -1})
	if e := r.Fails(err, dibs.InvalidRequest); len(e.Faults) != 2 {
		t.Errorf("faults %+v", e.Faults)
	}
	if st := r.Stats("later"); st.Granted != 0 || st.Refused["sold_out"] != 1 || st.Refused["limit_reached"] != 1 || st.Refused["not_started"] != 1 {
		t.Errorf("stats %+v", st)
	}
}

// While too much waits to be settled, claims are refused; nothing is lost.
func TestTheBacklogIsBounded(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{MaxBacklog: 100, SettleEvery: 5 * time.Second})
	r.Publish(r.Sale("phone", 100_000))
	r.Wants(dibs.Granted, "phone", "first", "press")
	deadline := time.Now().Add(20 * time.Second)
	granted := int64(1)
	for refused := false; !refused; granted++ {
		res, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: fmt.Sprint("u", granted)})
		switch {
		case errors.Is(err, dibs.ErrOverloaded):
			if e := r.Fails(err, dibs.Overloaded); e.Effect != dibs.EffectNone || e.RetryAfter <= 0 {
				t.Fatalf("%+v", e)
			}
			refused, granted = true, granted-1
		case err != nil || res.Outcome != dibs.Granted:
			t.Fatalf("%+v, %v", res, err)
		case time.Now().After(deadline):
			t.Fatalf("%d claims were granted with a backlog of at most 100", granted)
		}
	}
	if again := r.Wants(dibs.Granted, "phone", "first", "press"); !again.Replayed {
		t.Fatalf("the repeat of a yes: %+v", again)
	}
	r.Tune.MaxBacklog = 0
	r.Reopen()
	if st := r.Stats("phone"); st.Granted != granted {
		t.Fatalf("%d are granted, %d were answered", st.Granted, granted)
	}
	r.Wants(dibs.Granted, "phone", "later", "")
	r.Verify()
}

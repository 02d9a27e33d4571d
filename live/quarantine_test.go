package live_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// isKept checks that a claim in quarantine is kept: it is found, by its id, by
// its repeat and by its user alone, and counts.
func isKept(r *testnode.Rig, campaign, user, key, id string) {
	r.Helper()
	c, err := r.Node.Claims.Find(r.Context(), id)
	if err != nil || c.UserID != user {
		r.Errorf("the claim in quarantine: %+v, %v", c, err)
	}
	if again := r.Wants(dibs.Granted, campaign, user, key); !again.Replayed || again.Claim.ID != id {
		r.Errorf("its repeat: %+v", again)
	}
	list, err := r.Node.Claims.OfUser(r.Context(), user, dibs.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != id {
		r.Errorf("its user's claims: %+v, %v", list.Items, err)
	}
	list, err = r.Node.Claims.OfUser(r.Context(), "another user", dibs.Page{})
	if err != nil || len(list.Items) > 0 {
		r.Errorf("the claims of a user who has none: %+v, %v", list.Items, err)
	}
}

// A journal entry that the ledger cannot take is set aside, and everything else
// goes on: it still counts, in the ledger and in an engine that was rebuilt.
func TestAPoisonEntryIsSetAside(t *testing.T) {
	for name, item := range map[string]byte{"an item that does not exist": 99, "an item of another claim": 0} {
		t.Run(name, func(t *testing.T) {
			var r *testnode.Rig
			var log *testnode.Log
			var poisoned *dibs.Claim
			var before api.StatsView
			testnode.Unsettled(t, func() bool {
				var tune node.ServiceConfig
				tune, log = testnode.Slowly()
				r = testnode.New(t, tune)
				r.Publish(r.Sale("beside", 10))
				r.Seats("seats", 10)
				r.Sell("seats", 6)
				r.Sell("beside", 3)
				poisoned = r.Wants(dibs.Granted, "seats", "u3", "k3").Claim
				before = r.Stats("seats")
				r.Poison(2, 3, item)
				if err := r.Settle("seats"); err != nil {
					t.Fatal(err)
				}
				return r.InQuarantine() > 0
			})
			if n := r.InQuarantine(); n != 1 || log.Count("is in quarantine") != 1 {
				t.Fatalf("%d entries in quarantine, logged %d times", n, log.Count("is in quarantine"))
			}
			h := r.Node.Health(t.Context())
			if s := h.Dependencies["settling"]; !h.Ready || !s.OK || !strings.Contains(s.Warning, "quarantine") {
				t.Errorf("health: %+v", h)
			}
			after := r.Stats("seats")
			if after.Granted != before.Granted || after.Remaining != before.Remaining || after.Stock != 10 || after.Confirmed != 6 {
				t.Errorf("the stats were %+v and are %+v", before, after)
			}
			isKept(r, "seats", "u3", "k3", poisoned.ID)
			saysQuarantine(t, r.Report())

			r.Reopen()
			isKept(r, "seats", "u3", "k3", poisoned.ID)
			r.Wants(dibs.LimitReached, "seats", "u3", "another")
			// The journal is what is believed: seat-3 is not in it, another one is kept
			// back for it.
			sold := map[string]bool{"seat-0": true, "seat-1": true, "seat-2": true, "seat-4": true, "seat-5": true}
			for i := range 4 {
				seat := r.Wants(dibs.Granted, "seats", fmt.Sprint("late-", i), "k").Claim.Items[0]
				if sold[seat] {
					t.Errorf("%s is sold twice", seat)
				}
				sold[seat] = true
			}
			r.Wants(dibs.SoldOut, "seats", "too-late", "k")
			saysQuarantine(t, r.Report())

			r.Pass(2 * time.Hour)
			r.Reopen()
			if again := r.Wants(dibs.Granted, "seats", "u3", "k3"); !again.Replayed || again.Claim.ID != poisoned.ID {
				t.Errorf("its repeat after the end: %+v", again)
			}
			if c, err := r.Node.Claims.Find(t.Context(), poisoned.ID); err != nil || c.UserID != "u3" {
				t.Errorf("it after the end: %+v, %v", c, err)
			}
		})
	}
}

// saysQuarantine checks that the report's only complaint is the quarantine.
func saysQuarantine(t *testing.T, report *audit.Report) {
	t.Helper()
	for _, c := range report.Campaigns {
		for _, p := range c.Promises {
			if want := c.CampaignID != "seats" || p.Promise != "a yes is kept"; p.Held != want {
				t.Errorf("%s, %q held: %t: %s", c.CampaignID, p.Promise, p.Held, p.Detail)
			}
			if !p.Held && !strings.Contains(p.Detail, "in quarantine: 1") {
				t.Errorf("it says %q", p.Detail)
			}
		}
	}
}

// A poison entry in the tail that a crash left does not keep the campaign from
// being loaded.
func TestAPoisonedTailIsSettledBeforeTheLoad(t *testing.T) {
	var r *testnode.Rig
	testnode.Unsettled(t, func() bool {
		tune, _ := testnode.Slowly()
		r = testnode.New(t, tune)
		r.Seats("seats", 10)
		r.Sell("seats", 6)
		if !r.Abandon() {
			return false
		}
		r.Poison(1, 3, 99)
		r.Open()
		return r.InQuarantine() > 0
	})
	if n := r.InQuarantine(); n != 1 {
		t.Fatalf("%d entries in quarantine", n)
	}
	if again := r.Wants(dibs.Granted, "seats", "u3", "k3"); !again.Replayed {
		t.Errorf("%+v", again)
	}
	for i := range 4 {
		r.Wants(dibs.Granted, "seats", fmt.Sprint("late-", i), "k")
	}
	r.Wants(dibs.SoldOut, "seats", "too-late", "k")
	saysQuarantine(t, r.Report())
}

// A claim that the ledger has at a place that is not settled is no poison: two
// histories cannot both be kept. The campaign halts, the others go on.
func TestAForkHalts(t *testing.T) {
	tune, log := testnode.Slowly()
	r := testnode.New(t, tune)
	r.Publish(r.Sale("forked", 10))
	r.Publish(r.Sale("beside", 10))
	r.Tamper(`INSERT INTO claims (campaign, shard, epoch, seq, user_id, quantity, status, order_type, amount, currency, request_key, restocked, pay_by, created_at)
		SELECT 1, 0, epoch, 3, 'another story', 1, 1, 2, 0, '', 0, 0, 0, 0 FROM positions WHERE campaign = 1`)
	r.Sell("forked", 3)
	r.Sell("beside", 3)
	if err := r.Settle("beside"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := r.Node.Claims.OfCampaign(ctx, "forked", dibs.ClaimFilter{}, dibs.Page{})
	r.Fails(err, dibs.Unavailable)
	r.Eventually("the log says why", func() bool { return log.Count("a claim at a place that is not settled") > 0 })
	if n := r.InQuarantine(); n != 0 {
		t.Errorf("%d entries in quarantine", n)
	}
	if h := r.Node.Health(t.Context()); h.Ready || h.Dependencies["settling"].OK {
		t.Errorf("health: %+v", h)
	}
	r.Wants(dibs.Granted, "beside", "late", "k")
	r.Tamper(`DELETE FROM claims WHERE user_id = 'another story'`)
	r.Verify()
}

// crowd puts as many entries into the quarantine as a node keeps in mind, of shard 0 of
// campaign 1: they stand before all others. They take and grant nothing.
func crowd(r *testnode.Rig) {
	r.Helper()
	r.Tamper(fmt.Sprintf(`INSERT INTO quarantine (campaign, shard, epoch, seq, kind, user_id, quantity, counted, status, request_key,
		ref, created_at, pay_by, items, why, at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 1, 0, 1, 100000 + i, %d, '', 0, 0, 0, 0, '', 0, 0, '[]', 'planted', 0 FROM n`, live.MaxListed, dibs.EntryUnreadable))
}

// A claim in quarantine is found and counted however many entries are there besides.
func TestACrowdedQuarantineLosesNoClaim(t *testing.T) {
	var r *testnode.Rig
	var poisoned *dibs.Claim
	testnode.Unsettled(t, func() bool {
		tune, _ := testnode.Slowly()
		r = testnode.New(t, tune)
		r.Publish(r.Sale("beside", 10))
		r.Seats("seats", 10)
		r.Sell("seats", 6)
		poisoned = r.Wants(dibs.Granted, "seats", "u3", "k3").Claim
		crowd(r)
		r.Poison(2, 3, 99)
		if err := r.Settle("seats"); err != nil {
			t.Fatal(err)
		}
		// Settled too early, it is in no quarantine, whose number may not have been read then.
		return r.InQuarantine() > live.MaxListed
	})
	if n := r.InQuarantine(); n != live.MaxListed+1 {
		t.Errorf("%d entries in quarantine", n)
	}
	isKept(r, "seats", "u3", "k3", poisoned.ID)
	// The ledger alone knows it once the campaign has left the engine.
	r.Pass(2 * time.Hour)
	r.Reopen()
	isKept(r, "seats", "u3", "k3", poisoned.ID)
}

// The bound of a shard's entries in quarantine is its own: what other shards have there
// neither uses it up nor lifts it.
func TestTheQuarantineOfAShardIsBounded(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	r := &testnode.Rig{T: t, Dir: t.TempDir()}
	r.Node, err = node.Open(t.Context(), node.Config{Dir: r.Dir, Migrate: true, Engine: redis.URL()})
	if err != nil {
		t.Fatal(err)
	}
	// An entry that the ledger refuses is never settled.
	t.Cleanup(func() { r.Abandon() })
	// So much that no shard is ever low: units that came would let more settle.
	spec, shards := r.Sale("phone", 100_000), 2
	spec.Shards = &shards
	r.Publish(spec)
	crowd(r)
	r.Tamper(`UPDATE positions SET stock_left = 2 WHERE shard = 1`)
	def, err := r.Node.Campaigns.Now(t.Context(), "phone")
	if err != nil {
		t.Fatal(err)
	}
	var last dibs.Result
	for i, n := 0, 0; n < 120; i++ {
		if user := fmt.Sprint("u", i); def.ShardOf(user).Shard == 1 {
			last = r.Wants(dibs.Granted, "phone", user, "k")
			n++
		}
	}
	err = r.Settle("phone")
	r.Fails(err, dibs.Unavailable)
	if n := r.InQuarantine(); n != live.MaxListed+100 {
		t.Errorf("%d in quarantine", n)
	}
	if _, err := r.Node.Ledger.Claim(t.Context(), last.Claim.Position); !errors.Is(err, dibs.ErrNotFound) {
		t.Errorf("the newest claim is settled: %v", err)
	}
}

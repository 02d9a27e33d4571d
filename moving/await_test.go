package moving_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"
)

// TestEveryUnitIsSold lets 100 users buy all of 600 units, six each: as many as they
// may have, one by one or three at a time, through two nodes. No shard has as many
// units as its users want, and not one of them may be left over.
func TestEveryUnitIsSold(t *testing.T) {
	f := newFleet(t, 2)
	for _, quantity := range []int64{1, 3} {
		c := f.publish(fmt.Sprintf("sale-%d", quantity), 6, 600, 6)
		var all sync.WaitGroup
		var granted atomic.Int64
		for i := range 100 {
			all.Go(func() {
				user := fmt.Sprintf("user-%d", i)
				for held := int64(0); held < 6; held += quantity {
					r := f.claim(f.nodes[i%2], c, user, fmt.Sprint("key-", held), quantity)
					if r.Outcome != dibs.Granted {
						t.Errorf("%s, who has %d, is told %v with %d left", user, held, r.Outcome, r.Remaining)
						return
					}
					granted.Add(quantity)
				}
			})
		}
		all.Wait()
		if granted.Load() != 600 {
			t.Errorf("%d of 600 are sold", granted.Load())
		}
		for i := range 20 {
			if r := f.claim(f.nodes[i%2], c, fmt.Sprintf("late-%d", i), "", 1); r.Outcome != dibs.SoldOut || r.Remaining != 0 {
				t.Errorf("after the last unit: %v, %d left", r.Outcome, r.Remaining)
			}
		}
		f.whole(c, 600, 0)
	}
	if n := f.nodes[0].Moving.Metrics().Transfers + f.nodes[1].Moving.Metrics().Transfers; n == 0 {
		t.Error("nothing was moved: the shards were never short")
	}
}

// TestEveryItemIsSold sells 60 seats over five shards to users of one, each seat once.
// What is restocked then is sold too, from whichever shard it was given to.
func TestEveryItemIsSold(t *testing.T) {
	f := newFleet(t, 1)
	shards, limit := 5, int64(100)
	spec := dibs.CampaignSpec{
		ID: "seats", Kind: dibs.Coupon, Title: "seats", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Limit: &limit, Shards: &shards,
	}
	for i := range 60 {
		spec.Stock.Items = append(spec.Stock.Items, fmt.Sprint("seat-", i))
	}
	n := f.nodes[0]
	c, err := n.Campaigns.Create(t.Context(), spec)
	if err == nil {
		c, err = n.Campaigns.Publish(t.Context(), c.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	user := usersOf(c, 2, 1)[0]
	sold := map[string]bool{}
	buy := func(key string, quantity int64) {
		t.Helper()
		r := f.claim(n, c, user, key, quantity)
		if r.Outcome != dibs.Granted {
			t.Fatalf("with %d sold: %v", len(sold), r.Outcome)
		}
		for _, item := range r.Claim.Items {
			if sold[item] {
				t.Errorf("%s is sold twice", item)
			}
			sold[item] = true
		}
	}
	for i := range 20 {
		buy(fmt.Sprint("key-", i), 3)
	}
	if r := f.claim(n, c, user, "", 1); r.Outcome != dibs.SoldOut || len(sold) != 60 {
		t.Errorf("with %d sold: %v", len(sold), r.Outcome)
	}
	more := dibs.StockChange{Items: []string{"extra-1", "extra-2", "extra-3"}}
	if _, err := n.Campaigns.ChangeStock(t.Context(), c.ID, more, "more"); err != nil {
		t.Fatal(err)
	}
	f.soon(n, c, user)
	buy("two", 2)
	file := strings.NewReader("code\nimported-1\nimported-2\nimported-3\nimported-4\n")
	if got, err := n.Campaigns.ImportCodes(t.Context(), c.ID, file, "import", nil); err != nil || got.Items != 4 {
		t.Fatalf("import: %+v, %v", got, err)
	}
	buy("imported", 4)
	f.whole(c, 67, 0)
}

// TestCrowdOfOneShard sells the stock of five shards to users of one, and the last
// unit too. Those of the other shards are then told that it is sold out, at once.
func TestCrowdOfOneShard(t *testing.T) {
	f := newFleet(t, 1)
	c := f.publish("sale", 5, 500, 1)
	users := usersOf(c, 3, 700)
	var all sync.WaitGroup
	var granted, soldOut atomic.Int64
	for _, user := range users {
		all.Go(func() {
			switch r := f.claim(f.nodes[0], c, user, "key", 1); r.Outcome {
			case dibs.Granted:
				granted.Add(1)
			case dibs.SoldOut:
				soldOut.Add(1)
			default:
				t.Errorf("%s is told %v", user, r.Outcome)
			}
		})
	}
	all.Wait()
	if granted.Load() != 500 || soldOut.Load() != 200 {
		t.Errorf("%d granted and %d told that all is sold, want 500 and 200", granted.Load(), soldOut.Load())
	}
	// Four shards give all that they have.
	if m := f.nodes[0].Moving.Metrics(); m.Transfers < 4 || m.Transfers > 4*40 {
		t.Errorf("%d transfers brought the units of four shards", m.Transfers)
	}
	for shard := range uint8(5) {
		if r := f.claim(f.nodes[0], c, usersOf(c, shard, 701)[700], "", 1); r.Outcome != dibs.SoldOut {
			t.Errorf("a user of shard %d: %v", shard, r.Outcome)
		}
	}
	f.whole(c, 500, 0)
}

// TestStockOnItsWay keeps what left one shard for another from being settled: a claim at
// the empty shard waits as long as it is told to, and not longer. It is then refused for
// now, without an effect, and not as sold out. When the units have come, the same claim is
// granted.
func TestStockOnItsWay(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	const wait = 50 * time.Millisecond
	f := newFleetTuned(t, 1, redis.URL(), dibs.LevelDurable, node.ServiceConfig{ShardWait: wait})
	n := f.nodes[0]
	c := f.publish("sale", 2, 4, 4)
	user := usersOf(c, 0, 1)[0]
	release := f.holdLedger()
	defer release()
	buys := func(key string, quantity int64) {
		t.Helper()
		if r := f.claim(n, c, user, key, quantity); r.Outcome != dibs.Granted || r.Replayed {
			t.Errorf("claim %s: %v, replayed %v", key, r.Outcome, r.Replayed)
		}
	}
	buys("first", 1)
	buys("second", 1)
	if soonest := f.putOff(n, c, user, wait); soonest > 4*wait {
		t.Errorf("no claim that may wait %s is answered before %s", wait, soonest)
	}
	if m := n.Moving.Metrics(); m.Transfers == 0 || m.Waited < 5 {
		t.Errorf("what the claims waited for: %+v", m)
	}
	if st, err := n.Stats(t.Context(), c.ID); err != nil || st.Granted != 2 || st.Remaining != 2 {
		t.Errorf("after the refusals: %+v, %v", st, err)
	}
	release()
	buys("both", 2)
	if r := f.claim(n, c, usersOf(c, 1, 1)[0], "", 1); r.Outcome != dibs.SoldOut {
		t.Errorf("after the last unit: %v", r.Outcome)
	}
	f.whole(c, 4, 0)
}

// putOff has a claim for both units that are on their way refused five times, each time for
// now and without an effect, and returns how long the shortest wait was.
func (f *fleet) putOff(n *node.Node, c *dibs.Campaign, user string, least time.Duration) (soonest time.Duration) {
	f.Helper()
	soonest = time.Hour
	for waits, over := 0, time.Now().Add(time.Minute); waits < 5; {
		begun := time.Now()
		r, err := n.Claims.Claim(f.Context(), dibs.ClaimRequest{CampaignID: c.ID, UserID: user, Key: "both", Quantity: 2})
		took := time.Since(begun)
		var e *dibs.Error
		if !errors.As(err, &e) || !e.Reason.Info().Retryable || e.Effect != dibs.EffectNone || e.RetryAfter <= 0 || begun.After(over) {
			f.Fatalf("a claim while units are on their way: %v, %v", r.Outcome, err)
		}
		// A busy machine may not see a shard in time, or shed the claim before it waits.
		if e.Reason != dibs.Overloaded || !strings.Contains(e.Detail.EN, "is being brought") {
			continue
		}
		waits++
		if soonest = min(soonest, took); took < least {
			f.Errorf("a claim waits %s, not %s", took, least)
		}
	}
	return soonest
}

package moving_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"
)

// later is a node on one Redis whose clock the test moves; what it does now and then it does
// all the time.
type later struct {
	fleet
	n     *node.Node
	redis *servers.Redis
	ahead atomic.Int64
}

func newLater(t *testing.T) *later {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	l := &later{redis: redis}
	l.T, l.dir = t, t.TempDir()
	l.n, err = node.Open(t.Context(), node.Config{
		Dir: l.dir, Migrate: true, Engine: redis.URL(), Now: func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) },
		Service: node.ServiceConfig{TidyEvery: 20 * time.Millisecond, EraseEvery: 20 * time.Millisecond, EraseRest: time.Millisecond, SweepEvery: 5 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l.nodes = []*node.Node{l.n}
	return l
}

// until waits for a condition.
func (l *later) until(what string, holds func() bool) {
	l.Helper()
	for over := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(over) {
			l.Fatalf("%s: not within a minute", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// divided publishes a sale of 9 units over three shards.
func (l *later) divided(id string, change func(spec *dibs.CampaignSpec)) *dibs.Campaign {
	l.Helper()
	units, limit, shards := int64(9), int64(1), 3
	spec := dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(2 * time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Limit: &limit, Shards: &shards,
	}
	change(&spec)
	c, err := l.n.Campaigns.Create(l.Context(), spec)
	if err == nil {
		c, err = l.n.Campaigns.Publish(l.Context(), id)
	}
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// buy has users from a number on buy a unit each, on all shards, and returns their claims.
func (l *later) buy(c *dibs.Campaign, from, users int) (ids []string) {
	l.Helper()
	for i := from; i < from+users; i++ {
		r := l.claim(l.n, c, fmt.Sprint("user-", i), "key", 1)
		if r.Outcome != dibs.Granted {
			l.Fatalf("user %d is told %v", i, r.Outcome)
		}
		ids = append(ids, r.Claim.ID)
	}
	l.until("all is settled", func() bool {
		st, err := l.n.Stats(l.Context(), c.ID)
		return err == nil && st.JournalBacklog == 0
	})
	return ids
}

// TestLowStockOfAllShards: the stock is low by what all shards have, once, and not by what
// one has. The feed tells each claim of every shard once.
func TestLowStockOfAllShards(t *testing.T) {
	l := newLater(t)
	c := l.divided("mugs", func(spec *dibs.CampaignSpec) { spec.LowStock = 4 })
	since := func() time.Time {
		now, err := l.n.Ledger.Campaign(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.LowSince
	}
	ids := l.buy(c, 0, 4)
	if at := since(); !at.IsZero() {
		t.Errorf("low since %s, and 5 are left", at)
	}
	ids = append(ids, l.buy(c, 4, 1)...)
	first := since()
	if st, err := l.n.Stats(t.Context(), c.ID); err != nil || !st.Low || first.IsZero() {
		t.Errorf("4 are left: low since %s, %+v, %v", first, st, err)
	}
	ids = append(ids, l.buy(c, 5, 4)...)
	if at := since(); !at.Equal(first) {
		t.Errorf("low since %s, and since %s before", at, first)
	}
	told, _, err := l.n.Events.After(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	for _, e := range told {
		if e.Type == events.EventTypePrefix+"claim.granted" {
			granted = append(granted, e.Subject)
		}
	}
	slices.Sort(granted)
	slices.Sort(ids)
	if !slices.Equal(granted, ids) {
		t.Errorf("the feed tells of %v, the users of %v", granted, ids)
	}
	if _, err := l.n.Campaigns.ChangeStock(t.Context(), c.ID, dibs.StockChange{Delta: 6}, "more"); err != nil {
		t.Fatal(err)
	}
	if at := since(); !at.IsZero() {
		t.Errorf("low since %s, and 6 came", at)
	}
	l.whole(c, 9, 6)
}

// TestErasureOverShards: a user of a campaign of several shards is erased when none of them
// and no journal has them any more.
func TestErasureOverShards(t *testing.T) {
	l := newLater(t)
	c := l.divided("phone", func(*dibs.CampaignSpec) {})
	ids := l.buy(c, 0, 6)
	var erasures []string
	for i := range 6 {
		e, _, err := l.n.Erasures.Erase(t.Context(), fmt.Sprint("user-", i), erasure.ErasureSpec{})
		if err != nil {
			t.Fatal(err)
		}
		erasures = append(erasures, e.ID)
	}
	all := func(state erasure.EraseState, waits bool) func() bool {
		return func() bool {
			for _, id := range erasures {
				v, err := l.n.Erasures.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if v.State != state || waits != slices.Contains(v.WaitsFor, "campaign phone") {
					return false
				}
			}
			return true
		}
	}
	l.until("all wait for the campaign", all(erasure.ErasureWaiting, true))
	l.ahead.Store(int64(6 * time.Hour))
	if _, err := l.n.Campaigns.End(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	l.ahead.Store(int64(12 * time.Hour))
	l.until("all are erased", all(erasure.ErasureDone, false))
	for i, id := range ids {
		claim, err := l.n.Claims.Find(t.Context(), id)
		if err != nil || !strings.HasPrefix(claim.UserID, erasure.PseudonymPrefix) {
			t.Errorf("the claim of user %d is %+v, %v", i, claim, err)
		}
	}
}

// TestRecallOfAllShards: the shards of a campaign that is over leave the engine, all of
// them. A late payment brings them back for its unit, and they leave again.
func TestRecallOfAllShards(t *testing.T) {
	l := newLater(t)
	within := dibs.Duration(15 * time.Minute)
	c := l.divided("late", func(spec *dibs.CampaignSpec) {
		spec.Price, spec.PayWithin, spec.LatePayment = &dibs.Money{Amount: 500, Currency: "CNY"}, &within, dibs.Reclaim
	})
	ids := l.buy(c, 0, 6)
	shards := func() (open int) {
		t.Helper()
		for i := range 3 {
			r, err := l.redis.Do(t.Context(), "EXISTS", fmt.Sprintf("dibs:{%d:%d}:meta", c.Number, i))
			if err != nil {
				t.Fatal(err)
			}
			n, err := r.ToInt64()
			if err != nil {
				t.Fatal(err)
			}
			open += int(n)
		}
		return open
	}
	if n := shards(); n != 3 {
		t.Fatalf("%d shards are open", n)
	}
	l.ahead.Store(int64(16 * time.Minute))
	l.until("the claims expire", func() bool {
		st, err := l.n.Stats(t.Context(), c.ID)
		return err == nil && st.Pending == 0 && st.Released == 6
	})
	if _, err := l.n.Campaigns.End(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	l.ahead.Store(int64(40 * time.Minute))
	l.until("all shards leave the engine", func() bool { return shards() == 0 })
	// Redis says until when the unit that is taken again has to be paid, by its own clock.
	l.ahead.Store(0)
	for i, id := range ids {
		paid, _, err := l.n.Orders.Confirm(t.Context(), id, dibs.PaymentSpec{Amount: &dibs.Money{Amount: 500, Currency: "CNY"}, PaymentRef: fmt.Sprint("pay-", i)})
		if err != nil || paid.Status != dibs.Confirmed || paid.Replaces != id {
			t.Errorf("the late payment of user %d: %+v, %v", i, paid, err)
		}
	}
	if n := shards(); n != 3 {
		t.Errorf("%d shards were brought back", n)
	}
	l.ahead.Store(int64(time.Hour))
	l.until("all shards leave the engine again", func() bool { return shards() == 0 })
	st, err := l.n.Stats(t.Context(), c.ID)
	if err != nil || st.Confirmed != 6 || st.Remaining != 3 {
		t.Errorf("%+v, %v", st, err)
	}
	if report, err := l.n.Audit.Verify(t.Context()); err != nil || !report.OK {
		t.Errorf("%+v, %v", report, err)
	}
}

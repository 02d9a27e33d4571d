package redisengine_test

import (
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
)

// TestClaimsByAnotherNumberOfShards gives a campaign more shards: from then on no process
// gets anything by the number before, also one that has not heard of the change, and all
// go on by the new one. A user whom the shard knew stays; it takes no other one in.
func TestClaimsByAnotherNumberOfShards(t *testing.T) {
	url := startRedis(t).URL()
	one, two := openEngine(t, redisengine.Config{URL: url}), openEngine(t, redisengine.Config{URL: url})
	// stale is none of the reasons.
	const stale = dibs.Reason(dibs.ReasonCount)
	var sale *dibs.Campaign
	shard := openSale(t, one, 100, func(c *dibs.Campaign) { c.Shards, sale = 2, c })
	claim := func(e *redisengine.Engine, user string, shards int, known bool, want dibs.Reason) {
		t.Helper()
		req := dibs.EngineClaim{Shard: shard, UserID: user, Key: 1, Quantity: 1, Shards: shards, OnlyKnown: known}
		d, err := e.Claim(t.Context(), req)
		if want == stale && !errors.Is(err, dibs.ErrStale) || want != stale && (err != nil || d.Outcome != want) {
			t.Errorf("%s by %d shards is told %v, %v", user, shards, d.Outcome, err)
		}
	}
	for _, e := range []*redisengine.Engine{one, two} {
		claim(e, "ann", 2, false, dibs.Granted)
		claim(e, "bob", 4, false, stale)
		claim(e, "bob", 4, true, stale)
	}
	more := *sale
	more.Version, more.Shards, more.EarlierShards = sale.Version+1, 4, []int{2}
	must(t, one.ConfigureShard(t.Context(), &more, shard))
	for _, e := range []*redisengine.Engine{two, one} {
		claim(e, "eve", 2, false, stale)
		claim(e, "ann", 2, false, stale)
		claim(e, "ann", 4, true, dibs.Granted)
		claim(e, "bob", 4, true, dibs.NotFound)
		claim(e, "dan", 4, false, dibs.Granted)
	}
	// An older definition changes nothing.
	must(t, two.ConfigureShard(t.Context(), sale, shard))
	claim(one, "eve", 2, false, stale)
	claim(two, "dan", 4, true, dibs.Granted)
}

// TestShardsOfAVersionBefore opens a shard as a version did that wrote no number of shards.
// It goes on, but it does not say that it does not know a user: a process of before might
// still take them in. Once it is told the number it does.
func TestShardsOfAVersionBefore(t *testing.T) {
	redis := startRedis(t)
	var sale *dibs.Campaign
	shard := openSale(t, openEngine(t, redisengine.Config{URL: redis.URL()}), 100, func(c *dibs.Campaign) { c.Shards, sale = 2, c })
	if _, err := redis.Do(t.Context(), "HDEL", "dibs:{1:0}:meta", "shards"); err != nil {
		t.Fatal(err)
	}
	e := openEngine(t, redisengine.Config{URL: redis.URL()})
	claim := func(user string, shards int, known bool) (dibs.Decision, error) {
		return e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: user, Key: 1, Quantity: 1, Shards: shards, OnlyKnown: known})
	}
	if d, err := claim("ann", 2, false); err != nil || d.Outcome != dibs.Granted {
		t.Fatalf("a claim by the number before: %v, %v", d.Outcome, err)
	}
	for range 2 {
		if d, err := claim("bob", 4, true); !errors.Is(err, dibs.ErrStale) {
			t.Fatalf("whether it knows a user, before it is told the number: %v, %v", d.Outcome, err)
		}
	}
	more := *sale
	more.Version, more.Shards, more.EarlierShards = sale.Version+1, 4, []int{2}
	must(t, e.ConfigureShard(t.Context(), &more, shard))
	for user, want := range map[string]dibs.Reason{"ann": dibs.Granted, "bob": dibs.NotFound} {
		if d, err := claim(user, 4, true); err != nil || d.Outcome != want {
			t.Errorf("%s, once it is told the number: %v, %v", user, d.Outcome, err)
		}
	}
}

// TestShardsThatTheLedgerForgot loads a shard by a ledger that was restored from a backup of
// before the campaign had more shards. The load is refused, since users may have claims on
// shards that it would not look for, and the shard goes on by its own number; once the
// campaign has been given the same shards again, it is loaded.
func TestShardsThatTheLedgerForgot(t *testing.T) {
	e := openEngine(t, redisengine.Config{URL: startRedis(t).URL()})
	var sale *dibs.Campaign
	shard := openSale(t, e, 100, func(c *dibs.Campaign) { c.Shards, sale = 2, c })
	more := *sale
	more.Version, more.Shards, more.EarlierShards = sale.Version+1, 4, []int{2}
	must(t, e.ConfigureShard(t.Context(), &more, shard))
	another := more
	another.Shards = 3
	for _, older := range []*dibs.Campaign{sale, &another} {
		if err := e.Open(t.Context(), older, shard, &dibs.ShardLoad{Epoch: 2, StockLeft: 100}); err == nil {
			t.Errorf("it is loaded by %d shards", older.Shards)
		}
	}
	forgot := *sale
	forgot.Version = more.Version + 3
	if err := e.ConfigureShard(t.Context(), &forgot, shard); err == nil {
		t.Errorf("a later change lowers the number of shards to %d", forgot.Shards)
	}
	claim := func() {
		t.Helper()
		req := dibs.EngineClaim{Shard: shard, UserID: "ann", Key: 1, Quantity: 1, Shards: 4}
		d, err := e.Claim(t.Context(), req)
		if errors.Is(err, dibs.ErrStale) {
			// The refusal that this process knew was older than the claim; it has asked since.
			d, err = e.Claim(t.Context(), req)
		}
		if err != nil || d.Outcome != dibs.Granted {
			t.Errorf("a claim is told %v, %v", d.Outcome, err)
		}
	}
	claim()
	must(t, e.Open(t.Context(), &more, shard, &dibs.ShardLoad{Epoch: 2, StockLeft: 100}))
	claim()
}

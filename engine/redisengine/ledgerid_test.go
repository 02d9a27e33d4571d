package redisengine_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// A Redis belongs to the first ledger that comes, for good: its nodes may come
// again, also after a restart, and another ledger's may not, unless they take
// another database of it.
func TestRedisBelongsToOneLedger(t *testing.T) {
	r := startRedis(t, servers.RedisAlways...)
	e := openEngine(t, redisengine.Config{URL: r.URL()})
	for range 2 {
		must(t, e.Abilities().Bind(t.Context(), "ours"))
	}
	node := openEngine(t, redisengine.Config{URL: r.URL()})
	if err := node.Abilities().Bind(t.Context(), "theirs"); !errors.Is(err, redisengine.ErrForeign) {
		t.Errorf("another ledger is told %v", err)
	}
	must(t, node.Abilities().Bind(t.Context(), "ours"))
	r.Kill()
	must(t, r.Start())
	again := openEngine(t, redisengine.Config{URL: r.URL()})
	if err := again.Abilities().Bind(t.Context(), "theirs"); !errors.Is(err, redisengine.ErrForeign) {
		t.Errorf("after a restart another ledger is told %v", err)
	}
	must(t, again.Abilities().Bind(t.Context(), "ours"))
	must(t, openEngine(t, redisengine.Config{URL: r.URL() + "/1"}).Abilities().Bind(t.Context(), "theirs"))
}

// Of ledgers that come at the same time, one gets the Redis.
func TestOneOfManyLedgersGetsTheRedis(t *testing.T) {
	e := openEngine(t, redisengine.Config{URL: startRedis(t).URL()})
	var bound, foreign atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			switch err := e.Abilities().Bind(t.Context(), fmt.Sprint("ledger-", i)); {
			case err == nil:
				bound.Add(1)
			case errors.Is(err, redisengine.ErrForeign):
				foreign.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if bound.Load() != 1 || foreign.Load() != 15 {
		t.Errorf("%d ledgers were bound, %d were refused", bound.Load(), foreign.Load())
	}
}

// A Redis that does not answer is unavailable, not foreign.
func TestBindNeedsRedis(t *testing.T) {
	r := startRedis(t)
	e := openEngine(t, redisengine.Config{URL: r.URL(), Patience: 100 * time.Millisecond})
	r.Kill()
	if err := e.Abilities().Bind(t.Context(), "ours"); !errors.Is(err, dibs.ErrUnavailable) || errors.Is(err, redisengine.ErrForeign) {
		t.Errorf("without a Redis a node is told %v", err)
	}
}

// A Redis that was emptied is tied again with the first campaign that is loaded,
// and where another ledger was quicker, nothing is loaded.
func TestLoadsBindAgain(t *testing.T) {
	r := startRedis(t)
	ours, theirs := openEngine(t, redisengine.Config{URL: r.URL()}), openEngine(t, redisengine.Config{URL: r.URL()})
	must(t, ours.Abilities().Bind(t.Context(), "ours"))
	shard := dibs.ShardID{Campaign: 1}
	load := func(epoch uint16) error {
		return ours.Open(t.Context(), bigSale(1, 5), shard, &dibs.ShardLoad{Epoch: epoch, StockLeft: 5})
	}
	must(t, load(1))
	flush(t, r.Addr())
	must(t, load(2))
	if err := theirs.Abilities().Bind(t.Context(), "theirs"); !errors.Is(err, redisengine.ErrForeign) {
		t.Errorf("after a load another ledger is told %v", err)
	}
	flush(t, r.Addr())
	must(t, theirs.Abilities().Bind(t.Context(), "theirs"))
	if err := load(3); !errors.Is(err, redisengine.ErrForeign) {
		t.Errorf("a load into the Redis of another ledger is %v", err)
	}
	if _, err := ours.Stats(t.Context(), shard); !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("after it the shard is %v", err)
	}
}

// TestIdentity: a deployment gets an identity once, and has it again with the next campaign
// that is loaded after the server was emptied. Every other database has one of its own.
func TestIdentity(t *testing.T) {
	r := startRedis(t, servers.RedisAlways...)
	e := openEngine(t, redisengine.Config{URL: r.URL()})
	is := func(e *redisengine.Engine, want string) {
		t.Helper()
		got, err := e.Identity(t.Context())
		if err != nil || got != want {
			t.Errorf("the identity is %q, %v; want %q", got, err, want)
		}
	}
	is(e, "")
	for _, fresh := range []string{"first", "second"} {
		if got, err := e.Identify(t.Context(), fresh); err != nil || got != "first" {
			t.Errorf("after %s comes, the identity is %q, %v", fresh, got, err)
		}
	}
	is(openEngine(t, redisengine.Config{URL: r.URL()}), "first")
	is(openEngine(t, redisengine.Config{URL: r.URL() + "/1"}), "")
	_, err := r.Do(t.Context(), "FLUSHALL")
	must(t, err)
	c := bigSale(1, 10)
	must(t, e.Open(t.Context(), c, dibs.ShardID{Campaign: 1}, &dibs.ShardLoad{Epoch: 1, StockLeft: 10}))
	is(openEngine(t, redisengine.Config{URL: r.URL()}), "first")
}

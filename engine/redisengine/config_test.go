package redisengine_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

func TestDurabilityIsWhatRedisSays(t *testing.T) {
	for want, args := range map[string][][]string{
		"durable": {servers.RedisAlways},
		"relaxed": {{"--appendonly", "yes", "--appendfsync", "everysec"}},
		"none": {
			nil,
			{"--appendonly", "yes", "--appendfsync", "no"},
			{"--appendonly", "no", "--appendfsync", "always"},
			slices.Concat(servers.RedisAlways, []string{"--no-appendfsync-on-rewrite", "yes"}),
			slices.Concat(servers.RedisAlways, []string{"--rename-command", "CONFIG", ""}),
		},
	} {
		for _, a := range args {
			e := openEngine(t, redisengine.Config{URL: startRedis(t, a...).URL()})
			if got := e.Durability(); got != want {
				t.Errorf("with %q the durability is %q, want %q", a, got, want)
			}
		}
	}
}

// A change of the settings shows after the next ping.
func TestDurabilityFollowsThePing(t *testing.T) {
	r := startRedis(t, servers.RedisAlways...)
	e, c := openEngine(t, redisengine.Config{URL: r.URL()}), connect(t, r)
	must(t, c.Do(t.Context(), c.B().ConfigSet().ParameterValue().ParameterValue("appendfsync", "everysec").Build()).Error())
	must(t, e.Ping(t.Context()))
	if got := e.Durability(); got != "relaxed" {
		t.Errorf("the durability is %q", got)
	}
}

func TestConfigIsValidated(t *testing.T) {
	for _, cfg := range []redisengine.Config{
		{},
		{URL: "http://localhost"},
		{URL: "redis://localhost:1", Queue: -1},
		{URL: "redis://localhost:1", Deadline: -1},
		{URL: "redis://127.0.0.1:1"},
	} {
		if e, err := redisengine.Open(t.Context(), cfg); err == nil {
			t.Errorf("%+v is opened: %v", cfg, e.Close(t.Context()))
		}
	}
}

func TestFullQueueIsOverloaded(t *testing.T) {
	l := &link{}
	e := openEngine(t, redisengine.Config{URL: startRedis(t).URL(), Dial: l.dial, Queue: 3})
	shard := openSale(t, e, 10_000, nil)
	release := make(chan struct{})
	l.mu.Lock()
	l.held = release
	l.mu.Unlock()
	const n = 10
	answers := make(chan error, n)
	claim := func(i int) {
		_, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: fmt.Sprint(i), Key: 1, Quantity: 1})
		answers <- err
	}
	for i := range n {
		go claim(i)
	}
	// Two calls of one claim or more are under way, three wait; the rest is told
	// so at once.
	full := 0
	for full == 0 {
		err := <-answers
		var e *dibs.Error
		if !errors.As(err, &e) || e.Reason != dibs.Overloaded || e.Effect != dibs.EffectNone {
			t.Fatalf("a claim beyond the queue is %v", err)
		}
		full++
	}
	l.mu.Lock()
	l.held = nil
	l.mu.Unlock()
	close(release)
	granted := 0
	for range n - full {
		if err := <-answers; err == nil {
			granted++
		} else if !errors.Is(err, dibs.ErrOverloaded) {
			t.Errorf("a claim is %v", err)
		}
	}
	onlyOnce(t, e, shard, granted)
}

// A retired shard leaves nothing but its journal, for a while, and where that ended.
func TestRetiredShardsLeaveRedis(t *testing.T) {
	r := startRedis(t)
	c := connect(t, r)
	e := openEngine(t, redisengine.Config{URL: r.URL(), KeepRetired: 50 * time.Millisecond})
	shard := filled(t, e, 3)
	retire(t, e, shard)
	keys := func() int64 {
		n, err := c.Do(t.Context(), c.B().Dbsize().Build()).ToInt64()
		must(t, err)
		return n
	}
	if n := keys(); n > 3 {
		t.Errorf("%d keys are left, want the journal, its end and the list of shards at most", n)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for keys() > 1 {
		if _, err := e.JournalShards(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
	if end, err := e.JournalEnd(t.Context(), shard); err != nil || end != (dibs.Cursor{Epoch: 1, Seq: 4}) {
		t.Errorf("the end of a journal that has expired is %s, %v", end, err)
	}
	if ttl, err := c.Do(t.Context(), c.B().Pttl().Key("dibs:{3:0}:end").Build()).ToInt64(); err != nil || ttl <= 0 {
		t.Errorf("where it ended is kept for %d ms, %v", ttl, err)
	}
	// It can be opened again, and its journal does not expire then.
	must(t, e.Open(t.Context(), bigSale(3, 5), shard, &dibs.ShardLoad{Epoch: 2, Position: dibs.Cursor{Epoch: 1, Seq: 4}, StockLeft: 5}))
	ttl, err := c.Do(t.Context(), c.B().Pttl().Key("dibs:{3:0}:journal").Build()).ToInt64()
	if err != nil || ttl != -1 {
		t.Errorf("an open shard's journal expires in %d ms, %v", ttl, err)
	}
	retire(t, e, shard)
	must(t, e.Open(t.Context(), bigSale(3, 5), shard, &dibs.ShardLoad{Epoch: 3, Position: dibs.Cursor{Epoch: 2, Seq: 1}, StockLeft: 5}))
	if ttl, err = c.Do(t.Context(), c.B().Pttl().Key("dibs:{3:0}:journal").Build()).ToInt64(); err != nil || ttl != -1 {
		t.Errorf("the journal of a shard that is open again expires in %d ms, %v", ttl, err)
	}
}

// usedMemory is what Redis counts as allocated.
func usedMemory(t *testing.T, c rueidis.Client) int64 {
	t.Helper()
	info, err := c.Do(t.Context(), c.B().Info().Section("memory").Build()).ToString()
	must(t, err)
	_, after, _ := strings.Cut(info, "used_memory:")
	value, _, _ := strings.Cut(after, "\r\n")
	n, err := strconv.ParseInt(value, 10, 64)
	must(t, err)
	return n
}

// mostOfYardstick is how much of the yardstick's memory a grant may take.
const mostOfYardstick = 0.5

// TestMemoryOfAGrant fills a sale and the yardstick's queues with the same
// users, and compares what stays in Redis after the journal was trimmed.
func TestMemoryOfAGrant(t *testing.T) {
	const n = 50_000
	r := startRedis(t)
	c := connect(t, r)
	before := usedMemory(t, c)
	grabbed(t, c, n)
	theirs := float64(usedMemory(t, c)-before) / n
	must(t, c.Do(t.Context(), c.B().Flushall().Build()).Error())

	e := openEngine(t, redisengine.Config{URL: r.URL()})
	shard := dibs.ShardID{Campaign: 1}
	must(t, e.Open(t.Context(), bigSale(1, n), shard, &dibs.ShardLoad{Epoch: 1, StockLeft: n}))
	before = usedMemory(t, c)
	claims(t, e, shard, 512, n)
	s, err := e.Stats(t.Context(), shard)
	must(t, err)
	must(t, e.TrimJournal(t.Context(), shard, s.Head, time.Now().Add(time.Hour)))
	ours := float64(usedMemory(t, c)-before) / n
	t.Logf("%.1f bytes a grant, the yardstick has %.1f: %.2f of it", ours, theirs, ours/theirs)
	if s.Granted != n || ours > mostOfYardstick*theirs {
		t.Errorf("%d grants take %.1f bytes each, more than %.2f of the yardstick's %.1f", s.Granted, ours, mostOfYardstick, theirs)
	}
}

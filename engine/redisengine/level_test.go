package redisengine_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// claimers are users of one shard through several engines.
type claimers struct {
	*testing.T
	engines []*redisengine.Engine
	shard   dibs.ShardID
	n       int
}

// ask has a new user claim through an engine.
func (c *claimers) ask(e *redisengine.Engine, keyed bool) dibs.Reason {
	c.Helper()
	c.n++
	req := dibs.EngineClaim{Shard: c.shard, UserID: fmt.Sprint("new-", c.n), Quantity: 1}
	if keyed {
		req.Key = uint64(c.n)
	}
	d, err := e.Claim(c.Context(), req)
	if err != nil {
		c.Fatalf("a claim is %v", err)
	}
	return d.Outcome
}

// until waits until claims through every engine have an outcome, with keys and
// without, and returns how long that took.
func (c *claimers) until(want dibs.Reason) time.Duration {
	c.Helper()
	begun := time.Now()
	for _, e := range c.engines {
		for _, keyed := range []bool{true, false} {
			until(c.T, "claims that are "+want.String(), func() bool { return c.ask(e, keyed) == want })
		}
	}
	return time.Since(begun)
}

// wrongSettings are the subjects of the settings that an engine finds wrong.
func wrongSettings(e *redisengine.Engine) string {
	_, settings := e.Abilities().Level()
	return strings.Join(wrongIn(settings), " ")
}

// A setting that takes the level away is noticed by every process within a second:
// nothing is granted, repeats are answered, and claims go on by themselves when it is
// put right.
func TestLostLevelsAreRefused(t *testing.T) {
	for _, c := range []struct{ setting, wrong, right string }{
		{"appendfsync", "everysec", "always"},
		{"appendfsync", "no", "always"},
		{"no-appendfsync-on-rewrite", "yes", "no"},
		{"maxmemory-policy", "allkeys-lru", "noeviction"},
		{"appendonly", "no", "yes"},
	} {
		t.Run(c.setting+" "+c.wrong, func(t *testing.T) {
			t.Parallel()
			r := startRedis(t, servers.RedisAlways...)
			set := func(value string) {
				t.Helper()
				_, err := r.Do(t.Context(), "CONFIG", "SET", c.setting, value)
				must(t, err)
			}
			u := &claimers{T: t, shard: dibs.ShardID{Campaign: 1}}
			for range 2 {
				u.engines = append(u.engines, openEngine(t, redisengine.Config{URL: r.URL(), Durability: dibs.LevelDurable}))
			}
			openSale(t, u.engines[0], 1_000_000, nil)
			yes := dibs.EngineClaim{Shard: u.shard, UserID: "ann", Key: 7, Quantity: 1}
			_, err := u.engines[0].Claim(t.Context(), yes)
			must(t, err)
			quickest := time.Hour
			// On a busy machine some rounds take longer.
			for n := 0; n < 2 || quickest > time.Second && n < 10; n++ {
				u.until(dibs.Granted)
				set(c.wrong)
				quickest = min(quickest, u.until(dibs.Unavailable))
				for _, e := range u.engines {
					if got := wrongSettings(e); got != c.setting {
						t.Errorf("found wrong is %q", got)
					}
					var lacks *redisengine.CheckError
					if err := e.Ping(t.Context()); !errors.As(err, &lacks) {
						t.Errorf("a ping says %v", err)
					}
					if d, err := e.Claim(t.Context(), yes); err != nil || d.Outcome != dibs.Granted || !d.Replayed {
						t.Errorf("the repeat is %+v, %v", d, err)
					}
					other := yes
					other.Quantity = 2
					if d, err := e.Claim(t.Context(), other); err != nil || d.Outcome != dibs.KeyReused {
						t.Errorf("the key with another quantity is %+v, %v", d, err)
					}
				}
				set(c.right)
			}
			if quickest > time.Second {
				t.Errorf("claims are granted for %s after %s is %s", quickest, c.setting, c.wrong)
			}
			u.until(dibs.Granted)
			if got := wrongSettings(u.engines[0]); got != "" {
				t.Errorf("put right, found wrong is %q", got)
			}
		})
	}
}

// At replicated, claims are refused when the replicas are gone, before anything is
// decided that none of them has.
func TestLostReplicasAreRefused(t *testing.T) {
	master := startRedis(t, asMaster...)
	replica := replicaOf(t, master)
	patient := redisengine.Config{URL: master.URL(), Durability: dibs.LevelReplicated, Deadline: 20 * time.Second, Patience: 20 * time.Second}
	shard := openSale(t, openEngine(t, patient), 1_000_000, nil)
	e := openEngine(t, redisengine.Config{URL: master.URL(), Durability: dibs.LevelReplicated, Patience: time.Second})
	n := 0
	answers := func(want dibs.Reason) {
		t.Helper()
		until(t, "claims that are "+want.String(), func() bool {
			// No replica confirms a decision of the moment before a change.
			n++
			d, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: fmt.Sprint("new-", n), Quantity: 1})
			return err == nil && d.Outcome == want
		})
	}
	answers(dibs.Granted)
	replica.Kill()
	answers(dibs.Unavailable)
	if got := wrongSettings(e); got != "replicas" {
		t.Errorf("found wrong is %q", got)
	}
	must(t, replica.Start())
	host, port := splitAddr(t, master.Addr())
	_, err := replica.Do(t.Context(), "REPLICAOF", host, fmt.Sprint(port))
	must(t, err)
	answers(dibs.Granted)
}

// With warn, claims are granted all the same, and it shows; but not on a Redis that
// would evict stock. The log says what to set, once for each change.
func TestLostLevelsAreGoneOnWith(t *testing.T) {
	r, log := startRedis(t, servers.RedisAlways...), &lines{}
	e := openEngine(t, redisengine.Config{
		URL: r.URL(), Durability: dibs.LevelDurable, DurabilityLost: dibs.WarnLost, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	u := &claimers{T: t, engines: []*redisengine.Engine{e}, shard: openSale(t, e, 1_000_000, nil)}
	set := func(setting, value string) {
		t.Helper()
		_, err := r.Do(t.Context(), "CONFIG", "SET", setting, value)
		must(t, err)
	}
	set("appendfsync", "everysec")
	until(t, "a warning", func() bool { return wrongSettings(e) == "appendfsync" })
	u.until(dibs.Granted)
	must(t, e.Ping(t.Context()))
	if e.Durability() != dibs.LevelRelaxed {
		t.Errorf("the level given is %s", e.Durability())
	}
	set("maxmemory-policy", "allkeys-lru")
	u.until(dibs.Unavailable)
	if err := e.Ping(t.Context()); err == nil {
		t.Error("a Redis that evicts answers a ping")
	}
	set("maxmemory-policy", "noeviction")
	u.until(dibs.Granted)
	set("appendfsync", "always")
	until(t, "the level", func() bool { return wrongSettings(e) == "" })
	until(t, "a line about it", func() bool { return strings.Contains(log.String(), "Redis gives its level again") })
	for text, want := range map[string]int{
		"claims are granted all the same": 2, "claims are refused until it does": 1, "Redis gives its level again": 1,
		"appendfsync is everysec, want always: set appendfsync always": 3, "set maxmemory-policy noeviction": 1,
	} {
		if n := strings.Count(log.String(), text); n != want {
			t.Errorf("the log has %q %d times, want %d:\n%s", text, n, want, log)
		}
	}
}

// A level that is already lost is no ground to open on, with either rule.
func TestLostLevelsAreNotOpenedOn(t *testing.T) {
	r := startRedis(t, "--appendonly", "yes", "--appendfsync", "everysec")
	for _, rule := range append(dibs.LostRules(), "", "ignore") {
		e, err := redisengine.Open(t.Context(), redisengine.Config{URL: r.URL(), DurabilityLost: rule})
		if err == nil {
			t.Errorf("with the rule %q it is opened: %v", rule, e.Close(t.Context()))
		} else if rule == "ignore" && !strings.Contains(err.Error(), "not one of refuse, warn") {
			t.Errorf("the rule %q is refused with %v", rule, err)
		}
	}
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

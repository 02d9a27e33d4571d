package redisengine_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/enginetest"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/badnet"
	"github.com/dibs-dev/dibs/internal/servers"
)

// refusals counts claims of new users that are refused with the effect none
// until there are n, and fails on every other error; a yes ends it early.
func (r *rush) refusals(n int, code string) {
	r.t.Helper()
	node := (*r.nodes.Load())[0]
	for i := 0; n > 0; i++ {
		if i > 100_000 {
			r.t.Fatalf("no %s in %d claims: this does not test anything", code, i)
		}
		user := r.users.Add(1)
		_, err := node.Claim(r.t.Context(), dibs.EngineClaim{
			Shard: r.shard, UserID: "user-" + strconv.FormatInt(user, 10), Key: uint64(user), Quantity: 1,
		})
		var e *dibs.Error
		switch {
		case err == nil:
		case errors.As(err, &e) && e.Reason == dibs.Unavailable && e.Effect == dibs.EffectNone && strings.Contains(err.Error(), code):
			n--
		case errors.As(err, &e) && e.Effect == dibs.EffectNone:
			// It was late on a busy machine, or waited too long: without an effect all the same.
		default:
			r.t.Fatalf("a claim is %v, want one that %s refuses", err, code)
		}
	}
}

// TestMemoryRunsOut fills Redis up to its bound under load: claims are refused
// with no effect, nothing is half done, and all goes on with memory again.
func TestMemoryRunsOut(t *testing.T) {
	server := startRedis(t, servers.RedisAlways...)
	node := openEngine(t, redisengine.Config{URL: server.URL(), Durability: dibs.LevelDurable, Patience: time.Second})
	n := rounds(t, 2, 50)
	r := newRush(t, 1, 20_000+int64(n)*10_000, node)
	r.begin(crashClients)
	for range n {
		r.more(leastAnswered)
		info, err := server.Info(t.Context(), "memory")
		must(t, err)
		used, err := strconv.Atoi(info["used_memory"])
		must(t, err)
		_, err = server.Do(t.Context(), "CONFIG", "SET", "maxmemory", strconv.Itoa(used+100_000))
		must(t, err)
		r.refusals(50, "OOM")
		_, err = server.Do(t.Context(), "CONFIG", "SET", "maxmemory", "0")
		must(t, err)
		r.tally.faults++
		r.more(leastAnswered)
	}
	r.end()
	got := r.check()
	if got.lost > 0 || got.opened > 0 {
		t.Errorf("out of memory: %v", got)
	}
	r.repeats()
	r.sellOut()
	t.Log(got)
}

// TestBusyServer has somebody's script run for ever: claims wait for their
// patience and are refused with no effect, and go on when it is killed.
func TestBusyServer(t *testing.T) {
	server := startRedis(t, "--busy-reply-threshold", "50")
	node := openEngine(t, redisengine.Config{URL: server.URL(), Patience: 500 * time.Millisecond, Deadline: 10 * time.Second})
	r := newRush(t, 1, 10_000, node)
	r.begin(crashClients)
	r.more(leastAnswered)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := server.Do(ctx, "EVAL", "while true do end", "0"); err == nil {
			t.Error("the endless script has ended by itself")
		}
	}()
	until(t, "BUSY", func() bool {
		_, err := server.Do(t.Context(), "GET", "any")
		return err != nil && strings.Contains(err.Error(), "BUSY")
	})
	begun := time.Now()
	r.refusals(1, "BUSY")
	if took := time.Since(begun); took < 400*time.Millisecond {
		t.Errorf("a claim was not patient with a busy server: %v", took)
	}
	_, err := server.Do(t.Context(), "SCRIPT", "KILL")
	must(t, err)
	<-ended
	cancel()
	r.more(leastAnswered)
	r.end()
	if got := r.check(); got.lost > 0 {
		t.Errorf("behind a busy script: %v", got)
	}
	r.sellOut()
}

// through dials a proxy whatever the address.
func through(p *badnet.Proxy) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", p.Addr())
	}
}

// toxics are what a network may do to a link, in either direction.
var toxics = []struct {
	kind       string
	attributes map[string]int64
}{
	{"reset_peer", map[string]int64{"timeout": 20}},
	{"timeout", map[string]int64{"timeout": 100}},
	{"timeout", map[string]int64{"timeout": 0}},
	{"latency", map[string]int64{"latency": 50, "jitter": 40}},
	{"slicer", map[string]int64{"average_size": 60, "size_variation": 50, "delay": 100}},
	{"bandwidth", map[string]int64{"rate": 100}},
	{"limit_data", map[string]int64{"bytes": 20_000}},
}

// TestToxics has every toxic on the link under load: no grant is lost or given
// twice, and what was unknown is found by its repeat.
func TestToxics(t *testing.T) {
	t.Parallel()
	rng := dice(t)
	server := startRedis(t, servers.RedisAlways...)
	proxy, err := badnet.Start(server.Addr())
	must(t, err)
	t.Cleanup(proxy.Stop)
	node := openEngine(t, redisengine.Config{
		URL: server.URL(), Dial: through(proxy), Durability: dibs.LevelDurable, Deadline: 100 * time.Millisecond, Patience: 300 * time.Millisecond,
	})
	r := newRush(t, 1, 3_000_000, node)
	r.begin(crashClients)
	for range rounds(t, 1, 100) {
		for _, toxic := range toxics {
			for _, stream := range []string{"upstream", "downstream"} {
				r.more(leastAnswered)
				must(t, proxy.Poison("toxic", toxic.kind, stream, toxic.attributes))
				pause(t.Context(), time.Duration(100+rng.IntN(250))*time.Millisecond)
				proxy.Heal(t.Context())
				r.tally.faults++
			}
		}
	}
	r.more(leastAnswered)
	r.end()
	got := r.check()
	if got.lost > 0 || got.opened > 0 {
		t.Errorf("by a bad network: %v", got)
	}
	r.repeats()
	t.Log(got)
}

// TestEmptyServerIsNeverNew takes everything away from under the load, by
// FLUSHALL or by a restart with empty folders: nothing is granted before the
// shard was loaded from the ledger, and what the ledger has is kept.
func TestEmptyServerIsNeverNew(t *testing.T) {
	for name, empty := range map[string]func(r *servers.Redis) error{
		"FLUSHALL": func(r *servers.Redis) error {
			_, err := r.Do(t.Context(), "FLUSHALL")
			return err
		},
		"restart": func(r *servers.Redis) error {
			r.Kill()
			return errors.Join(os.RemoveAll(filepath.Join(r.Dir(), "appendonlydir")), r.Start())
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := startRedis(t, servers.RedisAlways...)
			node := openEngine(t, redisengine.Config{URL: server.URL(), Deadline: 100 * time.Millisecond, Patience: time.Second})
			n := rounds(t, 2, 20)
			r := newRush(t, 1, 20_000+int64(n)*8000, node)
			for range n {
				r.begin(crashClients)
				r.more(leastAnswered)
				r.settle()
				kept := r.book.Position()
				must(t, empty(server))
				r.tally.faults++
				r.more(leastAnswered)
				r.end()
				if r.check().opened == 0 {
					t.Error("an empty server answers")
				}
				if r.book.Position().Before(kept) {
					t.Error("the ledger has gone back")
				}
			}
			r.repeats()
			r.sellOut()
			t.Log(r.check())
		})
	}
}

// shaky is an engine whose link loses answers, but not while a shard is opened.
type shaky struct {
	*redisengine.Engine
	l    *link
	calm atomic.Int64
}

func (e *shaky) Open(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, load *dibs.ShardLoad) error {
	e.calm.Add(1)
	defer e.calm.Add(-1)
	e.l.answers.Store(0)
	// A connection that is broken already shows now: each of them is used.
	for {
		_, err := e.JournalEnd(ctx, id)
		_, errList := e.JournalShards(ctx)
		if err == nil && errList == nil || ctx.Err() != nil {
			break
		}
	}
	return e.Engine.Open(ctx, c, id, load)
}

// shakyState opens engines on one server, behind a link that loses an answer,
// and with it its connection, every few milliseconds.
type shakyState struct {
	redisState
	every time.Duration
	lost  *atomic.Int64
	stop  chan struct{}
}

func (s *shakyState) Open(ctx context.Context) (dibs.Engine, error) {
	l := &link{}
	eng, err := redisengine.Open(ctx, redisengine.Config{
		URL: s.redis.URL(), Dial: l.dial, Durability: dibs.LevelNone,
		Deadline: 50 * time.Millisecond, Patience: time.Second,
	})
	if err != nil {
		return nil, err
	}
	e := &shaky{Engine: eng, l: l}
	go func() {
		for {
			select {
			case <-s.stop:
				return
			case <-time.After(s.every):
				if e.calm.Load() == 0 {
					l.answers.Store(1)
					s.lost.Add(1)
				}
			}
		}
	}()
	return e, nil
}

// TestLinearizableWithLostAnswers checks short histories, of which many
// operations have an unknown outcome, behind a link that loses answers.
func TestLinearizableWithLostAnswers(t *testing.T) {
	var lost atomic.Int64
	f := enginetest.Factory{OwnClock: true, New: func(tb testing.TB, _ func() time.Time) enginetest.State {
		// More often, and the search for an order of so many unknown operations would
		// not end.
		s := &shakyState{
			redisState: redisState{tb: tb, redis: startRedis(tb)}, every: 60 * time.Millisecond, lost: &lost, stop: make(chan struct{}),
		}
		tb.Cleanup(func() { close(s.stop) })
		return s
	}}
	n := rounds(t, 20, 1)
	t.Setenv("ENGINETEST_HISTORIES", strconv.Itoa(n))
	for _, c := range enginetest.Checks() {
		if strings.HasPrefix(c.Name, "linear/") {
			t.Run(c.Name, func(t *testing.T) {
				if err := c.Run(t, f); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if lost.Load() < int64(n/20) {
		t.Errorf("only %d answers were lost in %d histories: this does not test anything", lost.Load(), n)
	}
	t.Logf("%d answers, with their connections, were lost in %d histories", lost.Load(), n)
}

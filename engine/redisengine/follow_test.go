package redisengine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// until asks again and again until done, for at most ten seconds.
func (b *bench) until(what string, done func() bool) {
	b.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-limit.C:
			b.Fatalf("waited for %s in vain", what)
		case <-tick.C:
		}
	}
}

// claim asks as callers do.
func (b *bench) claim(req dibs.EngineClaim) dibs.Decision {
	b.Helper()
	req.Shard = b.shard
	d, err := b.e.Claim(b.Context(), req)
	if err != nil {
		b.Fatalf("the claim of %s: %v", req.UserID, err)
	}
	return d
}

// refusesHere claims until refusals are given without asking.
func (b *bench) refusesHere() {
	b.Helper()
	b.until("refusals without asking", func() bool {
		b.claim(ask("nobody", 1, 1))
		return b.l.follower.refusing.Load() != nil
	})
}

// calls is how many commands the server has run, by name.
func (b *bench) calls() map[string]string {
	b.Helper()
	r, err := b.e.p.redis.Ask(b.Context(), "INFO", "commandstats")
	if err != nil {
		b.Fatal(err)
	}
	counts := map[string]string{}
	for line := range strings.Lines(r.Text) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if n, _, _ := strings.Cut(rest, ","); ok {
			counts[name] = n
		}
	}
	return counts
}

func number(s string) (n int) {
	// A text that is no number is 0.
	_, _ = fmt.Sscan(s, &n)
	return n
}

// A shard that is sold out refuses a crowd without a word to Redis, and finds
// the first results of those who have some.
func TestRefusalsStayHere(t *testing.T) {
	b := newBench(t, 50, func(c *dibs.Campaign, _ *dibs.ShardLoad) { c.LimitPerUser = 2 })
	var first []dibs.Decision
	for i := range 50 {
		first = append(first, b.claim(ask(fmt.Sprint("holder-", i), uint64(i+1), 1)))
	}
	b.refusesHere()
	before := b.calls()
	const n = 100_000
	users := make([]string, 1000)
	for i := range users {
		users[i] = fmt.Sprint("user-", i)
	}
	begun := time.Now()
	for i := range n {
		req := ask(users[i%len(users)], uint64(i%2*7), 1)
		if d := b.claim(req); d.Outcome != dibs.SoldOut || d.Remaining != 0 {
			t.Fatalf("refusal %d is %+v", i, d)
		}
	}
	took := time.Since(begun)
	after := b.calls()
	// By chance one of a hundred users is taken for a holder, and the shard is read
	// again while it is refused for.
	if number(before["evalsha"]) == 0 {
		t.Fatalf("the server counts no calls: %v", before)
	}
	asked := number(after["evalsha"]) - number(before["evalsha"])
	if most := n/2/30 + 3*int(took/renewAfter+2); asked > most {
		t.Errorf("%d refusals took %d calls, more than %d", n, asked, most)
	}
	keyless := ask("user-1", 0, 1)
	keyless.Shard = b.shard
	allocs := testing.AllocsPerRun(1000, func() { _, _ = b.e.Claim(context.Background(), keyless) })
	keyed := ask("user-1", 7, 1)
	keyed.Shard = b.shard
	allocs += testing.AllocsPerRun(1000, func() { _, _ = b.e.Claim(context.Background(), keyed) })
	if allocs != 0 && b.l.follower.refusing.Load() != nil && !b.l.follower.refusing.Load().holders.may("user-1") {
		t.Errorf("a refusal takes %v allocations", allocs)
	}
	for i, f := range first {
		user := fmt.Sprint("holder-", i)
		if d := b.claim(ask(user, uint64(i+1), 1)); !d.Replayed || d.Grant.Position != f.Grant.Position {
			t.Errorf("the repeat of %s is %+v", user, d)
		}
		if d := b.claim(ask(user, uint64(i+1), 2)); d.Outcome != dibs.KeyReused {
			t.Errorf("the key of %s with another quantity is %v", user, d.Outcome)
		}
		if d := b.claim(ask(user, 999, 1)); d.Outcome != dibs.SoldOut {
			t.Errorf("another claim of %s is %v", user, d.Outcome)
		}
		only := ask(user, uint64(i+1), 1)
		only.OnlyRepeat = true
		if d := b.claim(only); !d.Replayed {
			t.Errorf("the repeat alone of %s is %+v", user, d)
		}
	}
	only := ask("user-1", 5, 1)
	only.OnlyRepeat = true
	if d := b.claim(only); d.Outcome != dibs.Overloaded {
		t.Errorf("only a repeat of nothing is %v", d.Outcome)
	}
}

// A node that has just granted something refuses its holder no more by what it
// knew before, also when Redis' news of the change has not arrived yet.
func TestAGrantEndsRefusals(t *testing.T) {
	b := newBench(t, 100, nil)
	stale := &refusing{empty: true, ends: time.Now().Add(time.Hour).UnixMilli(), until: b.e.p.localMS() + time.Hour.Milliseconds(), holders: newHolders(1)}
	refused := 0
	// The news of the opening may come meanwhile, and end what is known here: once.
	for i := range 20 {
		req := ask(fmt.Sprint("user-", i), 1, 1)
		b.l.follower.refusing.Store(stale)
		if b.claim(req).Outcome == dibs.SoldOut {
			refused++
		}
		// This one was on its way before.
		first := b.decide(req)[0]
		if d := b.claim(req); !d.Replayed || d.Grant.Position != first.Grant.Position {
			t.Errorf("the repeat of the grant %+v is %v", first.Grant, d.Outcome)
		}
	}
	if refused < 10 {
		t.Errorf("what is known here has refused %d of 20 claims", refused)
	}
}

// Holders that are added after a first reading are known too, by the journal
// or, where that is trimmed, from the holdings.
func TestHoldersAreKeptUp(t *testing.T) {
	for _, trimmed := range []bool{false, true} {
		b := newBench(t, 3000, nil)
		for i := range 3000 {
			if i%600 == 599 {
				// In between it is paused, so that holders are read each time.
				b.pause(2+int64(i), dibs.PausedState)
				b.refusesHere()
				if trimmed {
					s, err := b.e.Stats(t.Context(), b.shard)
					if err == nil {
						err = b.e.TrimJournal(t.Context(), b.shard, s.Head, time.Now().Add(time.Hour))
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				b.pause(3+int64(i), dibs.Published)
			}
			if i%100 == 0 {
				reqs := make([]dibs.EngineClaim, 100)
				for j := range reqs {
					reqs[j] = ask(fmt.Sprint("user-", i+j), 1, 1)
				}
				b.decide(reqs...)
			}
		}
		b.refusesHere()
		for i := range 3000 {
			if d := b.claim(ask(fmt.Sprint("user-", i), 1, 1)); !d.Replayed {
				t.Fatalf("trimmed %v: the repeat of user %d is %v", trimmed, i, d.Outcome)
			}
		}
		h := b.l.follower.refusing.Load()
		if h == nil || h.holders == nil {
			continue
		}
		others := 0
		for i := range 10_000 {
			if h.holders.may(fmt.Sprint("other-", i)) {
				others++
			}
		}
		if others > 300 {
			t.Errorf("trimmed %v: %d of 10000 others are taken for holders", trimmed, others)
		}
	}
}

// pause sets the sale's state.
func (b *bench) pause(version int64, state dibs.State) {
	b.Helper()
	c := openCampaign(1)
	c.State, c.Version = state, version
	if err := b.e.Configure(b.Context(), c); err != nil {
		b.Fatal(err)
	}
}

// beside opens another engine, with its lane, on the same server.
func (b *bench) beside() *bench {
	b.Helper()
	e, err := Open(b.Context(), Config{URL: b.url, Durability: dibs.LevelNone})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	o := &bench{T: b.T, e: e, shard: b.shard, url: b.url}
	if o.l, err = e.lanes.lane(b.shard); err != nil {
		b.Fatal(err)
	}
	return o
}

// Stock that comes back on one node is granted on every other one at once.
func TestChangesReopenEverywhere(t *testing.T) {
	a := newBench(t, 1, nil)
	b := a.beside()
	g := a.claim(ask("ann", 1, 1)).Grant
	seller := 0
	for name, change := range map[string]func() error{
		"a release": func() error { return a.e.Release(t.Context(), dibs.Release{Claim: g.Position, Epoch: 1}) },
		"a restock": func() error {
			return a.e.Adjust(t.Context(), dibs.Adjustment{Shard: a.shard, Epoch: 1, Ref: "up", Delta: 1})
		},
	} {
		a.refusesHere()
		b.refusesHere()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if a.l.follower.refusing.Load() != nil {
			t.Errorf("after %s the node that did it refuses still", name)
		}
		b.until("the other node", func() bool { return b.l.follower.refusing.Load() == nil })
		seller++
		if d := b.claim(ask(fmt.Sprint("new-", seller), 1, 1)); d.Outcome != dibs.Granted {
			t.Errorf("after %s a claim on the other node is %v", name, d.Outcome)
		}
	}
	b.refusesHere()
	a.pause(2, dibs.PausedState)
	b.until("the pause", func() bool { return b.claim(ask("zoe", 1, 1)).Outcome == dibs.Paused })
	b.refusesHere()
	a.pause(3, dibs.Published)
	b.until("the end of the pause", func() bool { return b.claim(ask("zoe", 1, 1)).Outcome == dibs.SoldOut })
	b.refusesHere()
	a.pause(4, dibs.EndedState)
	if err := a.e.Retire(t.Context(), a.shard); err != nil {
		t.Fatal(err)
	}
	b.until("the end of the shard", func() bool {
		_, err := b.e.Claim(t.Context(), shardAsk(b.shard, "zoe"))
		return err != nil
	})
}

// A refusal that was read before a change and arrives after it is not used.
func TestLateReadingIsNotRefusedWith(t *testing.T) {
	b := newBench(t, 1, nil)
	b.decide(ask("ann", 1, 1))
	at := dibs.Cursor{Epoch: 1, Seq: 2}
	h, err := b.l.readHolders(t.Context(), at, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.e.p.redis = &heardLate{Server: b.e.p.redis, do: b.l.follower.lift}
	b.l.follower.readRefusing(h)
	if b.l.follower.refusing.Load() != nil {
		t.Error("a reading from before a change is refused with")
	}
	// Redis may tell of ann's grant only now, and lift it once more.
	b.until("a reading after the change that is refused with", func() bool {
		b.l.follower.readRefusing(h)
		return b.l.follower.refusing.Load() != nil
	})
}

// heardLate does something once, after the shard was read and before that is
// heard.
type heardLate struct {
	conn.Server
	do func()
}

func (h *heardLate) Run(ctx context.Context, s *conn.Script, keys []string, args ...string) (conn.Reply, error) {
	r, err := h.Server.Run(ctx, s, keys, args...)
	if do := h.do; s == conn.WatchScript && do != nil {
		h.do = nil
		do()
	}
	return r, err
}

// A lost connection, or a flush, may have lost a change: nothing is refused
// with what was read before.
func TestLostConnectionLifts(t *testing.T) {
	b := newBench(t, 1, nil)
	b.decide(ask("ann", 1, 1))
	b.refusesHere()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{strings.TrimPrefix(b.url, "redis://")}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read := b.l.follower.refusing.Load()
	if err := c.Do(t.Context(), c.B().ClientKill().TypeNormal().SkipmeYes().Build()).Error(); err != nil {
		t.Fatal(err)
	}
	b.until("the loss", func() bool { return b.l.follower.refusing.Load() != read })
	b.refusesHere()
	if err := c.Do(t.Context(), c.B().Flushall().Build()).Error(); err != nil {
		t.Fatal(err)
	}
	b.until("the flush", func() bool { return b.l.follower.refusing.Load() == nil })
}

// Without news of changes nothing is refused here.
func TestOldProtocolAsksAlways(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir(), "--rename-command", "HELLO", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	b := newBenchOn(t, r, 1, nil)
	if b.e.p.redis.Follows() {
		t.Fatal("a server of RESP2 tells of changes")
	}
	b.decide(ask("ann", 1, 1))
	for i := range 100 {
		if d := b.claim(ask(fmt.Sprint(i), 1, 1)); d.Outcome != dibs.SoldOut {
			t.Errorf("the refusal is %v", d.Outcome)
		}
	}
	if b.l.follower.refusing.Load() != nil {
		t.Error("without news of changes it refuses by itself")
	}
}

// A claim for more than is left tells nobody anything.
func TestRefusedQuantityWritesNoState(t *testing.T) {
	b := newBench(t, 3, func(c *dibs.Campaign, _ *dibs.ShardLoad) { c.LimitPerUser = 3 })
	state := func() string {
		r, err := b.e.p.redis.Call(t.Context(), "GET", b.l.keys.State)
		if err != nil {
			t.Fatal(err)
		}
		return r.Text
	}
	opened := state()
	b.decide(ask("ann", 1, 2), ask("bob", 1, 2))
	if got := state(); got != opened || got == "" {
		t.Errorf("with one left the state key is %q, after opening it was %q", got, opened)
	}
	if d := b.claim(ask("cid", 1, 1)); d.Outcome != dibs.Granted {
		t.Errorf("the last unit is %v", d.Outcome)
	}
	if got := state(); got == opened {
		t.Error("with none left the state key is the same")
	}
}

// Not started and ended are said here only when that is sure by Redis' clock.
func TestWindowIsRefusedBeyondTheClocksError(t *testing.T) {
	const local = 1000
	in := func(change func(r *refusing)) string {
		r := &refusing{starts: 50_000, ends: 60_000, low: 49_000, high: 49_020, until: 2000}
		change(r)
		if outcome, ok := r.outcome(local); ok {
			return outcome.String()
		}
		return "asks"
	}
	for name, c := range map[string]struct {
		want   string
		change func(r *refusing)
	}{
		"open":                      {"asks", func(r *refusing) { r.starts = 49_000 }},
		"surely not started":        {"not_started", func(r *refusing) { r.starts = 50_021 }},
		"perhaps started":           {"asks", func(r *refusing) { r.starts = 50_020 }},
		"empty, perhaps started":    {"asks", func(r *refusing) { r.starts, r.empty = 50_020, true }},
		"empty, surely started":     {"sold_out", func(r *refusing) { r.starts, r.empty = 50_000, true }},
		"empty, perhaps ended":      {"asks", func(r *refusing) { r.ends, r.empty = 50_020, true }},
		"perhaps ended":             {"asks", func(r *refusing) { r.ends = 50_001 }},
		"surely ended":              {"ended", func(r *refusing) { r.ends = 50_000 }},
		"paused before its start":   {"paused", func(r *refusing) { r.starts, r.closed = 90_000, format.IsPaused }},
		"ended by its state":        {"ended", func(r *refusing) { r.closed = format.IsEnded }},
		"paused, read too long ago": {"asks", func(r *refusing) { r.closed, r.until = format.IsPaused, local }},
	} {
		if got := in(c.change); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A shard that is taken out is told of at once, be it for a new load, because
// its history has forked, or for good.
func TestShutShardsAreTold(t *testing.T) {
	b := newBench(t, 1, nil)
	b.decide(ask("ann", 1, 1))
	told := func(how string) {
		t.Helper()
		r, err := b.e.p.redis.Call(t.Context(), "EXISTS", b.l.keys.State)
		if err != nil || r.Number != 0 {
			t.Errorf("%s, the state key is there still (%d), %v", how, r.Number, err)
		}
	}
	open := func(epoch uint16) *opening {
		return &opening{l: b.l, ledger: &b.e.ledger, token: b.e.p.token(), load: &dibs.ShardLoad{Epoch: epoch, StockLeft: 1}, def: format.Define(openCampaign(1))}
	}
	if err := open(2).shut(t.Context()); err != nil {
		t.Fatal(err)
	}
	told("being loaded")
	if err := b.e.Open(t.Context(), openCampaign(1), b.shard, open(3).load); err != nil {
		t.Fatal(err)
	}
	if err := b.l.expel(t.Context(), dibs.Cursor{Epoch: 9}); err != nil {
		t.Fatal(err)
	}
	told("expelled")
	if err := b.e.Open(t.Context(), openCampaign(1), b.shard, open(4).load); err != nil {
		t.Fatal(err)
	}
	b.pause(9, dibs.EndedState)
	if err := b.e.Retire(t.Context(), b.shard); err != nil {
		t.Fatal(err)
	}
	told("retired")
}

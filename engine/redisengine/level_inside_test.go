package redisengine

import (
	"errors"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
)

// A claim that waits for its call when the level is lost is not sent, and its caller
// looks again.
func TestWaitingClaimsAreRefused(t *testing.T) {
	b := newBench(t, 10, nil)
	call := &batch{lane: b.l}
	b.l.mu.Lock()
	// Both calls are under way: what comes waits.
	b.l.inFlight, b.l.calls = maxInFlight, []*batch{call}
	b.l.mu.Unlock()
	press, again := ask("ann", 1, 1), ask("bob", 2, 1)
	press.Shard, again.Shard, again.OnlyRepeat = b.shard, b.shard, true
	waits, repeats := newWaiter(t.Context(), &press), newWaiter(t.Context(), &again)
	for _, w := range []*waiter{waits, repeats} {
		if err := b.l.enqueue(w); err != nil {
			t.Fatal(err)
		}
	}
	b.e.p.level.lost.Store(true)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		b.l.send(call)
	}()
	<-waits.done
	if _, err := waits.decision(); !errors.Is(err, errLevelLost) {
		t.Errorf("a claim that waited is %v", err)
	}
	<-repeats.done
	if d, err := repeats.decision(); err != nil || d.Outcome != dibs.Overloaded {
		t.Errorf("a repeat that waited is %+v, %v", d, err)
	}
	<-answered
	b.l.mu.Lock()
	b.l.inFlight = 0
	b.l.mu.Unlock()
	s, err := b.e.Stats(t.Context(), b.shard)
	if err != nil || s.Granted != 0 {
		t.Errorf("granted are %d, %v", s.Granted, err)
	}
}

// A setting is wrong for as long as an answer may be worth less than the level.
func TestSettingsOfALevel(t *testing.T) {
	good := conn.Facts{Addr: "a", Policy: "noeviction", AOF: true, Fsync: "always", NoFsync: "no", Role: "master", Replicas: 1}
	with := func(change func(*conn.Facts)) conn.Facts {
		f := good
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		level string
		nodes []conn.Facts
		want  []string
	}{
		"all is well":       {dibs.LevelReplicated, []conn.Facts{good}, nil},
		"a failed write":    {dibs.LevelRelaxed, []conn.Facts{with(func(f *conn.Facts) { f.Unwritten = true })}, []string{"aof_last_write_status"}},
		"an unfinished AOF": {dibs.LevelDurable, []conn.Facts{with(func(f *conn.Facts) { f.Unsaved = true })}, []string{"appendonly"}},
		"no replica":        {dibs.LevelReplicated, []conn.Facts{with(func(f *conn.Facts) { f.Replicas = 0 })}, []string{"replicas"}},
		"no replica needed": {dibs.LevelDurable, []conn.Facts{with(func(f *conn.Facts) { f.Replicas = 0 })}, nil},
		"settings that are not shown": {
			dibs.LevelDurable, []conn.Facts{with(func(f *conn.Facts) { f.Fsync, f.NoFsync = conn.Unread, conn.Unread })}, []string{"appendfsync", "no-appendfsync-on-rewrite"},
		},
		"the second server":           {dibs.LevelDurable, []conn.Facts{good, with(func(f *conn.Facts) { f.Fsync = "no" })}, []string{"appendfsync"}},
		"nothing but eviction counts": {dibs.LevelNone, []conn.Facts{with(func(f *conn.Facts) { f.Policy, f.AOF, f.Unwritten = "volatile-lru", false, true })}, []string{evicting}},
	} {
		var wrong []string
		seen := map[string]bool{}
		for _, f := range worstOf(c.nodes, &Config{Durability: c.level}) {
			if seen[f.Subject] {
				t.Errorf("%s: %s is told twice", name, f.Subject)
			}
			seen[f.Subject] = true
			if !f.OK() {
				wrong = append(wrong, f.Subject)
			}
			if f.OK() != (f.Remedy == "") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(wrong, c.want) {
			t.Errorf("%s: wrong are %q, want %q", name, wrong, c.want)
		}
	}
}

// An append-only file that was off is worth nothing until it has been written anew
// from what the server holds; one that is rewritten in the course of things is.
func TestAppendOnlyFilesAreWhole(t *testing.T) {
	l := &level{}
	for i, c := range []struct{ aof, rewriting, unsaved bool }{
		{true, false, false}, {true, true, false}, {false, false, false}, {true, true, true}, {true, true, true}, {true, false, false}, {true, true, false},
	} {
		nodes := []conn.Facts{{Addr: "a", AOF: c.aof, Rewriting: c.rewriting}, {Addr: "b", AOF: true, Rewriting: true}}
		l.noteUnsaved(nodes)
		if nodes[0].Unsaved != c.unsaved || nodes[1].Unsaved {
			t.Errorf("step %d: %v, %v", i, nodes[0].Unsaved, nodes[1].Unsaved)
		}
	}
}

package redisengine

import (
	"errors"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"
)

// A claim that waits for its call when the level is lost is not sent, and its caller
// looks again.
func TestWaitingClaimsAreRefused(t *testing.T) {
	b := newBench(t, 10, nil)
	call := &batch{lane: b.l}
	b.l.mu.Lock()
	// Both calls are under way: what comes waits.
	b.l.flying, b.l.calls = maxFlying, []*batch{call}
	b.l.mu.Unlock()
	press, again := ask("ann", 1, 1), ask("bob", 2, 1)
	press.Shard, again.Shard, again.OnlyRepeat = b.shard, b.shard, true
	waits, repeats := newTicket(t.Context(), &press), newTicket(t.Context(), &again)
	for _, w := range []*ticket{waits, repeats} {
		if err := b.l.enqueue(w); err != nil {
			t.Fatal(err)
		}
	}
	b.e.level.lost.Store(true)
	landed := make(chan struct{})
	go func() {
		defer close(landed)
		b.l.fly(call)
	}()
	<-waits.done
	if _, err := waits.decision(); !errors.Is(err, errLevelLost) {
		t.Errorf("a claim that waited is %v", err)
	}
	<-repeats.done
	if d, err := repeats.decision(); err != nil || d.Outcome != dibs.Overloaded {
		t.Errorf("a repeat that waited is %+v, %v", d, err)
	}
	<-landed
	b.l.mu.Lock()
	b.l.flying = 0
	b.l.mu.Unlock()
	s, err := b.e.Stats(t.Context(), b.shard)
	if err != nil || s.Granted != 0 {
		t.Errorf("granted are %d, %v", s.Granted, err)
	}
}

// A setting is wrong for as long as an answer may be worth less than the level.
func TestSettingsOfALevel(t *testing.T) {
	good := facts{addr: "a", policy: "noeviction", aof: true, fsync: "always", noFsync: "no", role: "master", replicas: 1}
	with := func(change func(*facts)) facts {
		f := good
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		level string
		nodes []facts
		want  []string
	}{
		"all is well":       {dibs.LevelReplicated, []facts{good}, nil},
		"a failed write":    {dibs.LevelRelaxed, []facts{with(func(f *facts) { f.unwritten = true })}, []string{"aof_last_write_status"}},
		"an unfinished AOF": {dibs.LevelDurable, []facts{with(func(f *facts) { f.unsaved = true })}, []string{"appendonly"}},
		"no replica":        {dibs.LevelReplicated, []facts{with(func(f *facts) { f.replicas = 0 })}, []string{"replicas"}},
		"no replica needed": {dibs.LevelDurable, []facts{with(func(f *facts) { f.replicas = 0 })}, nil},
		"settings that are not shown": {
			dibs.LevelDurable, []facts{with(func(f *facts) { f.fsync, f.noFsync = unread, unread })}, []string{"appendfsync", "no-appendfsync-on-rewrite"},
		},
		"the second server":           {dibs.LevelDurable, []facts{good, with(func(f *facts) { f.fsync = "no" })}, []string{"appendfsync"}},
		"nothing but eviction counts": {dibs.LevelNone, []facts{with(func(f *facts) { f.policy, f.aof, f.unwritten = "volatile-lru", false, true })}, []string{evicting}},
	} {
		var wrong []string
		seen := map[string]bool{}
		for _, f := range settingsOf(c.nodes, &Config{Durability: c.level}) {
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
		nodes := []facts{{addr: "a", aof: c.aof, rewriting: c.rewriting}, {addr: "b", aof: true, rewriting: true}}
		l.noteUnsaved(nodes)
		if nodes[0].unsaved != c.unsaved || nodes[1].unsaved {
			t.Errorf("step %d: %v, %v", i, nodes[0].unsaved, nodes[1].unsaved)
		}
	}
}

// Replicas count that have what their master has.
func TestFollowersAreOnline(t *testing.T) {
	n := followers(map[string]string{
		"connected_slaves": "2", "slave0": "ip=10.0.0.1,port=1,state=online,offset=9,lag=0", "slave1": "ip=10.0.0.2,port=1,state=wait_bgsave,offset=0,lag=0",
		"slave_read_only": "1",
	})
	if n != 1 {
		t.Errorf("%d replicas count", n)
	}
}

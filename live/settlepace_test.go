package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Settling rests while claims queue anywhere, to be decided or for their
// commit, unless the backlog has to become smaller.
func TestClaimsRush(t *testing.T) {
	idle := dibs.ShardStats{Remaining: 5, Granted: 7, Head: dibs.Cursor{Epoch: 1, Seq: 9}}
	queued, waiting := idle, idle
	queued.Queued, waiting.Waiting = 1, 1
	for name, c := range map[string]struct {
		shards  []dibs.ShardStats
		backlog int64
		// each says that every shard has the backlog, and not the first one alone.
		each bool
		want bool
	}{
		"nothing waits":                 {shards: []dibs.ShardStats{idle, idle}},
		"a commit is waited for":        {shards: []dibs.ShardStats{idle, queued}, want: true},
		"a decision is waited for":      {shards: []dibs.ShardStats{waiting, idle}, want: true},
		"a backlog of half is room":     {shards: []dibs.ShardStats{waiting}, backlog: 50, want: true},
		"a backlog of more is no room":  {shards: []dibs.ShardStats{waiting}, backlog: 51},
		"a campaign of two has no room": {shards: []dibs.ShardStats{waiting, waiting}, backlog: 26, each: true},
		"another shard has no room":     {shards: []dibs.ShardStats{idle, waiting}, backlog: 51},
	} {
		for _, shared := range []bool{false, true} {
			e := &counting{shared: shared, stats: map[dibs.ShardID]dibs.ShardStats{}}
			s := newNode(t, Config{MaxBacklog: 100, Engine: e})
			l := &Campaign{}
			for i := range c.shards {
				tr := &Shard{ID: dibs.ShardID{Campaign: 1, Shard: uint8(i)}, l: l}
				tr.lease.settles.Store(true)
				if i == 0 || c.each {
					tr.seen.backlog.Store(c.backlog)
				}
				// Of a shared engine what was seen last counts.
				if shared {
					tr.seen.stats.Store(&c.shards[i])
				} else {
					e.stats[tr.ID] = c.shards[i]
				}
				l.Shards = append(l.Shards, tr)
			}
			s.Registry.byID.Store("c", l)
			if is := s.Settler.ClaimsRush(t.Context()); is != c.want {
				t.Errorf("%s, shared %v: a rush is %v", name, shared, is)
			}
		}
	}
}

// Settling rests as long as claims queue, long while little waits for it, and not
// when somebody waits for it.
func TestSettlingRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &counting{stats: map[dibs.ShardID]dibs.ShardStats{}}
		s := newNode(t, Config{MaxBacklog: 80, Engine: e})
		tr := &Shard{ID: dibs.ShardID{Campaign: 1}, l: &Campaign{}}
		tr.lease.settles.Store(true)
		tr.l.Shards = []*Shard{tr}
		s.Registry.byID.Store("c", tr.l)
		for backlog, want := range map[int64]time.Duration{0: longRest, 10: longRest, 11: shortRest, 80: shortRest} {
			tr.seen.backlog.Store(backlog)
			if is := s.Settler.settleRest(1); is != want {
				t.Errorf("with %d waiting it rests %d times a batch", backlog, is)
			}
		}
		tr.seen.backlog.Store(0)
		rests := func(when string, want time.Duration) {
			began := time.Now()
			if ok := s.Settler.restInRush(t.Context(), time.Second); !ok || time.Since(began) != want {
				t.Errorf("%s it rests for %v, %v; want %v", when, time.Since(began), ok, want)
			}
		}
		rests("when nobody waits", 0)
		e.stats[tr.ID] = dibs.ShardStats{Waiting: 1}
		rests("in a rush", time.Second)
		time.AfterFunc(2*pollEvery+1, func() { tr.seen.backlog.Store(41) })
		rests("when the backlog has no room any more", 3*pollEvery)
		tr.seen.backlog.Store(0)
		time.AfterFunc(pollEvery/2, func() { wait.Kick(s.Settler.settleKick) })
		rests("when somebody wakes it", pollEvery/2)
		tr.progress.wanted = dibs.Cursor{Epoch: 1, Seq: 9}
		rests("when somebody waits for a claim to be settled", 0)
	})
}

package live

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Watcher keeps what this node knows of its shards and of the campaigns of other
// nodes. What is not atomic belongs to one loop, as said.
type Watcher struct {
	registry    *Registry
	settler     *Settler
	loader      *Loader
	situations  *Situations
	engine      dibs.Engine
	ledger      Ledger
	log         *slog.Logger
	now         func() time.Time
	maxBacklog  int64
	journalKeep time.Duration

	// discovered has the campaigns that were live in the ledger when it was asked
	// last, by number; the discover loop's.
	discovered map[uint32]*dibs.Campaign
	// patrols is set while this node has the fleet's lease; patrolAt is when it is
	// asked for again, the watch loop's; see keepPatrol.
	patrols  atomic.Bool
	patrolAt time.Time
	// watched is how many shards are live here; alarm has all of them looked at.
	watched atomic.Int64
	alarm   atomic.Bool
	// servers are the engine's, by address, as the ledger was told last; before Start
	// returns its caller's, then the servers loop's.
	servers map[string]string
	// left is when shards were seen to have left the engine; the tidy loop's.
	left map[dibs.ShardID]time.Time
}

// loop keeps what is known of the live shards: backlog, lag,
// back-pressure, who settles; and has those joined that are not open. What may
// take longer has loops of its own: leases end that are not renewed in time.
func (s *Watcher) loop(ctx context.Context) {
	for wait.Sleep(ctx, watchEvery) {
		s.watchAll(ctx)
	}
}

// watchAll looks at every shard whose time has come.
func (s *Watcher) watchAll(ctx context.Context) {
	s.keepPatrol(ctx)
	now := time.Now()
	if s.alarm.Swap(false) {
		s.lookBy(now)
	}
	n := int64(0)
	var looks sync.WaitGroup
	free := make(chan struct{}, watchers)
	s.registry.eachShard(func(t *Shard) bool {
		n++
		if now.Before(t.lookAt) && !t.roused() {
			return true
		}
		if !s.engine.Shared() {
			// No other machine is asked: it takes less than to start a goroutine.
			s.watch(ctx, t)
			return true
		}
		free <- struct{}{}
		looks.Go(func() {
			s.watch(ctx, t)
			<-free
		})
		return true
	})
	looks.Wait()
	s.watched.Store(n)
	s.registry.each(func(l *Campaign) bool {
		sum := int64(0)
		for _, t := range l.Shards {
			sum += t.backlog.Load()
		}
		l.full.Store(sum >= s.maxBacklog)
		return true
	})
}

// watch looks at one shard.
func (s *Watcher) watch(ctx context.Context, t *Shard) {
	if t.roused() {
		t.pace = watchEvery
	}
	// What happens from now on may not be in what is read, and rouses it again.
	t.idle.Store(true)
	st, err := s.engine.Stats(ctx, t.Id)
	if errors.Is(err, dibs.ErrNotOpen) {
		if t.seen.Swap(nil) != nil && s.registry.Sells(t.l.Def()) {
			// A server that has lost one shard may have lost them all.
			s.alarm.Store(true)
		}
		t.pace, t.lookAt = watchEvery, time.Now().Add(watchEvery)
		s.loader.notOpen(ctx, t)
		return
	}
	if err != nil {
		return
	}
	switch fence, _ := t.place(); {
	case fence < st.Head.Epoch:
		// Another node has loaded the shard.
		s.loader.fencedOff(ctx, t, fence)
	case fence == st.Head.Epoch && !t.joining.Load():
		// It is open, whatever this node's last attempt to load it came to.
		t.rest.after(nil)
	}
	before := t.seen.Swap(&st)
	if fence, _ := t.place(); fence != st.Head.Epoch {
		// Another node has loaded the shard.
		s.loader.fencedOff(ctx, t, fence)
	}
	t.skewMS.Store(st.Now - s.now().UnixMilli())
	s.paceOf(t, before, &st)
	s.measure(t, &st)
	s.keepLease(ctx, t, &st)
	s.keepVersion(ctx, t, &st)
}

// paceOf decides when a shard is looked at again.
func (s *Watcher) paceOf(t *Shard, before, now *dibs.ShardStats) {
	moves := before == nil || before.Head != now.Head || before.Version != now.Version || t.backlog.Load() > 0
	switch {
	case !s.engine.Shared() || moves:
		t.pace = watchEvery
	case t.Held.Load():
		// Whoever grants something meanwhile leaves it to this node.
		t.pace = min(2*t.pace, watchHeld)
	default:
		t.pace = min(2*t.pace, s.idlePace(s.OnPatrol()))
	}
	if t.pace > standLook && s.situations.isWatched(t.l.Def().ID) {
		t.pace = standLook
	}
	t.pace = max(t.pace, watchEvery)
	// Shards that were roused together are not looked at together for ever.
	t.lookAt = time.Now().Add(t.pace - time.Duration(rand.Int64N(int64(t.pace/8))))
}

// measure notes how much of a shard waits to be settled.
func (s *Watcher) measure(t *Shard, st *dibs.ShardStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.Held.Load() && t.position.Before(st.Settled) && st.Settled.Epoch == st.Head.Epoch && st.Head.Epoch == t.fence {
		t.moveToLocked(st.Settled)
	}
	n := backlogOf(t.position, st.Head)
	t.backlog.Store(n)
	if n == 0 {
		// Whatever kept this node from settling, all is settled.
		t.idleAt, t.lastErr = s.now(), nil
	}
}

// keepVersion makes this node and the engine have the campaign's newest
// definition that either knows.
func (s *Watcher) keepVersion(ctx context.Context, t *Shard, st *dibs.ShardStats) {
	c := t.l.Def()
	switch {
	case st.Version > c.Version:
		if _, err := s.registry.Fresh(ctx, c.ID); err != nil && ctx.Err() == nil {
			s.log.Warn("a campaign's change could not be read", "campaign", c.ID, "err", err)
		}
	case st.Version < c.Version:
		if err := s.engine.Configure(ctx, c); err != nil && ctx.Err() == nil {
			s.log.Warn("a campaign's change has not reached the engine", "campaign", c.ID, "err", err)
		}
	}
}

const (
	// watchEvery is how often shards are looked at. One that other processes
	// decide on too, and that stands still, is looked at ever more rarely, every
	// watchIdle or less often (see idlePace): each look is a question to another
	// machine.
	watchEvery = 50 * time.Millisecond
	watchIdle  = time.Second
	// watchHeld is how rarely a shard is looked at that this node settles.
	watchHeld = 200 * time.Millisecond
	// watchers is how many shards are looked at at the same time.
	watchers = 16
	// DiscoverEvery is how often the ledger is asked for campaigns that other
	// nodes have published or changed.
	DiscoverEvery = time.Second
)

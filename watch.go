package dibs

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"
)

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
	// discoverEvery is how often the ledger is asked for campaigns that other
	// nodes have published or changed.
	discoverEvery = time.Second
)

// watchLoop keeps what is known of the live shards: backlog, lag,
// back-pressure, who settles; and has those joined that are not open. What may
// take longer has loops of its own: leases end that are not renewed in time.
func (s *Service) watchLoop(ctx context.Context) {
	for sleep(ctx, watchEvery) {
		s.watchAll(ctx)
	}
}

// discoverLoop takes up what other nodes have published or changed.
func (s *Service) discoverLoop(ctx context.Context) {
	for n := 0; sleep(ctx, discoverEvery); n++ {
		s.discover(ctx)
		if n%seeSinksEvery == 0 {
			s.seeSinks(ctx)
		}
	}
}

// tidyLoop clears away what is not needed any more.
func (s *Service) tidyLoop(ctx context.Context) {
	for sleep(ctx, s.cfg.TidyEvery) {
		if s.onPatrol() {
			s.trim(ctx)
		}
		s.retireEnded(ctx)
		if s.stuckTail.Load() != nil {
			// What kept it from being settled at the start may be over.
			if err := s.adoptTails(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("the rest of campaigns that are over could not be looked for", "err", err)
			}
		}
		s.forgetRequests(ctx)
		s.forgetActs(ctx)
		s.trimFeed(ctx)
		s.readQuarantine(ctx)
	}
}

// watchAll looks at every shard whose time has come.
func (s *Service) watchAll(ctx context.Context) {
	s.keepPatrol(ctx)
	now := time.Now()
	if s.alarm.Swap(false) {
		s.lookBy(now)
	}
	n := int64(0)
	var looks sync.WaitGroup
	free := make(chan struct{}, watchers)
	s.eachShard(func(t *settling) bool {
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
	s.lives.Range(func(_, v any) bool {
		l, sum := v.(*live), int64(0)
		for _, t := range l.shards {
			sum += t.backlog.Load()
		}
		l.full.Store(sum >= s.cfg.MaxBacklog)
		return true
	})
}

// watch looks at one shard.
func (s *Service) watch(ctx context.Context, t *settling) {
	if t.roused() {
		t.pace = watchEvery
	}
	// What happens from now on may not be in what is read, and rouses it again.
	t.idle.Store(true)
	st, err := s.engine.Stats(ctx, t.id)
	if errors.Is(err, ErrNotOpen) {
		if t.seen.Swap(nil) != nil && s.sells(t.l.campaign.Load()) {
			// A server that has lost one shard may have lost them all.
			s.alarm.Store(true)
		}
		t.pace, t.lookAt = watchEvery, time.Now().Add(watchEvery)
		s.notOpen(ctx, t)
		return
	}
	if err != nil {
		return
	}
	switch fence, _ := t.place(); {
	case fence < st.Head.Epoch:
		// Another node has loaded the shard.
		s.fencedOff(ctx, t, fence)
	case fence == st.Head.Epoch && !t.joining.Load():
		// It is open, whatever this node's last attempt to load it came to.
		t.rest.after(nil)
	}
	before := t.seen.Swap(&st)
	if fence, _ := t.place(); fence != st.Head.Epoch {
		// Another node has loaded the shard.
		s.fencedOff(ctx, t, fence)
	}
	t.skewMS.Store(st.Now - s.cfg.Now().UnixMilli())
	s.paceOf(t, before, &st)
	s.measure(t, &st)
	s.keepLease(ctx, t, &st)
	s.keepVersion(ctx, t, &st)
}

// paceOf decides when a shard is looked at again.
func (s *Service) paceOf(t *settling, before, now *ShardStats) {
	moves := before == nil || before.Head != now.Head || before.Version != now.Version || t.backlog.Load() > 0
	switch {
	case !s.engine.Shared() || moves:
		t.pace = watchEvery
	case t.held.Load():
		// Whoever grants something meanwhile leaves it to this node.
		t.pace = min(2*t.pace, watchHeld)
	default:
		t.pace = min(2*t.pace, s.idlePace(s.onPatrol()))
	}
	if t.pace > standLook && s.isWatched(t.l.campaign.Load().ID) {
		t.pace = standLook
	}
	t.pace = max(t.pace, watchEvery)
	// Shards that were roused together are not looked at together for ever.
	t.lookAt = time.Now().Add(t.pace - time.Duration(rand.Int64N(int64(t.pace/8))))
}

// rouse makes the shard be looked at soon: something happens on it.
func (t *settling) rouse() {
	if t.idle.Load() {
		t.idle.Store(false)
	}
}

// roused reports whether something has happened on a shard since it was looked
// at, which is looked at rarely.
func (t *settling) roused() bool { return t.pace > watchEvery && !t.idle.Load() }

// measure notes how much of a shard waits to be settled.
func (s *Service) measure(t *settling, st *ShardStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.held.Load() && t.position.Before(st.Settled) && st.Settled.Epoch == st.Head.Epoch && st.Head.Epoch == t.fence {
		t.moveToLocked(st.Settled)
	}
	n := backlogOf(t.position, st.Head)
	t.backlog.Store(n)
	if n == 0 {
		// Whatever kept this node from settling, all is settled.
		t.idleAt, t.lastErr = s.cfg.Now(), nil
	}
}

// keepVersion makes this node and the engine have the campaign's newest
// definition that either knows.
func (s *Service) keepVersion(ctx context.Context, t *settling, st *ShardStats) {
	c := t.l.campaign.Load()
	switch {
	case st.Version > c.Version:
		if _, err := s.freshCampaign(ctx, c.ID); err != nil && ctx.Err() == nil {
			s.log.Warn("a campaign's change could not be read", "campaign", c.ID, "err", err)
		}
	case st.Version < c.Version:
		if err := s.engine.Configure(ctx, c); err != nil && ctx.Err() == nil {
			s.log.Warn("a campaign's change has not reached the engine", "campaign", c.ID, "err", err)
		}
	}
}

// glance returns a shard's numbers without asking another machine: as they are,
// or as they were seen last.
func (s *Service) glance(ctx context.Context, t *settling) (ShardStats, error) {
	if !s.engine.Shared() {
		return s.engine.Stats(ctx, t.id)
	}
	if st := t.seen.Load(); st != nil {
		return *st, nil
	}
	return ShardStats{}, ErrNotOpen
}

// trim drops journal entries that were settled long ago, also those of
// campaigns that have left the engine.
func (s *Service) trim(ctx context.Context) {
	before := s.cfg.Now().Add(-s.cfg.JournalKeep)
	shards, err := s.engine.JournalShards(ctx)
	for _, id := range shards {
		if err := s.leave(ctx, id); err != nil && ctx.Err() == nil {
			s.log.Warn("a campaign that is over stays in the engine", "shard", id.String(), "err", err)
		}
		if err := s.trimShard(ctx, id, before); err != nil && ctx.Err() == nil {
			s.log.Warn("trimming the journal failed", "shard", id.String(), "err", err)
		}
	}
	listed := make(map[ShardID]bool, len(shards))
	for _, id := range shards {
		listed[id] = true
	}
	maps.DeleteFunc(s.left, func(id ShardID, since time.Time) bool {
		return err == nil && !listed[id] || s.cfg.Now().Sub(since) > leftFor
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("trimming the journal failed", "err", err)
	}
}

// leftFor is how long a shard that has left the engine is taken to be out of it. A
// late payment may bring it back through another node, which may die with it.
const leftFor = 10 * time.Minute

// leave has the engine forget a shard of a campaign that is over and live on no
// node: all were stopped between its end and its leaving, or the engine was.
func (s *Service) leave(ctx context.Context, id ShardID) error {
	if !s.engine.Shared() || !s.left[id].IsZero() || s.settlingOf(id) != nil {
		return nil
	}
	c, err := s.ledger.CampaignByNumber(ctx, id.Campaign)
	if err != nil || !s.over(c) {
		return err
	}
	totals, err := s.ledger.Totals(ctx, id)
	if err != nil {
		return err
	}
	// Another node may be settling it.
	if held, err := s.engine.Lease(ctx, id, totals.Position); err != nil || !held {
		return err
	}
	if err := s.adoptTail(ctx, c, id); err != nil {
		return err
	}
	if err := s.engine.Retire(ctx, id); err != nil && !errors.Is(err, ErrNotOpen) {
		return err
	}
	s.left[id] = s.cfg.Now()
	return nil
}

func (s *Service) trimShard(ctx context.Context, id ShardID, before time.Time) error {
	t := s.settlingOf(id)
	var seen *ShardStats
	if t != nil {
		seen = t.seen.Load()
	}
	// The ledger says how far it is: it may have been restored from a backup.
	totals, err := s.ledger.Totals(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case seen == nil:
	case seen.Head.Epoch < totals.Epoch:
		// A load was broken off after it had raised the epoch: what was sent to the
		// engine since waits for an epoch that nobody opens. Or the shard is open on
		// another server, and what this one has is of a history that was given up.
		if s.sells(t.l.campaign.Load()) {
			s.rejoin(ctx, t)
		}
		return nil
	case s.engine.Shared() && totals.Position.Before(seen.Settled):
		// It has been: whoever has the lease settles from there.
		if _, err := s.engine.Lease(ctx, id, totals.Position); err != nil {
			return err
		}
		t.rouse()
	}
	return s.engine.TrimJournal(ctx, id, totals.Position, before)
}

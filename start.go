package dibs

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Start settles what an earlier run left behind, loads the live campaigns into
// the engine, and starts the background work. The service answers claims when
// it returns.
func (s *Service) Start(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("dibs: the service was started before")
	}
	campaigns, err := s.ledger.LiveCampaigns(ctx, s.cfg.Now())
	if err != nil {
		return fmt.Errorf("dibs: reading the live campaigns: %w", err)
	}
	s.readQuarantine(ctx)
	// Before anything is opened on them: who asks the ledger finds them alive.
	s.seeServers(ctx)
	s.admitAll(ctx, campaigns)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("dibs: loading the live campaigns: %w", err)
	}
	if err := s.adoptTails(ctx); err != nil {
		return err
	}
	for _, loop := range []func(context.Context){
		s.settleLoop, s.watchLoop, s.discoverLoop, s.tidyLoop, s.outboxLoop, s.sweepLoop, s.packetLoop, s.standLoop, s.eraseLoop,
		s.pushLoop, s.tellPushesLoop, s.serversLoop,
	} {
		s.loops.Go(func() { loop(s.life) })
	}
	kick(s.settleKick)
	return nil
}

// adoptTails settles journal entries of campaigns that are over: nothing
// loads them any more, but their last grants may not be in the ledger yet.
func (s *Service) adoptTails(ctx context.Context) error {
	shards, err := s.engine.JournalShards(ctx)
	if err != nil {
		return fmt.Errorf("dibs: listing the journal: %w", err)
	}
	var stuck *error
	for _, id := range shards {
		if _, ok := s.byNumber.Load(id.Campaign); ok {
			continue
		}
		c, err := s.ledger.CampaignByNumber(ctx, id.Campaign)
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("dibs: the journal has shard %s, of a campaign that the ledger does not have: the ledger is older than the journal, "+
				"bring a newer backup of it back: %w", id, err)
		}
		if err != nil {
			return fmt.Errorf("dibs: the journal has shard %s: %w", id, err)
		}
		if s.sells(c) {
			// It could not be loaded; its tail waits until it can.
			continue
		}
		if err := s.adoptTail(ctx, c, id); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("dibs: settling the rest of campaign %s: %w", c.ID, err)
			}
			stuck = &err
			s.log.Error("the rest of a campaign that is over could not be settled", "campaign", c.ID, "err", err)
		}
	}
	s.stuckTail.Store(stuck)
	return nil
}

// settleTail settles all that a shard's journal has.
func (s *Service) settleTail(ctx context.Context, t *settling) error {
	s.settling.Lock()
	defer s.settling.Unlock()
	for {
		b, err := s.readBatch(ctx, t, s.cfg.SettleBatch, true)
		if err != nil || len(b.Entries) == 0 {
			return err
		}
		err = s.settleBatches(ctx, []Batch{b}, []*settling{t})
		if errors.Is(err, ErrPoison) {
			_, err = s.isolate(ctx, b, t)
		}
		// Another node settles it too: it goes on from where that one is.
		if err != nil && !(errors.Is(err, ErrPositionMoved) && s.engine.Shared()) {
			return err
		}
	}
}

// retireAfter is how long an ended campaign stays in the engine, where repeats
// of its claims are cheap.
const retireAfter = 5 * time.Minute

// retireEnded lets campaigns leave the engine that have ended and are settled.
// The ledger answers for them from then on.
func (s *Service) retireEnded(ctx context.Context) {
	s.lives.Range(func(_, v any) bool {
		l := v.(*live)
		// What was recalled is live on this node alone.
		if c := l.campaign.Load(); s.over(c) && (l.recalled || s.onPatrol()) {
			if err := s.retire(ctx, l); err != nil {
				s.log.Warn("a campaign stays in the engine", "campaign", c.ID, "err", err)
			}
		}
		return ctx.Err() == nil
	})
}

// settled reports whether nothing of a campaign waits to be settled.
func (s *Service) settled(ctx context.Context, l *live) bool {
	for _, t := range l.shards {
		st, err := s.engine.Stats(ctx, t.id)
		if err != nil || t.at().Before(st.Head) || st.Queued > 0 {
			return false
		}
	}
	return true
}

// over reports whether a campaign ended long enough ago to leave the engine.
func (s *Service) over(c *Campaign) bool {
	since := s.cfg.Now().Add(-retireAfter)
	return c.State == EndedState && c.UpdatedAt.Before(since) || c.EndsAt.Before(since)
}

func (s *Service) retire(ctx context.Context, l *live) error {
	// The wait comes first: nobody who changes a campaign has to wait with it.
	if err := s.settleAll(ctx, l.campaign.Load()); err != nil {
		return err
	}
	if err := s.admin.take(ctx); err != nil {
		return err
	}
	defer s.admin.Unlock()
	c := l.campaign.Load()
	if !s.over(c) || !s.settled(ctx, l) {
		return nil
	}
	// The engine refuses while its own clock says that the campaign goes on: then
	// it goes on here, too.
	for _, t := range l.shards {
		if err := s.engine.Retire(ctx, t.id); err != nil && !errors.Is(err, ErrNotOpen) {
			return err
		}
	}
	s.dropLive(c)
	return nil
}

// Close stops the background work and settles what is left until ctx ends;
// the next start settles the rest. The engine and the ledger stay open.
func (s *Service) Close(ctx context.Context) error {
	s.cancel()
	if !s.started.Load() {
		return nil
	}
	s.loops.Wait()
	s.watchHeld(ctx)
	for {
		n, err := s.settleOnce(ctx)
		if errors.Is(err, ErrPositionMoved) && s.engine.Shared() && ctx.Err() == nil {
			// Another node has settled the same entries: what is left is looked up
			// anew.
			continue
		}
		if err != nil {
			return fmt.Errorf("dibs: settling at the end: %w", err)
		}
		if n == 0 {
			return nil
		}
	}
}

// watchHeld counts the shards once more that this node settles, and those on
// which something has happened that nobody may be settling yet.
func (s *Service) watchHeld(ctx context.Context) {
	s.eachShard(func(t *settling) bool {
		if t.idle.Load() && !t.held.Load() {
			return ctx.Err() == nil
		}
		if st, err := s.engine.Stats(ctx, t.id); err == nil {
			t.seen.Store(&st)
			s.measure(t, &st)
			t.leaseAt = time.Time{}
			s.keepLease(ctx, t, &st)
		}
		return ctx.Err() == nil
	})
}

// sleepOr waits for a time or a signal; false when ctx ended first.
func sleepOr(ctx context.Context, d time.Duration, signal <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-signal:
		return true
	case <-ctx.Done():
		return false
	}
}

package live

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/dibs-dev/dibs"
)

// trim drops journal entries that were settled long ago, also those of
// campaigns that have left the engine.
func (s *Poller) trim(ctx context.Context) {
	before := s.now().Add(-s.journalKeep)
	shards, err := s.engine.JournalShards(ctx)
	for _, id := range shards {
		if err := s.leave(ctx, id); err != nil && ctx.Err() == nil {
			s.log.Warn("a campaign that is over stays in the engine", "shard", id.String(), "err", err)
		}
		if err := s.trimShard(ctx, id, before); err != nil && ctx.Err() == nil {
			s.log.Warn("trimming the journal failed", "shard", id.String(), "err", err)
		}
	}
	listed := make(map[dibs.ShardID]bool, len(shards))
	for _, id := range shards {
		listed[id] = true
	}
	maps.DeleteFunc(s.stays, func(_ dibs.ShardID, since time.Time) bool { return s.now().Sub(since) > staysFor })
	maps.DeleteFunc(s.left, func(id dibs.ShardID, since time.Time) bool {
		return err == nil && !listed[id] || s.now().Sub(since) > leftFor
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("trimming the journal failed", "err", err)
	}
}

// leftFor is how long a shard that has left the engine is taken to be out of it. A
// late payment may bring it back, through this node or another one, and what came of
// that may be lost with an answer or with the node.
const leftFor = 5 * time.Minute

// staysFor is how long nothing more is tried with a shard that the engine keeps: this
// node's clock may be ahead, and it may have the lease that another node needs.
const staysFor = 2 * dibs.LeaseTime

// leave has the engine forget a shard of a campaign that is over and live on no
// node: all were stopped between its end and its leaving, or the engine was.
func (s *Poller) leave(ctx context.Context, id dibs.ShardID) error {
	if !s.engine.Shared() || !s.left[id].IsZero() || !s.stays[id].IsZero() || s.registry.Shard(id) != nil {
		return nil
	}
	c, err := s.ledger.CampaignByNumber(ctx, id.Campaign)
	if err != nil || !s.registry.Over(c) {
		return err
	}
	totals, err := s.ledger.Totals(ctx, id)
	if err != nil {
		return err
	}
	held, err := s.engine.Lease(ctx, id, totals.Position)
	switch {
	case err != nil:
	case held:
		err = s.loader.settleTailOf(ctx, c, id)
	default:
		// Another node may be settling it. Where nothing is left to settle, its lease says nothing: it may keep the
		// campaign for ever, since it is not the node that lets campaigns leave.
		var end dibs.Cursor
		if end, err = s.engine.JournalEnd(ctx, id); err == nil && totals.Position.Before(end) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	err = s.engine.Retire(ctx, id)
	if errors.Is(err, dibs.ErrInvalidState) {
		// It may have been opened by a definition from before the campaign's end, by a node
		// that lost the answer.
		if err := s.engine.Configure(ctx, c); err != nil && !errors.Is(err, dibs.ErrNotOpen) {
			s.stays[id] = s.now()
			return err
		}
		err = s.engine.Retire(ctx, id)
	}
	switch {
	case errors.Is(err, dibs.ErrInvalidState):
		s.stays[id] = s.now()
		return err
	case err != nil && !errors.Is(err, dibs.ErrNotOpen):
		return err
	}
	s.left[id] = s.now()
	return nil
}

func (s *Poller) trimShard(ctx context.Context, id dibs.ShardID, before time.Time) error {
	t := s.registry.Shard(id)
	var seen *dibs.ShardStats
	if t != nil {
		seen = t.Seen()
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
		// engine since waits for an epoch that no node opens. Or the shard is open on
		// another server, and what this one has is of a history that was given up.
		if s.registry.Sells(t.l.Def()) {
			s.loader.reopen(t)
		}
		return nil
	case s.engine.Shared() && totals.Position.Before(seen.Settled):
		// It has been: the shard is loaded from it, with what the journal has.
		fence, _ := t.progress.fenced()
		s.loader.fencedOff(t, fence)
		return nil
	}
	return s.engine.TrimJournal(ctx, id, totals.Position, before)
}

// retireEnded lets campaigns leave the engine that have ended and are settled.
// The ledger answers for them from then on.
func (s *Poller) retireEnded(ctx context.Context) {
	for l := range s.registry.each {
		if ctx.Err() != nil {
			return
		}
		// A campaign that was recalled is live on this node alone.
		if c := l.Def(); s.registry.Over(c) && (l.recalled || s.HasFleetLease()) {
			if err := s.loader.retire(ctx, l); err != nil {
				s.log.Warn("a campaign stays in the engine", "campaign", c.ID, "err", err)
			}
		}
	}
}

package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"
)

// settleEnded settles journal entries of campaigns that are over: nothing
// loads them any more, but their last grants may not be in the ledger yet.
func (s *Loader) settleEnded(ctx context.Context) error {
	shards, err := s.engine.JournalShards(ctx)
	var stuck *error
	if DeploymentFailed(err) && ctx.Err() == nil {
		// The others' shards are settled, and these once their deployment is back.
		stuck = &err
	} else if err != nil {
		return fmt.Errorf("dibs: listing the journal: %w", err)
	}
	for _, ids := range byCampaign(shards) {
		id := ids[0]
		if s.registry.liveByNumber(id.Campaign) != nil {
			continue
		}
		c, err := s.ledger.CampaignByNumber(ctx, id.Campaign)
		if errors.Is(err, dibs.ErrNotFound) {
			return fmt.Errorf("dibs: the journal has shard %s, of a campaign that the ledger does not have: the ledger is older than the journal, "+
				"bring a newer backup of it back: %w", id, err)
		}
		if err != nil {
			return fmt.Errorf("dibs: the journal has shard %s: %w", id, err)
		}
		if s.registry.Sells(c) {
			// It could not be loaded; its tail waits until it can.
			continue
		}
		if err := s.SettleTails(ctx, c, ids, false); err != nil {
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

// byCampaign groups shards by their campaigns.
func byCampaign(shards []dibs.ShardID) (groups [][]dibs.ShardID) {
	at := map[uint32]int{}
	for _, id := range shards {
		n, ok := at[id.Campaign]
		if !ok {
			n = len(groups)
			at[id.Campaign], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], id)
	}
	return groups
}

// settleShardTail settles what a shard's journal has and the ledger lacks, of a campaign that is over.
// This node may have opened it before. ErrNotLeft as settleTail.
func (s *Loader) settleShardTail(ctx context.Context, t *Shard, unknownTransfers bool) (err error) {
	defer func() {
		c := t.l.Def()
		if errors.Is(err, dibs.ErrGap) {
			s.halts.Store(c.ID, err)
		} else if err == nil {
			s.halts.Delete(c.ID)
		}
	}()
	totals, err := s.ledger.Totals(ctx, t.ID)
	if err != nil {
		return err
	}
	end, by, err := s.opener(ctx, t.ID)
	if err != nil {
		return err
	}
	if !totals.Position.Before(end) {
		t.progress.enter(totals.Epoch, totals.Position)
		s.waitsForUnits.Delete(t.ID)
		return nil
	}
	if err := s.fitsUntil(ctx, t.ID, totals.Position, end); err != nil {
		return err
	}
	if fence, _ := t.progress.fenced(); end.Epoch != totals.Epoch && fence != totals.Epoch {
		// The last load was broken off, or was made on another server.
		if totals, err = s.ledger.Fence(ctx, t.ID, by, totals); err != nil {
			return err
		}
		// The engine may still have the shard open, in an epoch that was given up.
		if err := s.engine.Halt(ctx, t.ID); err != nil {
			return err
		}
	}
	t.progress.enter(totals.Epoch, totals.Position)
	if err = s.settler.settleTail(ctx, t, unknownTransfers); err == nil {
		s.waitsForUnits.Delete(t.ID)
	}
	return err
}

// judgeAgain forgets that campaigns are halted whose journals go on where the ledger
// ends by now: another node has loaded or settled them since. Nothing else says so on a
// node that takes such a campaign to be over, and it would never be ready again.
func (s *Loader) judgeAgain(ctx context.Context) {
	for id, cause := range s.halts.Range {
		if ctx.Err() != nil {
			return
		}
		// Any other cause is found by settling alone, and goes with it.
		if !errors.Is(cause.(error), dibs.ErrGap) {
			continue
		}
		if err := s.fitsWhole(ctx, id.(string)); err == nil {
			s.halts.CompareAndDelete(id, cause)
		} else if !errors.Is(err, dibs.ErrGap) && ctx.Err() == nil {
			s.log.Warn("whether a campaign is still halted could not be found out", "campaign", id, "err", err)
		}
	}
}

// fitsWhole returns nil when the journal of each shard of a campaign goes on where the
// ledger ends.
func (s *Loader) fitsWhole(ctx context.Context, campaign string) error {
	c, err := s.ledger.Campaign(ctx, campaign)
	if err != nil {
		return err
	}
	for i := range c.Shards {
		if _, err := s.fits(ctx, dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}); err != nil {
			return err
		}
	}
	return nil
}

// settled reports whether nothing of a campaign waits to be settled.
func (s *Loader) settled(ctx context.Context, l *Campaign) bool {
	for _, t := range l.Shards {
		st, err := s.engine.Stats(ctx, t.ID)
		if err != nil || t.At().Before(st.Head) || st.Queued > 0 {
			return false
		}
	}
	return true
}

func (s *Loader) retire(ctx context.Context, l *Campaign) error {
	// The wait comes first: no caller that changes a campaign has to wait with it.
	if err := s.settler.SettleAll(ctx, l.Def()); err != nil {
		return err
	}
	if err := s.registry.admin.Take(ctx); err != nil {
		return err
	}
	defer s.registry.admin.Unlock()
	c := l.Def()
	if !s.registry.Over(c) || !s.settled(ctx, l) {
		return nil
	}
	// The engine refuses while its own clock says that the campaign goes on: then
	// it goes on here, too.
	for _, t := range l.Shards {
		if err := s.engine.Retire(ctx, t.ID); err != nil && !errors.Is(err, dibs.ErrNotOpen) {
			return err
		}
	}
	s.registry.Drop(c)
	return nil
}

// LostPart is a part of a shard's journal that is gone and that the ledger does
// not have.
type LostPart struct {
	Shard dibs.ShardID
	// Epoch is the shard's in the ledger when it was looked at.
	Epoch uint16
	// From is where the ledger ends, To the last place of what is gone.
	From, To dibs.Cursor
}

// String says what is gone.
func (p *LostPart) String() string {
	return fmt.Sprintf("the ledger of shard %s ends at %s, and what its journal had from there up to %s is gone", p.Shard, p.From, p.To)
}

// LostParts finds, for each shard of a campaign, what follows the ledger's position
// and is gone. It asks for no shard to be open.
func (s *Loader) LostParts(ctx context.Context, c *dibs.Campaign) ([]LostPart, error) {
	if c.Regular() || c.State == dibs.Draft {
		return nil, nil
	}
	var parts []LostPart
	for i := range c.Shards {
		p := LostPart{Shard: dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}}
		totals, err := s.ledger.Totals(ctx, p.Shard)
		if err != nil {
			return nil, err
		}
		end, err := s.engine.JournalEnd(ctx, p.Shard)
		if errors.Is(err, ErrOtherDeployment) && !s.registry.Sells(c) {
			// The deployment was taken out, and the ledger has what is known of the campaign.
			continue
		}
		if err != nil {
			return nil, err
		}
		p.Epoch, p.From = totals.Epoch, totals.Position
		err = s.fitsUntil(ctx, p.Shard, p.From, end)
		if !errors.Is(err, dibs.ErrGap) {
			// The node that settles the shard finds what cannot be read, or moves just now.
			continue
		}
		if p.To, err = s.endOfLost(ctx, p.Shard, p.From, end); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// endOfLost is the place up to which the journal has nothing behind a position.
func (s *Loader) endOfLost(ctx context.Context, id dibs.ShardID, position, end dibs.Cursor) (dibs.Cursor, error) {
	next, err := s.engine.ReadJournal(ctx, id, position, 1)
	if err != nil || len(next) == 0 {
		return end, err
	}
	if e := &next[0]; e.Kind != dibs.EntryOpen {
		return dibs.Cursor{Epoch: e.Epoch, Seq: e.Seq - 1}, nil
	}
	// It moves nothing but the position.
	return next[0].Cursor, nil
}

package dibs

import (
	"context"
	"errors"
)

// Stats returns a campaign's numbers as they are now, grants counted that are
// not settled yet. The refusals are this node's.
func (s *Service) Stats(ctx context.Context, id string) (StatsView, error) {
	c, err := s.Campaign(ctx, id)
	if err != nil {
		return StatsView{}, err
	}
	v, err := s.stats(ctx, c)
	v.LowStock, v.Low = c.LowStock, c.low(v.Remaining)
	return v, err
}

func (s *Service) stats(ctx context.Context, c *Campaign) (StatsView, error) {
	v := StatsView{CampaignID: c.ID, Stock: c.Stock.Total, Remaining: c.Stock.Total, Refused: map[string]int64{}}
	sum, err := s.totals(ctx, c)
	if err != nil {
		return v, err
	}
	v.Pending, v.Confirmed, v.Released, v.Refunded = sum.Pending, sum.Confirmed, sum.Released, sum.Refunded
	v.Granted = sum.Stock - sum.StockLeft
	if sum.Epoch > 0 {
		v.Stock, v.Remaining = sum.Stock, sum.StockLeft
	}
	if v.Funds, err = s.fundsView(ctx, c); err != nil {
		return v, err
	}
	l, err := s.liveOf(ctx, c)
	if err != nil || l == nil {
		return v, err
	}
	settled := v
	if err = s.liveStats(ctx, l, c, &v); errors.Is(err, ErrNotOpen) && !s.sells(c) {
		// It has left the engine, by another node.
		return settled, nil
	}
	return v, err
}

// totals adds the ledger's sums of a campaign's shards up.
func (s *Service) totals(ctx context.Context, c *Campaign) (ShardTotals, error) {
	var sum ShardTotals
	for i := range c.Shards {
		t, err := s.ledger.Totals(ctx, ShardID{Campaign: c.Number, Shard: uint8(i)})
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return sum, asUnavailable(err, EffectNone)
		}
		sum.Epoch = max(sum.Epoch, t.Epoch)
		sum.Stock += t.Stock
		sum.StockLeft += t.StockLeft
		sum.Pending += t.Pending
		sum.Confirmed += t.Confirmed
		sum.Released += t.Released
		sum.Refunded += t.Refunded
	}
	return sum, nil
}

// liveStats puts the engine's numbers over the ledger's, which follow behind.
func (s *Service) liveStats(ctx context.Context, l *live, c *Campaign, v *StatsView) error {
	settled := v.Granted
	v.Granted, v.Remaining = 0, 0
	for _, t := range l.shards {
		st, err := s.engine.Stats(ctx, t.id)
		if err != nil {
			return asUnavailable(err, EffectNone)
		}
		v.Granted += st.Granted
		v.Remaining += st.Remaining
		v.JournalBacklog += backlogOf(t.at(), st.Head)
		v.SettleLagMS = max(v.SettleLagMS, s.lagMS(t, st.Head))
	}
	v.Stock = v.Granted + v.Remaining
	if unsettled := max(v.Granted-settled, 0); c.InitialStatus() == Pending {
		v.Pending += unsettled
	} else {
		v.Confirmed += unsettled
	}
	for r := range l.refused {
		if n := l.refused[r].Load(); n > 0 {
			v.Refused[Reason(r).String()] += n
		}
	}
	return nil
}

// lagMS is how long entries of a shard have waited for the settling.
func (s *Service) lagMS(t *settling, head Cursor) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.position.Before(head) {
		return 0
	}
	return max(s.cfg.Now().Sub(t.idleAt).Milliseconds(), 0)
}

// CampaignView returns the campaign as shown, with what remains and its
// product; admin adds the inner fields.
func (s *Service) CampaignView(ctx context.Context, c *Campaign, admin bool) (CampaignView, error) {
	var product *Product
	if c.ProductID != "" {
		p, err := s.Product(ctx, c.ProductID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return CampaignView{}, asUnavailable(err, EffectNone)
		}
		product = p
	}
	remaining, err := s.remaining(ctx, c)
	if err != nil {
		return CampaignView{}, err
	}
	v := c.View(remaining, product, admin)
	if admin {
		v.Funds, err = s.fundsView(ctx, c)
	}
	return v, err
}

// remaining is what a campaign can still grant. While the engine cannot tell,
// it is what the ledger has, which follows behind: a page is shown all the same.
func (s *Service) remaining(ctx context.Context, c *Campaign) (int64, error) {
	if l, err := s.liveOf(ctx, c); err == nil && l != nil {
		if n, err := s.liveRemaining(ctx, l); err == nil {
			return n, nil
		}
	}
	sum, err := s.totals(ctx, c)
	if err != nil {
		return 0, err
	}
	if sum.Epoch == 0 {
		return c.Stock.Total, nil
	}
	return sum.StockLeft, nil
}

// liveRemaining is what the engine can still grant of a campaign.
func (s *Service) liveRemaining(ctx context.Context, l *live) (n int64, err error) {
	for _, t := range l.shards {
		st, err := s.engine.Stats(ctx, t.id)
		if err != nil {
			return 0, err
		}
		n += st.Remaining
	}
	return n, nil
}

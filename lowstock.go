package dibs

import (
	"context"
	"time"
)

// low reports whether so much left is what operations want to hear of.
func (c *Campaign) low(remaining int64) bool { return c.LowStock > 0 && remaining <= c.LowStock }

// heedLow tells operations, once for each time, that the stock of a campaign
// whose batch has just been settled came down to its low_stock. The ledger notes
// it in the transaction that takes the stock.
func (s *Service) heedLow(ctx context.Context, l *live) {
	if l.campaign.Load().LowStock == 0 {
		return
	}
	c, err := s.ledger.Campaign(ctx, l.campaign.Load().ID)
	if err != nil {
		// The next batch looks again.
		return
	}
	since := c.LowSince.UnixMilli()
	if l.lowSince.Swap(since) != since && !c.LowSince.IsZero() {
		s.log.Warn("the stock of a campaign is low", "campaign", c.ID, "low_stock", c.LowStock, "since", c.LowSince.Format(time.RFC3339))
	}
}

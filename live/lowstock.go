package live

import (
	"context"
	"time"
)

// noticeLowStock tells operations, once for each time, that the stock of a campaign
// whose batch has just been settled came down to its low_stock. The ledger notes
// it in the transaction that takes the stock.
func (s *Settler) noticeLowStock(ctx context.Context, l *Campaign) {
	if l.Def().LowStock == 0 {
		return
	}
	c, err := s.ledger.Campaign(ctx, l.Def().ID)
	if err != nil {
		// The next batch looks again.
		return
	}
	since := c.LowSince.UnixMilli()
	if l.lowSince.Swap(since) != since && !c.LowSince.IsZero() {
		s.log.Warn("the stock of a campaign is low", "campaign", c.ID, "low_stock", c.LowStock, "since", c.LowSince.Format(time.RFC3339))
	}
}

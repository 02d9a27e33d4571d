package sqlledger

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"

	"github.com/dibs-dev/dibs/events"
)

// markLow marks a campaign whose stock has come down to the level that its
// operators want to be warned of, and reports whether it has just now. It runs
// in the transaction that takes the stock, so that exactly one feed row says
// so.
func markLow(ctx context.Context, s *sqldb.Session, campaign uint32) (bool, error) {
	n, err := s.Exec(ctx, `UPDATE campaigns SET low_since = ? WHERE number = ? AND low_stock > 0 AND low_since = 0
		AND stock_left <= low_stock AND state IN (?,?)`,
		s.Now().UnixMilli(), campaign, string(dibs.Published), string(dibs.PausedState))
	return n > 0, err
}

// clearLow removes the mark of a campaign whose stock is above the level again:
// the next fall is a new one.
func clearLow(ctx context.Context, s *sqldb.Session, campaign uint32) error {
	return s.Do(ctx, `UPDATE campaigns SET low_since = 0 WHERE number = ? AND low_since > 0
		AND (low_stock = 0 OR stock_left > low_stock)`, campaign)
}

// campaignRow is a feed row about a change of a campaign, with the campaign as
// it stands in the transaction. delta and why are those of a change of the
// stock.
func campaignRow(ctx context.Context, s *sqldb.Session, number uint32, at time.Time, change events.CampaignChange, delta int64, why string) (feedRow, error) {
	n := events.CampaignNews{Change: change, Delta: delta, Why: why}
	err := s.Row(ctx, `SELECT id, kind, title, state, starts_at, ends_at, stock_total, stock_left FROM campaigns WHERE number = ?`, []any{number},
		&n.ID, &n.Kind, &n.Title, &n.State, ms(&n.StartsAt), ms(&n.EndsAt), &n.Stock, &n.StockLeft)
	return feedRow{feedCampaign, at.UnixMilli(), n}, orNotFound(err, aCampaign, number)
}

// stockRows adds feed rows when a batch took the last of a campaign's stock, or
// so much that little is left, or withdrew some.
func stockRows(ctx context.Context, s *sqldb.Session, rows []feedRow, b *live.Batch, sum *batchSums) ([]feedRow, error) {
	if sum.units+sum.withdrawn == 0 {
		return rows, nil
	}
	left, err := sqldb.Get[int64](ctx, s, `SELECT stock_left FROM campaigns WHERE number = ?`, b.Shard.Campaign)
	if err != nil {
		return rows, err
	}
	// The order is the one in which the batch did it. A row of the feed has the
	// campaign as it stands when the row is written.
	for _, one := range []struct {
		happened bool
		change   events.CampaignChange
		delta    int64
	}{
		{sum.withdrawn > 0, events.CampaignStockChanged, -sum.withdrawn},
		{sum.low, events.CampaignLowStock, 0},
		{left == 0, events.CampaignSoldOut, 0},
	} {
		if !one.happened {
			continue
		}
		row, err := campaignRow(ctx, s, b.Shard.Campaign, s.Now(), one.change, one.delta, "")
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// appendStockChange tells the feed that a campaign's stock was changed by an
// administrator. Changes of drafts are not told.
func appendStockChange(ctx context.Context, s *sqldb.Session, r campaigns.Restock) error {
	state, err := sqldb.Get[dibs.State](ctx, s, `SELECT state FROM campaigns WHERE number = ?`, r.Shard.Campaign)
	if err != nil || state == dibs.Draft {
		return err
	}
	row, err := campaignRow(ctx, s, r.Shard.Campaign, s.Now(), events.CampaignStockChanged, r.Delta, r.Why)
	if err != nil {
		return err
	}
	return appendFeed(ctx, s, []feedRow{row})
}

// appendCampaignChange marks whether the campaign's stock is low by its new
// definition, and tells the feed what was changed. Changes of drafts are not
// told.
func appendCampaignChange(ctx context.Context, s *sqldb.Session, c *dibs.Campaign, before dibs.State) error {
	low, err := markLow(ctx, s, c.Number)
	if err != nil {
		return err
	}
	if err := clearLow(ctx, s, c.Number); err != nil || c.State == dibs.Draft {
		return err
	}
	changes := []events.CampaignChange{changeOf(c.State, before)}
	if low {
		changes = append(changes, events.CampaignLowStock)
	}
	var rows []feedRow
	for _, change := range changes {
		row, err := campaignRow(ctx, s, c.Number, c.UpdatedAt, change, 0, "")
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	return appendFeed(ctx, s, rows)
}

// changeOf names a change by the states before and after it.
func changeOf(now, before dibs.State) events.CampaignChange {
	switch {
	case now == before:
		return events.CampaignChanged
	case now == dibs.PausedState:
		return events.CampaignPaused
	case now == dibs.EndedState:
		return events.CampaignEnded
	case before == dibs.PausedState:
		return events.CampaignResumed
	}
	return events.CampaignPublished
}

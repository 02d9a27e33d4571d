package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/events"
)

// The kinds of the feed's rows.
const (
	feedGrants   = "grants"
	feedSteps    = "steps"
	feedCampaign = "campaign"
	feedPush     = "push"
)

// feedRowMost is the most events that one row tells. A row is taken as a whole:
// after a crash so many are told again.
const feedRowMost = 512

// told is a row of the feed that a transaction writes.
type told struct {
	kind string
	at   int64
	what any
}

// grantsTold is the payload of a row of grants: those of a shard after one
// place and up to another.
type grantsTold struct {
	Campaign uint32    `json:"campaign"`
	Shard    uint8     `json:"shard"`
	From     [2]uint32 `json:"from"`
	To       [2]uint32 `json:"to"`
}

// stepTold is a step in the payload of a row of steps: the claim's campaign,
// shard, epoch and seq, and the number of the step.
type stepTold [5]uint32

// publish writes to the feed. It comes last in a transaction: from then on until
// the commit everybody else who tells something waits, so that rows can be seen
// in the order of their numbers.
func publish(ctx context.Context, s *session, rows []told) error {
	_, err := announceAt(ctx, s, rows)
	return err
}

// announceAt is publish, and returns the number of the last row; 0 without rows.
func announceAt(ctx context.Context, s *session, rows []told) (last int64, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	n, err := s.exec(ctx, `UPDATE feed_head SET last_id = last_id + ? WHERE one = 1`, len(rows))
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: the feed has no head", dibs.ErrCorrupt)
	}
	if err != nil {
		return 0, err
	}
	if err := s.row(ctx, `SELECT last_id FROM feed_head WHERE one = 1`, nil, &last); err != nil {
		return 0, err
	}
	args := make([]any, 0, 4*len(rows))
	for i, r := range rows {
		payload, err := json.Marshal(r.what)
		if err != nil {
			return 0, fmt.Errorf("write to the feed: %w", err)
		}
		args = append(args, last-int64(len(rows)-1-i), r.kind, r.at, payload)
	}
	return last, insertRows(ctx, s, `INSERT INTO feed (id, kind, at, payload) VALUES `, args, 4)
}

// tellGrants adds rows for a batch's grants.
func tellGrants(rows []told, b *dibs.Batch) []told {
	from, n := b.From, 0
	var last *dibs.Entry
	add := func() {
		if n == 0 {
			return
		}
		rows = append(rows, told{feedGrants, last.At, grantsTold{
			Campaign: b.Shard.Campaign, Shard: b.Shard.Shard,
			From: [2]uint32{uint32(from.Epoch), from.Seq}, To: [2]uint32{uint32(last.Epoch), last.Seq},
		}})
		from, n = last.Cursor, 0
	}
	for i := range b.Entries {
		if b.Entries[i].Kind != dibs.EntryGrant {
			continue
		}
		last = &b.Entries[i]
		if n++; n == feedRowMost {
			add()
		}
	}
	add()
	return rows
}

// tellSteps tells the steps that claims have just made.
func tellSteps(ctx context.Context, s *session, changed []*life) error {
	var rows []told
	var steps []stepTold
	var at int64
	add := func() {
		if len(steps) > 0 {
			rows, steps = append(rows, told{feedSteps, at, steps}), nil
		}
	}
	for _, v := range changed {
		p := v.claim.Position
		for i := v.steps; i < len(v.claim.Events); i++ {
			e := &v.claim.Events[i]
			at = e.At.UnixMilli()
			steps = append(steps, stepTold{p.Campaign, uint32(p.Shard), uint32(p.Epoch), p.Seq, uint32(e.N)})
			if len(steps) == feedRowMost {
				add()
			}
		}
	}
	add()
	return publish(ctx, s, rows)
}

// campaignTold is a change of a campaign as it stands in the transaction.
func campaignTold(ctx context.Context, s *session, number uint32, at time.Time, change events.CampaignChange, delta int64, why string) (told, error) {
	n := events.CampaignNews{Change: change, Delta: delta, Why: why}
	var starts, ends int64
	err := s.row(ctx, `SELECT id, kind, title, state, starts_at, ends_at, stock_total, stock_left FROM campaigns WHERE number = ?`, []any{number},
		&n.ID, &n.Kind, &n.Title, &n.State, &starts, &ends, &n.Stock, &n.StockLeft)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound(aCampaign, number)
	}
	n.StartsAt, n.EndsAt = fromMS(starts), fromMS(ends)
	return told{feedCampaign, at.UnixMilli(), n}, err
}

// tellStock adds rows when a batch took the last of a campaign's stock, or so
// much that little is left, or withdrew some.
func (l *Ledger) tellStock(ctx context.Context, s *session, rows []told, b *dibs.Batch, sum *batchSums) ([]told, error) {
	if sum.units+sum.withdrawn == 0 {
		return rows, nil
	}
	var left int64
	if err := s.row(ctx, `SELECT stock_left FROM campaigns WHERE number = ?`, []any{b.Shard.Campaign}, &left); err != nil {
		return rows, err
	}
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
		row, err := campaignTold(ctx, s, b.Shard.Campaign, l.opts.Now(), one.change, one.delta, "")
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// noteChange notes whether a campaign's stock is low by what it is now, and
// tells that it was changed; changes of drafts are nobody's business.
func (l *Ledger) noteChange(ctx context.Context, s *session, c *dibs.Campaign, before dibs.State) error {
	low, err := l.noticeLow(ctx, s, c.Number)
	if err != nil {
		return err
	}
	if err := noticeMore(ctx, s, c.Number); err != nil || c.State == dibs.Draft {
		return err
	}
	changes := []events.CampaignChange{changeOf(c.State, before)}
	if low {
		changes = append(changes, events.CampaignLowStock)
	}
	var rows []told
	for _, change := range changes {
		row, err := campaignTold(ctx, s, c.Number, c.UpdatedAt, change, 0, "")
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	return publish(ctx, s, rows)
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

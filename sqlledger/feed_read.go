package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/events"
)

// feedRow is a row of the feed as it is read.
type feedRow struct {
	id      int64
	kind    string
	at      time.Time
	payload []byte
}

// feedPage is the most rows that are read at a time.
const feedPage = 256

// News implements dibs.Feed.
func (l *Ledger) News(ctx context.Context, after int64, most int) (news []events.News, last int64, err error) {
	err = l.snapshot(long(ctx, longStatement), "read the feed", func(s *session) error {
		news, last = nil, after
		var rows []feedRow
		if err := s.each(ctx, `SELECT id, kind, at, payload FROM feed WHERE id > ? ORDER BY id LIMIT ?`,
			[]any{after, feedPage}, func(r *sql.Rows) error {
				var row feedRow
				var at int64
				err := r.Scan(&row.id, &row.kind, &at, &row.payload)
				row.at = fromMS(at)
				rows = append(rows, row)
				return err
			}); err != nil {
			return err
		}
		for i := range rows {
			if len(news) > 0 && len(news)+feedRowMost > most {
				break
			}
			more, err := l.newsOf(ctx, s, &rows[i])
			if err != nil {
				return fmt.Errorf("row %d: %w", rows[i].id, err)
			}
			news, last = append(news, more...), rows[i].id
		}
		return nil
	})
	return news, last, err
}

// newsOf is what one row tells.
func (l *Ledger) newsOf(ctx context.Context, s *session, row *feedRow) ([]events.News, error) {
	switch row.kind {
	case feedGrants:
		var g grantsTold
		if err := decodeRow(row, &g); err != nil {
			return nil, err
		}
		return l.grantNews(ctx, s, row, &g)
	case feedSteps:
		var steps []stepTold
		if err := decodeRow(row, &steps); err != nil {
			return nil, err
		}
		return l.stepNews(ctx, s, row, steps)
	case feedCampaign:
		n := &events.CampaignNews{}
		if err := decodeRow(row, n); err != nil {
			return nil, err
		}
		return []events.News{{Row: row.id, At: row.at, Campaign: n}}, nil
	case feedPush:
		p := &events.Push{}
		if err := decodeRow(row, p); err != nil {
			return nil, err
		}
		return []events.News{{Row: row.id, At: row.at, Push: p}}, nil
	}
	return nil, fmt.Errorf("%w: a row of the feed is of no known kind %q", dibs.ErrCorrupt, row.kind)
}

func decodeRow(row *feedRow, into any) error {
	if err := json.Unmarshal(row.payload, into); err != nil {
		return fmt.Errorf("%w: a row of the feed: %w", dibs.ErrCorrupt, err)
	}
	return nil
}

// grantNews reads the claims that were granted between two places, as they
// were then.
func (l *Ledger) grantNews(ctx context.Context, s *session, row *feedRow, g *grantsTold) ([]events.News, error) {
	columns := []string{"epoch", "seq"}
	after, args := s.d.compare(columns, ">", int64(g.From[0]), int64(g.From[1]))
	upTo, more := s.d.compare(columns, "<=", int64(g.To[0]), int64(g.To[1]))
	var claims []dibs.Claim
	err := s.each(ctx, `SELECT `+claimColumns+` FROM claims WHERE campaign = ? AND shard = ? AND `+after+` AND `+upTo+` ORDER BY epoch, seq`,
		slices.Concat([]any{g.Campaign, g.Shard}, args, more), func(r *sql.Rows) error {
			claims = append(claims, dibs.Claim{})
			return scanClaim(r, &claims[len(claims)-1])
		})
	if err != nil {
		return nil, err
	}
	if err := l.itemsInChunks(ctx, s, claims); err != nil {
		return nil, err
	}
	news := make([]events.News, len(claims))
	for i := range claims {
		asGranted(&claims[i])
		news[i] = events.News{Row: row.id, At: claims[i].CreatedAt, Claim: &claims[i]}
	}
	return news, nil
}

// asGranted takes back from a claim's row what happened since its grant.
func asGranted(c *dibs.Claim) {
	c.Restocked, c.Events, c.Payment, c.Redemption, c.Shipment = false, nil, nil, nil, nil
	if c.Status = dibs.Confirmed; !c.PayBy.IsZero() {
		c.Status = dibs.Pending
	}
}

// stepNews reads claims as they were after some of their steps.
func (l *Ledger) stepNews(ctx context.Context, s *session, row *feedRow, steps []stepTold) ([]events.News, error) {
	at := make([]dibs.Position, len(steps))
	for i, st := range steps {
		at[i] = dibs.Position{
			ShardID: dibs.ShardID{Campaign: st[0], Shard: uint8(st[1])}, Cursor: dibs.Cursor{Epoch: uint16(st[2]), Seq: st[3]},
		}
	}
	var claims []dibs.Claim
	for _, r := range runsOf(at) {
		if err := r.each(func(seqs []any) error {
			where, args := r.at(s.d, "claims", "epoch", "seq", seqs)
			return s.each(ctx, "SELECT "+claimColumns+" FROM claims WHERE "+where, args, func(rows *sql.Rows) error {
				claims = append(claims, dibs.Claim{})
				return scanClaim(rows, &claims[len(claims)-1])
			})
		}); err != nil {
			return nil, err
		}
	}
	if err := eventsOf(ctx, s, pointers(claims)); err != nil {
		return nil, err
	}
	if err := l.itemsInChunks(ctx, s, claims); err != nil {
		return nil, err
	}
	byPlace := make(map[dibs.Position]*dibs.Claim, len(claims))
	for i := range claims {
		byPlace[claims[i].Position] = &claims[i]
	}
	news := make([]events.News, 0, len(steps))
	for i, st := range steps {
		c, n := byPlace[at[i]], int(st[4])
		if c == nil || n > len(c.Events) {
			return nil, fmt.Errorf("%w: the claim %s has no step %d", dibs.ErrCorrupt, at[i], n)
		}
		then := *c
		asGranted(&then)
		for j := range n {
			then.Apply(&c.Events[j])
		}
		if gone(&then) {
			then.Items = nil
		}
		news = append(news, events.News{Row: row.id, At: c.Events[n-1].At, Claim: &then, N: n})
	}
	return news, nil
}

// itemsInChunks fills in the items of many claims.
func (l *Ledger) itemsInChunks(ctx context.Context, s *session, claims []dibs.Claim) error {
	kinds := make(map[uint32]dibs.StockKind)
	for part := range slices.Chunk(claims, dibs.MaxPage) {
		some := false
		for i := range part {
			n := part[i].Position.Campaign
			if _, ok := kinds[n]; !ok {
				var kind dibs.StockKind
				if err := s.row(ctx, `SELECT stock_kind FROM campaigns WHERE number = ?`, []any{n}, &kind); err != nil {
					return err
				}
				kinds[n] = kind
			}
			some = some || kinds[n] != dibs.Units
		}
		if !some {
			continue
		}
		if err := l.itemsOf(ctx, s, part); err != nil {
			return err
		}
	}
	return nil
}

package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/events"
)

// storedRow is a row of the feed as it is read.
type storedRow struct {
	id      int64
	kind    string
	at      time.Time
	payload []byte
}

// scanStoredRow reads id, kind, at and payload.
func scanStoredRow(rows *sql.Rows, row *storedRow) error {
	return rows.Scan(&row.id, &row.kind, ms(&row.at), &row.payload)
}

// decode reads the payload. A payload that cannot be read is ErrCorrupt: rows
// are written by programs of this schema or older.
func (row *storedRow) decode(into any) error {
	if err := json.Unmarshal(row.payload, into); err != nil {
		return fmt.Errorf("%w: a row of the feed: %w", dibs.ErrCorrupt, err)
	}
	return nil
}

// feedPage is the most rows that are read at a time.
const feedPage = 256

// News returns what happened after a row, in order: whole rows, of about most
// events together, and the last row that was read; after itself when there is
// none. Claims are as they were at their event.
func (fd *Feed) News(ctx context.Context, after int64, most int) (news []events.News, last int64, err error) {
	last = after
	err = fd.db.Snapshot(ctx, "read the feed", func(s *sqldb.Session) error {
		rows, err := sqldb.List(ctx, s, `SELECT id, kind, at, payload FROM feed WHERE id > ? ORDER BY id LIMIT ?`, []any{after, feedPage}, scanStoredRow)
		if err != nil {
			return err
		}
		for i := range rows {
			// A row is never taken in part. The first one is taken however
			// large it is, so that reading gets on.
			if len(news) > 0 && len(news)+feedRowMost > most {
				break
			}
			more, err := rows[i].events(ctx, s)
			if err != nil {
				return fmt.Errorf("row %d: %w", rows[i].id, err)
			}
			news, last = append(news, more...), rows[i].id
		}
		return nil
	})
	return news, last, err
}

// events reads what the row stands for. A row of grants or steps names claims
// and is filled in from their rows; other rows have all in their payload, as it
// was when they were written.
func (row *storedRow) events(ctx context.Context, s *sqldb.Session) ([]events.News, error) {
	switch row.kind {
	case feedGrants:
		var g grantRange
		if err := row.decode(&g); err != nil {
			return nil, err
		}
		return row.grants(ctx, s, &g)
	case feedSteps:
		var steps []stepRef
		if err := row.decode(&steps); err != nil {
			return nil, err
		}
		return row.steps(ctx, s, steps)
	case feedCampaign:
		n := &events.CampaignNews{}
		return []events.News{{Row: row.id, At: row.at, Campaign: n}}, row.decode(n)
	case feedPush:
		p := &events.Push{}
		return []events.News{{Row: row.id, At: row.at, Push: p}}, row.decode(p)
	}
	return nil, fmt.Errorf("%w: a row of the feed is of no known kind %q", dibs.ErrCorrupt, row.kind)
}

// grants reads the claims that were granted between two positions, as they were
// then.
func (row *storedRow) grants(ctx context.Context, s *sqldb.Session, g *grantRange) ([]events.News, error) {
	columns := []string{"epoch", "seq"}
	after, args := s.Compare(columns, ">", int64(g.From[0]), int64(g.From[1]))
	upTo, more := s.Compare(columns, "<=", int64(g.To[0]), int64(g.To[1]))
	where, args := after+` AND `+upTo, slices.Concat([]any{g.Campaign, g.Shard}, args, more)
	claims, err := sqldb.List(ctx, s, `SELECT `+claimColumns+` FROM claims WHERE campaign = ? AND shard = ? AND `+where+` ORDER BY epoch, seq`, args, scanClaim)
	if err != nil {
		return nil, err
	}
	if err := readManyItems(ctx, s, claims); err != nil {
		return nil, err
	}
	if err := readReferences(ctx, s, claims, where, args); err != nil {
		return nil, err
	}
	news := make([]events.News, len(claims))
	for i := range claims {
		asGranted(&claims[i])
		news[i] = events.News{Row: row.id, At: claims[i].CreatedAt, Claim: &claims[i]}
	}
	return news, nil
}

// asGranted takes back from a claim what happened since its grant. The rest is as the
// grant wrote it, and later steps do not change it: quantity, amount,
// deadline, items, and the user, unless the user was erased.
func asGranted(c *dibs.Claim) {
	c.Restocked, c.Events, c.Payment, c.Redemption, c.Shipment = false, nil, nil, nil, nil
	c.UpdatedAt, c.Comment = c.CreatedAt, ""
	if c.Status = dibs.Confirmed; !c.PayBy.IsZero() {
		c.Status = dibs.Pending
	}
}

// steps reads claims as they were after some of their steps.
func (row *storedRow) steps(ctx context.Context, s *sqldb.Session, steps []stepRef) ([]events.News, error) {
	at := make([]dibs.Position, len(steps))
	for i, st := range steps {
		at[i] = dibs.Position{
			ShardID: dibs.ShardID{Campaign: st[0], Shard: uint8(st[1])}, Cursor: dibs.Cursor{Epoch: uint16(st[2]), Seq: st[3]},
		}
	}
	byPosition, err := readClaims(ctx, s, at)
	if err != nil {
		return nil, err
	}
	news := make([]events.News, 0, len(steps))
	// The claim's later events are left out: an event shows the claim as it was
	// then, whenever it is read.
	for i, st := range steps {
		c, n := byPosition[at[i]], int(st[4])
		if c == nil || n > len(c.Events) {
			return nil, fmt.Errorf("%w: the claim %s has no step %d", dibs.ErrCorrupt, at[i], n)
		}
		then := *c
		asGranted(&then)
		for j := range n {
			then.Apply(&c.Events[j])
		}
		if givenBack(&then) {
			then.Items = nil
		}
		news = append(news, events.News{Row: row.id, At: c.Events[n-1].At, Claim: &then, N: n})
	}
	return news, nil
}

// readClaims reads claims at positions, with their events and items. A position
// that has no claim is missing in the map.
func readClaims(ctx context.Context, s *sqldb.Session, at []dibs.Position) (map[dibs.Position]*dibs.Claim, error) {
	var claims []dibs.Claim
	if err := eachOf(ctx, s, at, "claims", claimColumns, func(_ *run, rows *sql.Rows) error {
		claims = append(claims, dibs.Claim{})
		return scanClaim(rows, &claims[len(claims)-1])
	}); err != nil {
		return nil, err
	}
	if err := applyEvents(ctx, s, pointers(claims)); err != nil {
		return nil, err
	}
	if err := readNotes(ctx, s, pointers(claims)); err != nil {
		return nil, err
	}
	if err := readManyItems(ctx, s, claims); err != nil {
		return nil, err
	}
	byPosition := make(map[dibs.Position]*dibs.Claim, len(claims))
	for i := range claims {
		byPosition[claims[i].Position] = &claims[i]
	}
	return byPosition, nil
}

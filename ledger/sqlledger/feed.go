package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

// Feed keeps what the world is to be told, and how far each sink has taken it.
//
// Rows are numbered without gaps in the order in which they become visible: a
// transaction that appends locks the feed's head until it commits. A sink is
// held by one process at a time, by a lease on the clock that all processes
// share, and moves by compare-and-set. A transaction that locks several of the
// feed's tables does it in the order feed_head, sinks, webhook_endpoints,
// webhook_deliveries.
type Feed struct{ db *sqldb.DB }

// FeedHead returns the number of the last row, and when the oldest row after a
// row was written; the zero time when there is none.
func (fd *Feed) FeedHead(ctx context.Context, after int64) (head int64, oldest time.Time, err error) {
	err = fd.db.ReadRow(ctx, "read the feed's head", `SELECT last_id, COALESCE((SELECT at FROM feed WHERE id > ? ORDER BY id LIMIT 1), 0)
		FROM feed_head WHERE one = 1`, []any{after}, &head, optionalMS(&oldest))
	return head, oldest, err
}

// trimMost is the most rows of the feed that one transaction drops.
const trimMost = 10_000

// TrimFeed drops rows that were written before a time and that every sink has
// taken, some at a time, and forgets sinks that were not seen for as long as
// forget says.
func (fd *Feed) TrimFeed(ctx context.Context, before time.Time, forget time.Duration) (dropped int64, err error) {
	for {
		var n int64
		err := fd.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "trim the feed", func(s *sqldb.Session) error {
			now, err := s.SharedNow(ctx)
			if err != nil {
				return err
			}
			if err := s.Do(ctx, `DELETE FROM sinks WHERE seen_at < ?`, now-forget.Milliseconds()); err != nil {
				return err
			}
			var first, most sql.NullInt64
			if err := s.Row(ctx, `SELECT (SELECT MIN(id) FROM feed), (SELECT MIN(taken) FROM sinks)`, nil, &first, &most); err != nil {
				return err
			}
			// Not beyond what the slowest sink has taken. Without sinks, age
			// alone decides.
			upTo := first.Int64 + trimMost - 1
			if most.Valid {
				upTo = min(upTo, most.Int64)
			}
			if n, err = s.Exec(ctx, `DELETE FROM feed WHERE id <= ? AND at < ?`, upTo, before.UnixMilli()); err != nil || n == 0 {
				return err
			}
			// Rows of the feed that were too young to be dropped keep theirs.
			return s.Do(ctx, `DELETE FROM announcement_rows WHERE feed_row <= ?
				AND NOT EXISTS (SELECT 1 FROM feed f WHERE f.id = announcement_rows.feed_row)`, upTo)
		})
		dropped += n
		if err != nil || n < trimMost {
			return dropped, err
		}
	}
}

// sinkColumns are the columns of a sink. taken is the last row that it has
// taken, owner the process that does it, lease_until and seen_at times of the
// clock that all processes share. published counts its events, failures those
// attempts that failed since the last success, with the problem of the last
// one.
const sinkColumns = `name, taken, owner, lease_until, seen_at, published, failures, problem`

// scanSink reads sinkColumns.
func scanSink(rows *sql.Rows, st *events.SinkState) error {
	return rows.Scan(&st.Name, &st.Taken, &st.Owner, optionalMS(&st.LeaseUntil), ms(&st.SeenAt),
		&st.Published, &st.Failures, &st.Problem)
}

// Sinks lists the sinks by name.
func (fd *Feed) Sinks(ctx context.Context) ([]events.SinkState, error) {
	return sqldb.ReadList(ctx, fd.db, "list the sinks", `SELECT `+sinkColumns+` FROM sinks ORDER BY name`, nil, scanSink)
}

// HoldSink makes owner the process that takes the feed for a sink, for the time
// of the lease, unless another process does. It returns the sink, whichever
// process holds it. A new sink begins at the feed's end. ErrSinkTaken for the
// sink of webhooks when there is no endpoint.
func (fd *Feed) HoldSink(ctx context.Context, name, owner string, lease time.Duration) (events.SinkState, error) {
	return sqldb.Result(ctx, fd.db.Write, "hold the sink "+name, func(s *sqldb.Session) (st events.SinkState, err error) {
		now, err := s.SharedNow(ctx)
		if err == nil {
			err = ensureSink(ctx, s, name, now)
		}
		if err == nil {
			err = s.Do(ctx, `UPDATE sinks SET owner = ?, lease_until = ?, seen_at = ? WHERE name = ? AND (owner = ? OR lease_until <= ?)`,
				owner, now+lease.Milliseconds(), now, name, owner, now)
		}
		if err == nil {
			err = sqldb.One(ctx, s, `SELECT `+sinkColumns+` FROM sinks WHERE name = ?`, []any{name}, events.ErrSinkTaken, &st, scanSink)
		}
		return st, err
	})
}

// ensureSink makes a sink that does not exist. It locks the feed's head for
// that, as do transactions that add or delete endpoints of webhooks: the sink
// of webhooks exists if and only if an endpoint does.
func ensureSink(ctx context.Context, s *sqldb.Session, name string, now int64) error {
	var n int64
	if err := s.Row(ctx, `SELECT COUNT(*) FROM sinks WHERE name = ?`, []any{name}, &n); err != nil || n > 0 {
		return err
	}
	last, err := lockFeed(ctx, s)
	if err != nil {
		return err
	}
	if name == webhooks.WebhookSink {
		if err := s.Row(ctx, `SELECT COUNT(*) FROM webhook_endpoints`, nil, &n); err != nil || n == 0 {
			return err
		}
	}
	return insertSink(ctx, s, name, last, now)
}

// insertSink makes a sink that has taken all up to a row, unless it exists. One
// that exists stays as it is.
func insertSink(ctx context.Context, s *sqldb.Session, name string, taken, now int64) error {
	_, err := s.InsertNew(ctx, `INSERT INTO sinks (`+sinkColumns+`) VALUES (?,?,'',0,?,0,0,'')`, name, taken, now)
	return err
}

// lockFeed locks the feed's head, so that nothing is appended until the
// transaction ends. It returns the number of the last row.
func lockFeed(ctx context.Context, s *sqldb.Session) (last int64, err error) {
	err = s.Row(ctx, `SELECT last_id FROM feed_head WHERE one = 1`+s.ForUpdate, nil, &last)
	return last, err
}

// TakeNews stores what the owner has taken, and renews its lease. ErrSinkTaken
// when another process holds the sink by now.
func (fd *Feed) TakeNews(ctx context.Context, t events.Taking) error {
	return fd.db.Write(ctx, "take from the feed", func(s *sqldb.Session) error { return takeFeed(ctx, s, &t) })
}

// takeFeed moves a sink by compare-and-set. It also renews the lease, and ends
// the count of failures.
func takeFeed(ctx context.Context, s *sqldb.Session, t *events.Taking) error {
	now, err := s.SharedNow(ctx)
	if err != nil {
		return err
	}
	return s.DoOne(ctx, events.ErrSinkTaken, `UPDATE sinks
		SET taken = ?, lease_until = ?, seen_at = ?, published = published + ?, failures = 0, problem = ''
		WHERE name = ? AND owner = ? AND taken = ?`,
		t.To, now+t.Lease.Milliseconds(), now, t.Events, t.Name, t.Owner, t.From)
}

// SinkFailed counts that the owner could not pass the feed on, with the
// problem.
func (fd *Feed) SinkFailed(ctx context.Context, name, owner, problem string) error {
	return fd.db.Do(ctx, "note a failure of the sink "+name, `UPDATE sinks SET failures = failures + 1, problem = ? WHERE name = ? AND owner = ?`,
		storable(problem), name, owner)
}

// LetSinkGo ends the owner's lease.
func (fd *Feed) LetSinkGo(ctx context.Context, name, owner string) error {
	return fd.db.Do(ctx, "release the sink "+name, `UPDATE sinks SET owner = '', lease_until = 0 WHERE name = ? AND owner = ?`, name, owner)
}

// The kinds of the feed's rows.
const (
	feedGrants   = "grants"
	feedSteps    = "steps"
	feedCampaign = "campaign"
	feedPush     = "push"
)

// feedRowMost is the most events of one row. A row is taken as a whole: after a
// crash so many are sent again.
const feedRowMost = 512

// feedRow is a row of the feed that a transaction appends. at is in
// milliseconds since 1970.
type feedRow struct {
	kind    string
	at      int64
	payload any
}

// grantRange is the payload of a row of grants: those of a shard after one
// position and up to another, as epoch and seq.
type grantRange struct {
	Campaign uint32    `json:"campaign"`
	Shard    uint8     `json:"shard"`
	From     [2]uint32 `json:"from"`
	To       [2]uint32 `json:"to"`
}

// stepRef is a step in the payload of a row of steps: the claim's campaign,
// shard, epoch and seq, and the number of the step.
type stepRef [5]uint32

// appendFeed appends rows to the feed. It comes last in a transaction: until
// the commit every other transaction that appends waits for the feed's head, so
// that rows become visible in the order of their numbers.
func appendFeed(ctx context.Context, s *sqldb.Session, rows []feedRow) error {
	_, err := appendFeedAt(ctx, s, rows)
	return err
}

// appendFeedAt is appendFeed, and returns the number of the last row; 0 without
// rows.
func appendFeedAt(ctx context.Context, s *sqldb.Session, rows []feedRow) (last int64, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	if err := s.DoOne(ctx, errNoHead, `UPDATE feed_head SET last_id = last_id + ? WHERE one = 1`, len(rows)); err != nil {
		return 0, err
	}
	// The UPDATE has locked the head: this is the number that it wrote.
	if err := s.Row(ctx, `SELECT last_id FROM feed_head WHERE one = 1`, nil, &last); err != nil {
		return 0, err
	}
	args := make([]any, 0, 4*len(rows))
	for i, r := range rows {
		payload, err := json.Marshal(r.payload)
		if err != nil {
			return 0, fmt.Errorf("write to the feed: %w", err)
		}
		args = append(args, last-int64(len(rows)-1-i), r.kind, r.at, payload)
	}
	return last, s.InsertRows(ctx, `INSERT INTO feed (id, kind, at, payload) VALUES `, args, 4)
}

var errNoHead = fmt.Errorf("%w: the feed has no head", dibs.ErrCorrupt)

// newGrantRow is a row for the grants of a shard after one position and up to
// another.
func newGrantRow(shard dibs.ShardID, from, to dibs.Cursor, at int64) feedRow {
	return feedRow{feedGrants, at, grantRange{
		Campaign: shard.Campaign, Shard: shard.Shard,
		From: [2]uint32{uint32(from.Epoch), from.Seq}, To: [2]uint32{uint32(to.Epoch), to.Seq},
	}}
}

// grantRows adds rows for a batch's grants.
func grantRows(rows []feedRow, b *live.Batch) []feedRow {
	from, n := b.From, 0
	var last *dibs.Entry
	add := func() {
		if n > 0 {
			rows = append(rows, newGrantRow(b.Shard, from, last.Cursor, last.At))
			from, n = last.Cursor, 0
		}
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

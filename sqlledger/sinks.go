package sqlledger

import (
	"context"
	"database/sql"
	"time"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

// FeedHead implements dibs.Feed.
func (l *Ledger) FeedHead(ctx context.Context, after int64) (head int64, oldest time.Time, err error) {
	var at sql.NullInt64
	err = l.read(ctx, "read the feed's head", func(s *session) error {
		return s.row(ctx, `SELECT last_id, (SELECT at FROM feed WHERE id > ? ORDER BY id LIMIT 1) FROM feed_head WHERE one = 1`,
			[]any{after}, &head, &at)
	})
	if at.Valid {
		oldest = fromMS(at.Int64)
	}
	return head, oldest, err
}

// trimMost is the most rows of the feed that one transaction drops.
const trimMost = 10_000

// TrimFeed implements dibs.Feed.
func (l *Ledger) TrimFeed(ctx context.Context, before time.Time, forget time.Duration) (dropped int64, err error) {
	for {
		var n int64
		err := l.write(long(ctx, longStatement), "trim the feed", func(s *session) error {
			now, err := l.sharedNow(ctx, s)
			if err != nil {
				return err
			}
			if _, err := s.exec(ctx, `DELETE FROM sinks WHERE seen_at < ?`, now-forget.Milliseconds()); err != nil {
				return err
			}
			var first, most sql.NullInt64
			if err := s.row(ctx, `SELECT (SELECT MIN(id) FROM feed), (SELECT MIN(taken) FROM sinks)`, nil, &first, &most); err != nil {
				return err
			}
			upTo := first.Int64 + trimMost - 1
			if most.Valid {
				upTo = min(upTo, most.Int64)
			}
			if n, err = s.exec(ctx, `DELETE FROM feed WHERE id <= ? AND at < ?`, upTo, before.UnixMilli()); err != nil || n == 0 {
				return err
			}
			return dropPushRows(ctx, s, upTo)
		})
		dropped += n
		if err != nil || n < trimMost {
			return dropped, err
		}
	}
}

const sinkColumns = `name, taken, owner, lease_until, seen_at, published, failures, problem`

func scanSink(rows *sql.Rows) (events.SinkState, error) {
	var st events.SinkState
	var until, seen int64
	err := rows.Scan(&st.Name, &st.Taken, &st.Owner, &until, &seen, &st.Published, &st.Failures, &st.Problem)
	st.LeaseUntil, st.SeenAt = fromOptionalMS(until), fromMS(seen)
	return st, err
}

// Sinks implements dibs.Feed.
func (l *Ledger) Sinks(ctx context.Context) ([]events.SinkState, error) {
	var found []events.SinkState
	err := l.read(ctx, "list the sinks", func(s *session) error {
		return s.each(ctx, `SELECT `+sinkColumns+` FROM sinks ORDER BY name`, nil, func(rows *sql.Rows) error {
			st, err := scanSink(rows)
			found = append(found, st)
			return err
		})
	})
	return found, err
}

// sharedNow is the time, in milliseconds since 1970, by the clock that all
// processes of the ledger share: the server's, or for a file this machine's.
func (l *Ledger) sharedNow(ctx context.Context, s *session) (int64, error) {
	if l.d.server == nil {
		return l.opts.Now().UnixMilli(), nil
	}
	var seconds float64
	err := s.row(ctx, l.d.server.unixTime, nil, &seconds)
	return int64(seconds * 1000), err
}

// HoldSink implements dibs.Feed.
func (l *Ledger) HoldSink(ctx context.Context, name, owner string, lease time.Duration) (events.SinkState, error) {
	var st events.SinkState
	err := l.write(ctx, "hold the sink "+name, func(s *session) error {
		now, err := l.sharedNow(ctx, s)
		if err == nil {
			err = ensureSink(ctx, s, name, now)
		}
		if err != nil {
			return err
		}
		if _, err := s.exec(ctx, `UPDATE sinks SET owner = ?, lease_until = ?, seen_at = ? WHERE name = ? AND (owner = ? OR lease_until <= ?)`,
			owner, now+lease.Milliseconds(), now, name, owner, now); err != nil {
			return err
		}
		rows, err := s.query(ctx, `SELECT `+sinkColumns+` FROM sinks WHERE name = ?`, name)
		if err != nil {
			return err
		}
		return one(rows, events.ErrSinkTaken, func() (err error) {
			st, err = scanSink(rows)
			return err
		})
	})
	return st, err
}

// ensureSink makes a sink that is not there. The feed's head is locked then, as
// it is while endpoints of webhooks are added or deleted: their sink is there
// when, and only when, one of them is.
func ensureSink(ctx context.Context, s *session, name string, now int64) error {
	var n int64
	if err := s.row(ctx, `SELECT COUNT(*) FROM sinks WHERE name = ?`, []any{name}, &n); err != nil || n > 0 {
		return err
	}
	last, err := lockFeed(ctx, s)
	if err != nil {
		return err
	}
	if name == webhooks.WebhookSink {
		if err := s.row(ctx, `SELECT COUNT(*) FROM webhook_endpoints`, nil, &n); err != nil || n == 0 {
			return err
		}
	}
	_, err = s.insertNew(ctx, `INSERT INTO sinks (`+sinkColumns+`) VALUES (?,?,'',0,?,0,0,'')`, name, last, now)
	return err
}

// lockFeed locks the feed's head: the feed stands still until the transaction
// ends. It returns the number of the last row. Whoever locks several of the
// feed's tables does it in the order feed_head, sinks, webhook_endpoints,
// webhook_deliveries.
func lockFeed(ctx context.Context, s *session) (last int64, err error) {
	err = s.row(ctx, `SELECT last_id FROM feed_head WHERE one = 1`+s.d.forUpdate, nil, &last)
	return last, err
}

// TakeNews implements dibs.Feed.
func (l *Ledger) TakeNews(ctx context.Context, t events.Taking) error {
	return l.write(ctx, "take from the feed", func(s *session) error { return l.take(ctx, s, &t) })
}

// take moves a sink by compare-and-set.
func (l *Ledger) take(ctx context.Context, s *session, t *events.Taking) error {
	now, err := l.sharedNow(ctx, s)
	if err != nil {
		return err
	}
	n, err := s.exec(ctx, `UPDATE sinks SET taken = ?, lease_until = ?, seen_at = ?, published = published + ?, failures = 0, problem = ''
		WHERE name = ? AND owner = ? AND taken = ?`,
		t.To, now+t.Lease.Milliseconds(), now, t.Events, t.Name, t.Owner, t.From)
	if err == nil && n != 1 {
		err = events.ErrSinkTaken
	}
	return err
}

// SinkFailed implements dibs.Feed.
func (l *Ledger) SinkFailed(ctx context.Context, name, owner, problem string) error {
	return l.write(ctx, "note a failure of the sink "+name, func(s *session) error {
		_, err := s.exec(ctx, `UPDATE sinks SET failures = failures + 1, problem = ? WHERE name = ? AND owner = ?`, kept(problem), name, owner)
		return err
	})
}

// LetSinkGo implements dibs.Feed.
func (l *Ledger) LetSinkGo(ctx context.Context, name, owner string) error {
	return l.write(ctx, "let the sink "+name+" go", func(s *session) error {
		_, err := s.exec(ctx, `UPDATE sinks SET owner = '', lease_until = 0 WHERE name = ? AND owner = ?`, name, owner)
		return err
	})
}

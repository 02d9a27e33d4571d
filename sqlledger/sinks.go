package sqlledger

import (
	"context"
	"database/sql"
	"time"

	"github.com/dibs-dev/dibs"
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
func (l *Ledger) TrimFeed(ctx context.Context, before, forget time.Time) (dropped int64, err error) {
	for {
		var n int64
		err := l.write(ctx, "trim the feed", func(s *session) error {
			if _, err := s.exec(ctx, `DELETE FROM sinks WHERE seen_at < ?`, forget.UnixMilli()); err != nil {
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
			var err error
			n, err = s.exec(ctx, `DELETE FROM feed WHERE id <= ? AND at < ?`, upTo, before.UnixMilli())
			return err
		})
		dropped += n
		if err != nil || n < trimMost {
			return dropped, err
		}
	}
}

const sinkColumns = `name, taken, owner, lease_until, seen_at, published, failures, problem`

func scanSink(rows *sql.Rows) (dibs.SinkState, error) {
	var st dibs.SinkState
	var until, seen int64
	err := rows.Scan(&st.Name, &st.Taken, &st.Owner, &until, &seen, &st.Published, &st.Failures, &st.Problem)
	st.LeaseUntil, st.SeenAt = fromOptionalMS(until), fromMS(seen)
	return st, err
}

// Sinks implements dibs.Feed.
func (l *Ledger) Sinks(ctx context.Context) ([]dibs.SinkState, error) {
	var found []dibs.SinkState
	err := l.read(ctx, "list the sinks", func(s *session) error {
		return s.each(ctx, `SELECT `+sinkColumns+` FROM sinks ORDER BY name`, nil, func(rows *sql.Rows) error {
			st, err := scanSink(rows)
			found = append(found, st)
			return err
		})
	})
	return found, err
}

// HoldSink implements dibs.Feed.
func (l *Ledger) HoldSink(ctx context.Context, name, owner string, now, until time.Time) (dibs.SinkState, error) {
	var st dibs.SinkState
	err := l.write(ctx, "hold the sink "+name, func(s *session) error {
		var taken int64
		if err := s.row(ctx, `SELECT last_id FROM feed_head WHERE one = 1`, nil, &taken); err != nil {
			return err
		}
		if _, err := s.insertNew(ctx, `INSERT INTO sinks (`+sinkColumns+`) VALUES (?,?,'',0,?,0,0,'')`,
			name, taken, now.UnixMilli()); err != nil {
			return err
		}
		if _, err := s.exec(ctx, `UPDATE sinks SET owner = ?, lease_until = ?, seen_at = ? WHERE name = ? AND (owner = ? OR lease_until <= ?)`,
			owner, until.UnixMilli(), now.UnixMilli(), name, owner, now.UnixMilli()); err != nil {
			return err
		}
		rows, err := s.query(ctx, `SELECT `+sinkColumns+` FROM sinks WHERE name = ?`, name)
		if err != nil {
			return err
		}
		return one(rows, dibs.ErrSinkTaken, func() (err error) {
			st, err = scanSink(rows)
			return err
		})
	})
	return st, err
}

// TakeNews implements dibs.Feed.
func (l *Ledger) TakeNews(ctx context.Context, t dibs.Taking) error {
	return l.write(ctx, "take from the feed", func(s *session) error { return take(ctx, s, &t) })
}

// take moves a sink by compare-and-set.
func take(ctx context.Context, s *session, t *dibs.Taking) error {
	n, err := s.exec(ctx, `UPDATE sinks SET taken = ?, lease_until = ?, seen_at = ?, published = published + ?, failures = 0, problem = ''
		WHERE name = ? AND owner = ? AND taken = ?`,
		t.To, t.Until.UnixMilli(), t.At.UnixMilli(), t.Events, t.Name, t.Owner, t.From)
	if err == nil && n != 1 {
		err = dibs.ErrSinkTaken
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

package sqlledger

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// EnqueueFollowers implements dibs.Announcements.
func (l *Ledger) EnqueueFollowers(ctx context.Context, t dibs.PushTurn) (*dibs.Announcement, int, error) {
	var a stored
	var users []string
	err := l.write(ctx, "enqueue followers", func(s *session) error {
		a, users = stored{}, nil
		at, err := l.sharedNow(ctx, s)
		if err != nil {
			return err
		}
		// From here on the row is held: its places move once.
		n, err := s.exec(ctx, `UPDATE announcements SET owner = ?, lease_until = ? WHERE id = ? AND state = 'running' AND (owner = ? OR lease_until <= ?)`,
			t.Owner, at+t.Lease.Milliseconds(), t.ID, t.Owner, at)
		if err == nil && n != 1 {
			err = dibs.ErrPushTaken
		}
		if err == nil {
			a, err = announcement(ctx, s, t.ID, "")
		}
		if err != nil {
			return err
		}
		now, before := fromMS(at), a
		most := a.Allowance(now)
		if most == 0 {
			return nil
		}
		if users, err = nextFollowers(ctx, s, &a, most, now); err != nil {
			return err
		}
		return tellPushes(ctx, s, &a, &before, users, now)
	})
	if err != nil {
		return nil, 0, err
	}
	return &a.Announcement, len(users), nil
}

// nextFollowers reads the followers whose turn it is, and moves the place behind
// them. Who follows no longer is passed over.
func nextFollowers(ctx context.Context, s *session, a *stored, most int, now time.Time) (users []string, err error) {
	statement, to, read := `SELECT a.seq, f.user_id FROM announcement_firsts a
		LEFT JOIN followers f ON f.merchant = ? AND f.seq = a.seq AND f.follows = 1
		WHERE a.announcement = ? AND a.seq > ? ORDER BY a.seq LIMIT ?`, &a.FirstTo, 0
	args := []any{a.Merchant, a.number, a.FirstTo, most}
	if a.FirstDone {
		statement, to = `SELECT f.seq, f.user_id FROM followers f WHERE f.merchant = ? AND f.seq > ? AND f.seq <= ? AND f.follows = 1
			AND NOT EXISTS (SELECT 1 FROM announcement_firsts a WHERE a.announcement = ? AND a.seq = f.seq) ORDER BY f.seq LIMIT ?`, &a.RestTo
		args = []any{a.Merchant, a.RestTo, a.UpTo, a.number, most}
	}
	if err := s.each(ctx, statement, args, func(rows *sql.Rows) error {
		read++
		var user sql.NullString
		if err := rows.Scan(to, &user); err != nil {
			return err
		}
		if user.Valid {
			users = append(users, user.String)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	a.Enqueue(len(users), (len(users)+dibs.PushBatch-1)/dibs.PushBatch, now)
	switch {
	case read == most:
	case a.FirstDone:
		_, err = a.Become(dibs.AnnouncementDone, "", now)
	default:
		// The queue begins.
		a.FirstDone, a.PacedAt = true, now
	}
	return users, err
}

// tellPushes writes users to the feed, and the place behind them.
func tellPushes(ctx context.Context, s *session, a, before *stored, users []string, now time.Time) error {
	var starts, ends int64
	what := dibs.Announced{AnnouncementID: a.ID, CampaignID: a.CampaignID, Merchant: a.Merchant, Message: a.Message}
	if err := s.row(ctx, `SELECT kind, title, starts_at, ends_at FROM campaigns WHERE number = ?`, []any{a.Campaign},
		&what.Kind, &what.Title, &starts, &ends); err != nil {
		return err
	}
	what.StartsAt, what.EndsAt = fromMS(starts), fromMS(ends)
	if err := saveAnnouncement(ctx, s, a, before); err != nil {
		return err
	}
	var rows []told
	var args []any
	for part := range slices.Chunk(users, dibs.PushBatch) {
		n := before.Events + int64(len(rows)) + 1
		rows = append(rows, told{feedPush, now.UnixMilli(), dibs.Push{Announced: what, N: n, Users: part}})
		args = append(args, int64(0), a.number, len(part))
	}
	last, err := announceAt(ctx, s, rows)
	if err != nil {
		return err
	}
	for i := range rows {
		args[3*i] = last - int64(len(rows)-1-i)
	}
	return insertRows(ctx, s, `INSERT INTO announcement_rows (feed_row, announcement, recipients) VALUES `, args, 3)
}

// Untaken implements dibs.Announcements.
func (l *Ledger) Untaken(ctx context.Context, id string, row int64) (n int64, err error) {
	err = l.read(ctx, "count what is not taken of an announcement", func(s *session) error {
		return s.row(ctx, `SELECT COALESCE(SUM(r.recipients), 0) FROM announcements a JOIN announcement_rows r ON r.announcement = a.number
			WHERE a.id = ? AND r.feed_row > ?`, []any{id, row}, &n)
	})
	return n, err
}

// Pushes implements dibs.Announcements.
func (l *Ledger) Pushes(ctx context.Context, after int64, most int) (pushes []dibs.Push, last int64, err error) {
	err = l.read(ctx, "read announcements' events", func(s *session) error {
		pushes, last = nil, after
		return s.each(ctx, `SELECT f.id, f.payload FROM announcement_rows r JOIN feed f ON f.id = r.feed_row
			WHERE r.feed_row > ? ORDER BY r.feed_row LIMIT ?`, []any{after, most}, func(rows *sql.Rows) error {
			var row feedRow
			if err := rows.Scan(&row.id, &row.payload); err != nil {
				return err
			}
			pushes, last = append(pushes, dibs.Push{}), row.id
			return decodeRow(&row, &pushes[len(pushes)-1])
		})
	})
	return pushes, last, err
}

// dropPushRows forgets which rows tell announcements, of those up to one that the
// feed does not have any more.
func dropPushRows(ctx context.Context, s *session, upTo int64) error {
	_, err := s.exec(ctx, `DELETE FROM announcement_rows WHERE feed_row <= ? AND NOT EXISTS (SELECT 1 FROM feed f WHERE f.id = announcement_rows.feed_row)`, upTo)
	return err
}

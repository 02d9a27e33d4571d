package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/events"
)

// EnqueueFollowers implements dibs.Announcements.
func (l *Ledger) EnqueueFollowers(ctx context.Context, t events.PushTurn) (*announce.Announcement, int, error) {
	var a stored
	var users []string
	err := l.write(long(ctx, longStatement), "enqueue followers", func(s *session) error {
		a, users = stored{}, nil
		at, err := l.sharedNow(ctx, s)
		if err != nil {
			return err
		}
		// From here on the row is held: its places move once.
		n, err := s.exec(ctx, `UPDATE announcements SET owner = ?, lease_until = ? WHERE id = ? AND state = 'running' AND (owner = ? OR lease_until <= ?)`,
			t.Owner, at+t.Lease.Milliseconds(), t.ID, t.Owner, at)
		if err == nil && n != 1 {
			err = announce.ErrPushTaken
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
	var over bool
	if a.FirstDone {
		users, over, err = nextOfRest(ctx, s, a, most)
	} else {
		users, over, err = nextOfFirsts(ctx, s, a, most)
	}
	if err != nil {
		return nil, err
	}
	a.Enqueue(len(users), (len(users)+announce.PushBatch-1)/announce.PushBatch, now)
	switch {
	case !over:
	case a.FirstDone:
		_, err = a.Become(announce.AnnouncementDone, "", now)
	default:
		// The queue begins.
		a.FirstDone, a.PacedAt = true, now
	}
	return users, err
}

// nextOfFirsts reads some of the first by rank; over says that these are the last.
func nextOfFirsts(ctx context.Context, s *session, a *stored, most int) (users []string, over bool, err error) {
	seqs, err := firstsOf(ctx, s, a, a.FirstTo, a.UpTo, most)
	if err != nil || len(seqs) == 0 {
		return nil, true, err
	}
	keys := make([][]any, len(seqs))
	for i, seq := range seqs {
		keys[i] = []any{a.Merchant, seq}
	}
	a.FirstTo = seqs[len(seqs)-1]
	err = eachByKey(ctx, s, `SELECT user_id, follows FROM followers WHERE merchant = ? AND seq = ?`, keys, func(rows *sql.Rows) error {
		var user string
		var follows bool
		err := rows.Scan(&user, &follows)
		if follows {
			users = append(users, user)
		}
		return err
	})
	return users, len(seqs) < most, err
}

// firstsOf are the seqs of the first by rank in a range, in order.
func firstsOf(ctx context.Context, s *session, a *stored, after, upTo int64, most int) (seqs []int64, err error) {
	err = s.each(ctx, `SELECT seq FROM announcement_firsts WHERE announcement = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
		[]any{a.number, after, upTo, most}, func(rows *sql.Rows) error {
			var seq int64
			err := rows.Scan(&seq)
			seqs = append(seqs, seq)
			return err
		})
	return seqs, err
}

// restRows is how many followers are read at a time, at least, and restPages how
// often in one transaction: some of them may be passed over.
const (
	restRows  = 256
	restPages = 16
)

// nextOfRest reads some of the others; over says that these are the last.
func nextOfRest(ctx context.Context, s *session, a *stored, most int) (users []string, over bool, err error) {
	for range restPages {
		type follower struct {
			seq     int64
			user    string
			follows bool
		}
		var page []follower
		limit := max(most-len(users), restRows)
		// That they follow is looked at here: there is an index by seq alone.
		if err := s.each(ctx, `SELECT seq, user_id, follows FROM followers WHERE merchant = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
			[]any{a.Merchant, a.RestTo, a.UpTo, limit}, func(rows *sql.Rows) error {
				var f follower
				err := rows.Scan(&f.seq, &f.user, &f.follows)
				page = append(page, f)
				return err
			}); err != nil || len(page) == 0 {
			return users, true, err
		}
		var firsts []int64
		if a.First > 0 && a.Followers > a.Threshold {
			if firsts, err = firstsOf(ctx, s, a, a.RestTo, page[len(page)-1].seq, announce.MaxFirst); err != nil {
				return nil, false, err
			}
		}
		for _, f := range page {
			if len(users) == most {
				return users, false, nil
			}
			a.RestTo = f.seq
			if _, first := slices.BinarySearch(firsts, f.seq); f.follows && !first {
				users = append(users, f.user)
			}
		}
		if len(page) < limit {
			return users, true, nil
		}
		if len(users) == most {
			break
		}
	}
	return users, false, nil
}

// tellPushes writes users to the feed, and the place behind them.
func tellPushes(ctx context.Context, s *session, a, before *stored, users []string, now time.Time) error {
	var starts, ends int64
	what := events.Announced{AnnouncementID: a.ID, CampaignID: a.CampaignID, Merchant: a.Merchant, Message: a.Message}
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
	for part := range slices.Chunk(users, announce.PushBatch) {
		n := before.Events + int64(len(rows)) + 1
		rows = append(rows, told{feedPush, now.UnixMilli(), events.Push{Announced: what, N: n, Users: part}})
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
func (l *Ledger) Pushes(ctx context.Context, after int64, most int) (pushes []events.Push, last int64, err error) {
	err = l.read(ctx, "read announcements' events", func(s *session) error {
		pushes, last = nil, after
		var keys [][]any
		if err := s.each(ctx, `SELECT feed_row FROM announcement_rows WHERE feed_row > ? ORDER BY feed_row LIMIT ?`, []any{after, most}, func(rows *sql.Rows) error {
			err := rows.Scan(&last)
			keys = append(keys, []any{last})
			return err
		}); err != nil {
			return err
		}
		var found []feedRow
		if err := eachByKey(ctx, s, `SELECT id, payload FROM feed WHERE id = ?`, keys, func(rows *sql.Rows) error {
			found = append(found, feedRow{})
			row := &found[len(found)-1]
			return rows.Scan(&row.id, &row.payload)
		}); err != nil {
			return err
		}
		slices.SortFunc(found, func(a, b feedRow) int { return cmp.Compare(a.id, b.id) })
		for i := range found {
			pushes = append(pushes, events.Push{})
			if err := decodeRow(&found[i], &pushes[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return pushes, last, err
}

// dropPushRows forgets which rows tell announcements, of those up to one that the
// feed does not have any more.
func dropPushRows(ctx context.Context, s *session, upTo int64) error {
	_, err := s.exec(ctx, `DELETE FROM announcement_rows WHERE feed_row <= ? AND NOT EXISTS (SELECT 1 FROM feed f WHERE f.id = announcement_rows.feed_row)`, upTo)
	return err
}

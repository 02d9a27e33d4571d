package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/events"
)

// Announcements keeps announcements to followers and writes their events to the
// feed.
//
// A campaign has at most one active announcement (the column active is unique,
// and NULL for those that are over). The followers of an announcement are fixed
// when it is stored: those with a seq up to up_to that still follow when their
// turn comes. first_to and rest_to say how far its two lists are enqueued; they
// move by compare-and-set in the transaction that writes the events, so that no
// follower gets two. announcement_rows has a row for each row of the feed that
// belongs to an announcement.
type Announcements struct{ db *sqldb.DB }

// announcementColumns are the columns of an announcement. threshold and
// first_most are its rule for first followers; followers and up_to say who
// followed when it was stored. enqueued counts recipients and events rows of
// the feed; first_to and rest_to are the seqs up to which the two lists are
// enqueued.
const announcementColumns = `number, id, campaign, campaign_id, merchant, message, state, why, threshold, first_most, rate, followers, up_to,
	enqueued, events, first_to, first_done, rest_to, paced_at, created_at, updated_at, finished_at`

// storedAnnouncement is an announcement with its number, which orders
// announcements.
type storedAnnouncement struct {
	announce.Announcement
	number int64
}

// scanAnnouncement reads announcementColumns.
func scanAnnouncement(rows *sql.Rows, a *storedAnnouncement) error {
	return rows.Scan(&a.number, &a.ID, &a.Campaign, &a.CampaignID, &a.Merchant, &a.Message, &a.State, &a.Why, &a.Threshold, &a.First, &a.Rate,
		&a.Followers, &a.UpTo, &a.Enqueued, &a.Events, &a.FirstTo, &a.FirstDone, &a.RestTo,
		ms(&a.PacedAt), ms(&a.CreatedAt), ms(&a.UpdatedAt), optionalMS(&a.FinishedAt))
}

// InsertAnnouncement stores a new announcement that is running. It sets
// a.Followers and a.UpTo to the followers of this moment and, if there are more
// than a.Threshold, chooses the first of them: the highest rank first, and of
// equals those who have followed longest. ErrAlreadyExists; an *Error of
// InvalidState when another announcement of the campaign is active; of
// InvalidRequest, naming /merchant, when no user follows.
func (an *Announcements) InsertAnnouncement(ctx context.Context, a *announce.Announcement) error {
	return an.db.Write(ctx, "insert announcement", func(s *sqldb.Session) error {
		if err := checkAnnounceable(ctx, s, a); err != nil {
			return err
		}
		// While the merchant's row is locked, no user begins or ends to follow.
		err := s.Row(ctx, `SELECT seq, followers FROM merchants WHERE id = ?`+s.ForUpdate, []any{a.Merchant}, &a.UpTo, &a.Followers)
		if isNoRows(err) || err == nil && a.Followers == 0 {
			return dibs.Invalid(dibs.Fault{Field: "/merchant", Problem: dibs.Textf("has no followers: the announcement would reach no user (%s)", "没有关注者，无人可通知（%s）", a.Merchant)})
		}
		if err != nil {
			return err
		}
		a.FirstDone = a.First == 0 || a.Followers <= a.Threshold
		err = s.Do(ctx, `INSERT INTO announcements (id, campaign, active, campaign_id, merchant, message, state, why, threshold, first_most, rate,
			followers, up_to, enqueued, events, first_to, first_done, rest_to, paced_at, owner, lease_until, created_at, updated_at, finished_at)
			VALUES (?,?,?,?,?,?,?,'',?,?,?,?,?,0,0,0,?,0,?,'',0,?,?,0)`,
			a.ID, a.Campaign, a.Campaign, a.CampaignID, a.Merchant, a.Message, string(a.State), a.Threshold, a.First, a.Rate,
			a.Followers, a.UpTo, flag(a.FirstDone), a.PacedAt.UnixMilli(), a.CreatedAt.UnixMilli(), a.UpdatedAt.UnixMilli())
		if err != nil && s.Fault(err) == sqldb.FaultUnique {
			return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign is being announced already, or the id has just been taken", ZH: "该活动正在通知中，或该 ID 刚被占用"})
		}
		if err != nil || a.FirstDone {
			return err
		}
		return s.Do(ctx, `INSERT INTO announcement_firsts (announcement, seq) SELECT n.number, f.seq FROM
			(SELECT seq FROM followers WHERE merchant = ? AND follows = 1 ORDER BY standing DESC, seq LIMIT ?) f,
			(SELECT number FROM announcements WHERE id = ?) n`, a.Merchant, a.First, a.ID)
	})
}

// checkAnnounceable refuses an id that is taken, and a campaign that is being
// announced. Two that ask at once both pass, and the unique columns refuse one
// of them.
func checkAnnounceable(ctx context.Context, s *sqldb.Session, a *announce.Announcement) error {
	n, err := sqldb.Get[int64](ctx, s, `SELECT COUNT(*) FROM announcements WHERE id = ?`, a.ID)
	if err != nil {
		return err
	}
	if n > 0 {
		return exists(anAnnouncement, a.ID)
	}
	var other, state string
	err = s.Row(ctx, `SELECT id, state FROM announcements WHERE active = ?`, []any{a.Campaign}, &other, &state)
	switch {
	case isNoRows(err):
		return nil
	case err != nil:
		return err
	}
	return dibs.Fail(dibs.InvalidState, dibs.Textf("the announcement %[1]s of this campaign is %[2]s: cancel it, or wait until it is done", "该活动的通知 %[1]s 处于 %[2]s 状态：请取消或等待其完成", other, state))
}

const announcementByID = `SELECT ` + announcementColumns + ` FROM announcements WHERE id = ?`

// Announcement returns an announcement. ErrNotFound.
func (an *Announcements) Announcement(ctx context.Context, id string) (*announce.Announcement, error) {
	a, err := sqldb.ReadOne(ctx, an.db, "read an announcement", announcementByID, []any{id}, notFound(anAnnouncement, id), scanAnnouncement)
	if err != nil {
		return nil, err
	}
	return &a.Announcement, nil
}

// AnnouncementsOf lists the announcements of a campaign, the newest first.
func (an *Announcements) AnnouncementsOf(ctx context.Context, campaign uint32, page dibs.Page) (dibs.List[announce.Announcement], error) {
	list, err := readPage(ctx, an.db, "list announcements", page, int64(math.MaxInt64), func(before int64) query {
		return query{`SELECT ` + announcementColumns + ` FROM announcements WHERE campaign = ? AND number < ?
			ORDER BY number DESC LIMIT ?`, []any{campaign, before}}
	}, scanAnnouncement, func(a *storedAnnouncement) int64 { return a.number })
	return dibs.List[announce.Announcement]{Items: withoutNumbers(list.Items), NextCursor: list.NextCursor}, err
}

// RunningAnnouncements lists up to most announcements that are running, the
// oldest first.
func (an *Announcements) RunningAnnouncements(ctx context.Context, most int) ([]announce.Announcement, error) {
	found, err := sqldb.ReadList(ctx, an.db, "list announcements",
		`SELECT `+announcementColumns+` FROM announcements WHERE state = 'running' ORDER BY number LIMIT ?`, []any{most}, scanAnnouncement)
	return withoutNumbers(found), err
}

// withoutNumbers returns announcements as callers get them: an empty list, not
// nil, for none.
func withoutNumbers(found []storedAnnouncement) []announce.Announcement {
	list := make([]announce.Announcement, len(found))
	for i := range found {
		list[i] = found[i].Announcement
	}
	return list
}

// MoveAnnouncement moves an announcement to another state by
// Announcement.Become. ErrNotFound, an *Error of InvalidState.
func (an *Announcements) MoveAnnouncement(ctx context.Context, id string, to announce.AnnouncementState, why string, now time.Time) (*announce.Announcement, error) {
	return sqldb.Result(ctx, an.db.Write, "move an announcement", func(s *sqldb.Session) (*announce.Announcement, error) {
		var a storedAnnouncement
		if err := sqldb.One(ctx, s, announcementByID+s.ForUpdate, []any{id}, notFound(anAnnouncement, id), &a, scanAnnouncement); err != nil {
			return nil, err
		}
		before := a
		if same, err := a.Become(to, why, now); same || err != nil {
			return &a.Announcement, err
		}
		return &a.Announcement, saveAnnouncement(ctx, s, &a, &before)
	})
}

// saveAnnouncement writes what changes of an announcement, if what it has
// enqueued is as it was before. One that is over gives up its list of first
// followers.
func saveAnnouncement(ctx context.Context, s *sqldb.Session, a, before *storedAnnouncement) error {
	var active any
	if a.Active() {
		active = a.Campaign
	}
	err := s.DoOne(ctx, dibs.ErrConflict, `UPDATE announcements
		SET active = ?, state = ?, why = ?, enqueued = ?, events = ?, first_to = ?, first_done = ?, rest_to = ?,
			paced_at = ?, updated_at = ?, finished_at = ?
		WHERE number = ? AND enqueued = ? AND first_to = ? AND rest_to = ?`,
		active, string(a.State), a.Why, a.Enqueued, a.Events, a.FirstTo, flag(a.FirstDone), a.RestTo,
		a.PacedAt.UnixMilli(), a.UpdatedAt.UnixMilli(), toOptionalMS(a.FinishedAt), a.number, before.Enqueued, before.FirstTo, before.RestTo)
	if err != nil || a.Active() {
		return err
	}
	return s.Do(ctx, `DELETE FROM announcement_firsts WHERE announcement = ?`, a.number)
}

// Untaken counts the followers of an announcement in the rows of the feed after
// a row.
func (an *Announcements) Untaken(ctx context.Context, id string, row int64) (n int64, err error) {
	err = an.db.ReadRow(ctx, "count what is not taken of an announcement", `SELECT COALESCE(SUM(r.recipients), 0)
		FROM announcements a JOIN announcement_rows r ON r.announcement = a.number WHERE a.id = ? AND r.feed_row > ?`,
		[]any{id, row}, &n)
	return n, err
}

// Pushes returns the events of announcements after a row of the feed, in order,
// up to most, and the row to go on from.
func (an *Announcements) Pushes(ctx context.Context, after int64, most int) (pushes []events.Push, last int64, err error) {
	last = after
	err = an.db.Read(ctx, "read announcements' events", func(s *sqldb.Session) error {
		var keys [][]any
		if err := s.Each(ctx, `SELECT feed_row FROM announcement_rows WHERE feed_row > ? ORDER BY feed_row LIMIT ?`, []any{after, most}, func(rows *sql.Rows) error {
			err := rows.Scan(&last)
			keys = append(keys, []any{last})
			return err
		}); err != nil {
			return err
		}
		var found []storedRow
		if err := s.EachByKey(ctx, `SELECT id, payload FROM feed WHERE id = ?`, keys, func(rows *sql.Rows) error {
			found = append(found, storedRow{})
			row := &found[len(found)-1]
			return rows.Scan(&row.id, &row.payload)
		}); err != nil {
			return err
		}
		slices.SortFunc(found, func(a, b storedRow) int { return cmp.Compare(a.id, b.id) })
		pushes = make([]events.Push, len(found))
		for i := range found {
			if err := found[i].decode(&pushes[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return pushes, last, err
}

// EnqueueFollowers enqueues as many followers as Announcement.Allowance says,
// in one transaction. It returns the announcement, which is done when no
// follower is left, and how many were enqueued. Leases and rates go by the
// clock that all processes share. ErrPushTaken when another process has the
// lease; ErrConflict.
func (an *Announcements) EnqueueFollowers(ctx context.Context, t events.PushTurn) (*announce.Announcement, int, error) {
	var a storedAnnouncement
	var users []string
	err := an.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "enqueue followers", func(s *sqldb.Session) error {
		a, users = storedAnnouncement{}, nil
		at, err := s.SharedNow(ctx)
		if err != nil {
			return err
		}
		// From here on the row is locked: first_to and rest_to move once.
		err = s.DoOne(ctx, announce.ErrPushTaken, `UPDATE announcements SET owner = ?, lease_until = ? WHERE id = ? AND state = 'running'
			AND (owner = ? OR lease_until <= ?)`, t.Owner, at+t.Lease.Milliseconds(), t.ID, t.Owner, at)
		if err == nil {
			err = sqldb.One(ctx, s, announcementByID, []any{t.ID}, notFound(anAnnouncement, t.ID), &a, scanAnnouncement)
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
		return appendPushes(ctx, s, &a, &before, users, now)
	})
	if err != nil {
		return nil, 0, err
	}
	return &a.Announcement, len(users), nil
}

// nextFollowers reads the followers whose turn it is, leaving out those that
// follow no longer, and moves first_to or rest_to past them.
func nextFollowers(ctx context.Context, s *sqldb.Session, a *storedAnnouncement, most int, now time.Time) (users []string, err error) {
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
		// The rest begins, and its pace with it.
		a.FirstDone, a.PacedAt = true, now
	}
	return users, err
}

// nextOfFirsts reads some of the first followers by rank; over says that these
// are the last. Their seqs were chosen when the announcement was stored, in
// announcement_firsts.
func nextOfFirsts(ctx context.Context, s *sqldb.Session, a *storedAnnouncement, most int) (users []string, over bool, err error) {
	seqs, err := firstsBetween(ctx, s, a, a.FirstTo, a.UpTo, most)
	if err != nil || len(seqs) == 0 {
		return nil, true, err
	}
	keys := make([][]any, len(seqs))
	for i, seq := range seqs {
		keys[i] = []any{a.Merchant, seq}
	}
	a.FirstTo = seqs[len(seqs)-1]
	err = s.EachByKey(ctx, `SELECT user_id, follows FROM followers WHERE merchant = ? AND seq = ?`, keys, func(rows *sql.Rows) error {
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

// firstsBetween returns the seqs of first followers after one seq and up to
// another, in order.
func firstsBetween(ctx context.Context, s *sqldb.Session, a *storedAnnouncement, after, upTo int64, most int) ([]int64, error) {
	return sqldb.List(ctx, s, `SELECT seq FROM announcement_firsts WHERE announcement = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
		[]any{a.number, after, upTo, most}, sqldb.Scan1[int64])
}

// restRows is how many followers are read at a time, at least, and restPages
// how often in one transaction: some of them may be left out.
const (
	restRows  = 256
	restPages = 16
)

// queuedFollower is a follower as it is read for the rest.
type queuedFollower struct {
	seq     int64
	user    string
	follows bool
}

// nextOfRest reads some of the others; over says that these are the last. It
// reads in the order of seqs, by the index, and leaves out the first ones, who
// have theirs.
func nextOfRest(ctx context.Context, s *sqldb.Session, a *storedAnnouncement, most int) (users []string, over bool, err error) {
	// Each page moves rest_to, so that a merchant of whom few still follow does
	// not keep one transaction busy.
	for range restPages {
		limit := max(most-len(users), restRows)
		// The statement does not ask whether they follow: the index has the
		// seqs alone.
		page, err := sqldb.List(ctx, s, `SELECT seq, user_id, follows FROM followers WHERE merchant = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
			[]any{a.Merchant, a.RestTo, a.UpTo, limit}, func(rows *sql.Rows, f *queuedFollower) error { return rows.Scan(&f.seq, &f.user, &f.follows) })
		if err != nil || len(page) == 0 {
			return users, true, err
		}
		var firsts []int64
		if a.First > 0 && a.Followers > a.Threshold {
			if firsts, err = firstsBetween(ctx, s, a, a.RestTo, page[len(page)-1].seq, announce.MaxFirst); err != nil {
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

// appendPushes stores how far the announcement is, and appends its events for
// users to the feed. The numbers of the feed's rows are known only when the
// feed is written, and complete announcement_rows afterwards.
func appendPushes(ctx context.Context, s *sqldb.Session, a, before *storedAnnouncement, users []string, now time.Time) error {
	what := events.Announced{AnnouncementID: a.ID, CampaignID: a.CampaignID, Merchant: a.Merchant, Message: a.Message}
	if err := s.Row(ctx, `SELECT kind, title, starts_at, ends_at FROM campaigns WHERE number = ?`, []any{a.Campaign},
		&what.Kind, &what.Title, ms(&what.StartsAt), ms(&what.EndsAt)); err != nil {
		return err
	}
	if err := saveAnnouncement(ctx, s, a, before); err != nil {
		return err
	}
	var rows []feedRow
	var args []any
	for part := range slices.Chunk(users, announce.PushBatch) {
		n := before.Events + int64(len(rows)) + 1
		rows = append(rows, feedRow{feedPush, now.UnixMilli(), events.Push{Announced: what, N: n, Users: part}})
		args = append(args, int64(0), a.number, len(part))
	}
	last, err := appendFeedAt(ctx, s, rows)
	if err != nil {
		return err
	}
	for i := range rows {
		args[3*i] = last - int64(len(rows)-1-i)
	}
	return s.InsertRows(ctx, `INSERT INTO announcement_rows (feed_row, announcement, recipients) VALUES `, args, 3)
}

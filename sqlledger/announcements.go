package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/announce"
)

var anAnnouncement = dibs.Text{EN: "announcement", ZH: "通知"}

const announcementColumns = `number, id, campaign, campaign_id, merchant, message, state, why, threshold, first_most, rate, followers, up_to,
	enqueued, events, first_to, first_done, rest_to, paced_at, created_at, updated_at, finished_at`

// stored is an announcement with its number.
type stored struct {
	announce.Announcement
	number int64
}

func scanAnnouncement(rows *sql.Rows, a *stored) error {
	var paced, created, updated, finished int64
	err := rows.Scan(&a.number, &a.ID, &a.Campaign, &a.CampaignID, &a.Merchant, &a.Message, &a.State, &a.Why, &a.Threshold, &a.First, &a.Rate,
		&a.Followers, &a.UpTo, &a.Enqueued, &a.Events, &a.FirstTo, &a.FirstDone, &a.RestTo, &paced, &created, &updated, &finished)
	a.PacedAt, a.CreatedAt, a.UpdatedAt, a.FinishedAt = fromMS(paced), fromMS(created), fromMS(updated), fromOptionalMS(finished)
	return err
}

// InsertAnnouncement implements dibs.Announcements.
func (l *Ledger) InsertAnnouncement(ctx context.Context, a *announce.Announcement) error {
	return l.write(ctx, "insert announcement", func(s *session) error {
		if err := l.mayAnnounce(ctx, s, a); err != nil {
			return err
		}
		// The row is held: nobody begins or ends to follow meanwhile.
		err := s.row(ctx, `SELECT seq, followers FROM merchants WHERE id = ?`+s.d.forUpdate, []any{a.Merchant}, &a.UpTo, &a.Followers)
		if errors.Is(err, sql.ErrNoRows) || err == nil && a.Followers == 0 {
			return dibs.Invalid(dibs.Fault{Field: "/merchant", Problem: dibs.Textf("has no followers: nobody would hear of it (%s)", "没有关注者，无人可通知（%s）", a.Merchant)})
		}
		if err != nil {
			return err
		}
		a.FirstDone = a.First == 0 || a.Followers <= a.Threshold
		_, err = s.exec(ctx, `INSERT INTO announcements (id, campaign, active, campaign_id, merchant, message, state, why, threshold, first_most, rate,
			followers, up_to, enqueued, events, first_to, first_done, rest_to, paced_at, owner, lease_until, created_at, updated_at, finished_at)
			VALUES (?,?,?,?,?,?,?,'',?,?,?,?,?,0,0,0,?,0,?,'',0,?,?,0)`,
			a.ID, a.Campaign, a.Campaign, a.CampaignID, a.Merchant, a.Message, string(a.State), a.Threshold, a.First, a.Rate,
			a.Followers, a.UpTo, flag(a.FirstDone), a.PacedAt.UnixMilli(), a.CreatedAt.UnixMilli(), a.UpdatedAt.UnixMilli())
		if err != nil && l.d.classify(err) == faultUnique {
			return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign is being announced already, or the id has just been taken", ZH: "该活动正在通知中，或该 ID 刚被占用"})
		}
		if err != nil || a.FirstDone {
			return err
		}
		_, err = s.exec(ctx, `INSERT INTO announcement_firsts (announcement, seq) SELECT n.number, f.seq FROM
			(SELECT seq FROM followers WHERE merchant = ? AND follows = 1 ORDER BY standing DESC, seq LIMIT ?) f,
			(SELECT number FROM announcements WHERE id = ?) n`, a.Merchant, a.First, a.ID)
		return err
	})
}

// mayAnnounce refuses an id that is taken, and a campaign that is being
// announced.
func (l *Ledger) mayAnnounce(ctx context.Context, s *session, a *announce.Announcement) error {
	var n int64
	if err := s.row(ctx, `SELECT COUNT(*) FROM announcements WHERE id = ?`, []any{a.ID}, &n); err != nil {
		return err
	}
	if n > 0 {
		return exists(anAnnouncement, a.ID)
	}
	var other, state string
	err := s.row(ctx, `SELECT id, state FROM announcements WHERE active = ?`, []any{a.Campaign}, &other, &state)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return dibs.Fail(dibs.InvalidState, dibs.Textf("the announcement %[1]s of this campaign is %[2]s: cancel it, or wait until it is done", "该活动的通知 %[1]s 处于 %[2]s 状态：请取消或等待其完成", other, state))
}

// announcement reads one by its id; lock is what the statement ends with.
func announcement(ctx context.Context, s *session, id, lock string) (a stored, err error) {
	rows, err := s.query(ctx, `SELECT `+announcementColumns+` FROM announcements WHERE id = ?`+lock, id)
	if err != nil {
		return a, err
	}
	return a, one(rows, notFound(anAnnouncement, id), func() error { return scanAnnouncement(rows, &a) })
}

// Announcement implements dibs.Announcements.
func (l *Ledger) Announcement(ctx context.Context, id string) (*announce.Announcement, error) {
	var a stored
	err := l.read(ctx, "read an announcement", func(s *session) (err error) {
		a, err = announcement(ctx, s, id, "")
		return err
	})
	if err != nil {
		return nil, err
	}
	return &a.Announcement, nil
}

// AnnouncementsOf implements dibs.Announcements.
func (l *Ledger) AnnouncementsOf(ctx context.Context, campaign uint32, page dibs.Page) (dibs.List[announce.Announcement], error) {
	before := int64(math.MaxInt64)
	if _, err := readCursor(page, &before); err != nil {
		return dibs.List[announce.Announcement]{}, err
	}
	limit := limitOf(page)
	found, err := l.announcements(ctx, `campaign = ? AND number < ? ORDER BY number DESC LIMIT ?`, campaign, before, limit+1)
	if err != nil {
		return dibs.List[announce.Announcement]{}, err
	}
	l2, err := cut(found, limit, func(a *stored) any { return a.number })
	return dibs.List[announce.Announcement]{Items: plain(l2.Items), NextCursor: l2.NextCursor}, err
}

// RunningAnnouncements implements dibs.Announcements.
func (l *Ledger) RunningAnnouncements(ctx context.Context, most int) ([]announce.Announcement, error) {
	found, err := l.announcements(ctx, `state = 'running' ORDER BY number LIMIT ?`, most)
	return plain(found), err
}

// announcements reads those of a condition.
func (l *Ledger) announcements(ctx context.Context, where string, args ...any) (found []stored, err error) {
	err = l.read(ctx, "list announcements", func(s *session) error {
		return s.each(ctx, `SELECT `+announcementColumns+` FROM announcements WHERE `+where, args, func(rows *sql.Rows) error {
			found = append(found, stored{})
			return scanAnnouncement(rows, &found[len(found)-1])
		})
	})
	return found, err
}

func plain(found []stored) []announce.Announcement {
	list := make([]announce.Announcement, len(found))
	for i := range found {
		list[i] = found[i].Announcement
	}
	return list
}

// MoveAnnouncement implements dibs.Announcements.
func (l *Ledger) MoveAnnouncement(ctx context.Context, id string, to announce.AnnouncementState, why string, now time.Time) (*announce.Announcement, error) {
	var a stored
	err := l.write(ctx, "move an announcement", func(s *session) (err error) {
		if a, err = announcement(ctx, s, id, s.d.forUpdate); err != nil {
			return err
		}
		before := a
		if same, err := a.Become(to, why, now); same || err != nil {
			return err
		}
		return saveAnnouncement(ctx, s, &a, &before)
	})
	if err != nil {
		return nil, err
	}
	return &a.Announcement, nil
}

// saveAnnouncement writes what changes of an announcement, if the places in it are
// as they were before. One that is over lets go of what was for it alone.
func saveAnnouncement(ctx context.Context, s *session, a, before *stored) error {
	var active any
	if a.Active() {
		active = a.Campaign
	}
	n, err := s.exec(ctx, `UPDATE announcements SET active = ?, state = ?, why = ?, enqueued = ?, events = ?, first_to = ?, first_done = ?, rest_to = ?,
		paced_at = ?, updated_at = ?, finished_at = ? WHERE number = ? AND enqueued = ? AND first_to = ? AND rest_to = ?`,
		active, string(a.State), a.Why, a.Enqueued, a.Events, a.FirstTo, flag(a.FirstDone), a.RestTo,
		a.PacedAt.UnixMilli(), a.UpdatedAt.UnixMilli(), toOptionalMS(a.FinishedAt), a.number, before.Enqueued, before.FirstTo, before.RestTo)
	if err == nil && n != 1 {
		err = dibs.ErrConflict
	}
	if err != nil || a.Active() {
		return err
	}
	_, err = s.exec(ctx, `DELETE FROM announcement_firsts WHERE announcement = ?`, a.number)
	return err
}

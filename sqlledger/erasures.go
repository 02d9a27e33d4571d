package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/erasure"
)

const erasureColumns = `id, user_id, pseudonym, leave_balance, state, step, place, changed, clean_since, waits, erased, requested_at, updated_at, done_at, version`

var anErasure = dibs.Text{EN: "erasure", ZH: "删除任务"}

// erasureValues are the columns of an erasure but for its id and version.
func erasureValues(e *erasure.Erasure) ([]any, error) {
	waits, err := json.Marshal(e.WaitsFor)
	if err != nil {
		return nil, fmt.Errorf("write an erasure: %w", err)
	}
	erased, err := json.Marshal(e.Erased)
	if err != nil {
		return nil, fmt.Errorf("write an erasure: %w", err)
	}
	user := sql.NullString{String: e.UserID, Valid: e.State != erasure.ErasureDone}
	pseudonym, place := e.Pseudonym, e.Cursor
	if !user.Valid {
		// Nothing says any more who it was.
		user.String, pseudonym, place = "", "", ""
	}
	return []any{
		user, pseudonym, flag(e.LeaveBalance), string(e.State), string(e.Step), place, e.Changed, toOptionalMS(e.CleanSince), string(waits), string(erased),
		e.RequestedAt.UnixMilli(), e.UpdatedAt.UnixMilli(), toOptionalMS(e.DoneAt),
	}, nil
}

// InsertErasure implements dibs.Users.
func (l *Ledger) InsertErasure(ctx context.Context, e *erasure.Erasure) error {
	return l.write(ctx, "insert an erasure", func(s *session) error {
		values, err := erasureValues(e)
		if err != nil {
			return err
		}
		_, err = s.exec(ctx, `INSERT INTO erasures (`+erasureColumns+`) VALUES (`+repeat("?", 15)+`)`,
			append(append([]any{e.ID}, values...), e.Version)...)
		if err != nil && l.d.classify(err) == faultUnique {
			return exists(anErasure, e.ID)
		}
		return err
	})
}

// SaveErasure implements dibs.Users.
func (l *Ledger) SaveErasure(ctx context.Context, e *erasure.Erasure) error {
	err := l.write(ctx, "save an erasure", func(s *session) error { return saveErasure(ctx, s, e) })
	if err == nil {
		saved(e)
	}
	return err
}

// saved brings an erasure to what was stored of it.
func saved(e *erasure.Erasure) {
	e.Version++
	if e.State == erasure.ErasureDone {
		e.UserID, e.Pseudonym, e.Cursor = "", "", ""
	}
}

func saveErasure(ctx context.Context, s *session, e *erasure.Erasure) error {
	values, err := erasureValues(e)
	if err != nil {
		return err
	}
	n, err := s.exec(ctx, `UPDATE erasures SET user_id = ?, pseudonym = ?, leave_balance = ?, state = ?, step = ?, place = ?, changed = ?,
		clean_since = ?, waits = ?, erased = ?, requested_at = ?, updated_at = ?, done_at = ?, version = ? WHERE id = ? AND version = ?`,
		append(values, e.Version+1, e.ID, e.Version)...)
	if err == nil && n == 0 {
		err = dibs.ErrConflict
	}
	return err
}

// ErasureByID implements dibs.Users.
func (l *Ledger) ErasureByID(ctx context.Context, id string) (*erasure.Erasure, error) {
	return l.erasure(ctx, "id", id)
}

// ErasureOf implements dibs.Users.
func (l *Ledger) ErasureOf(ctx context.Context, user string) (*erasure.Erasure, error) {
	return l.erasure(ctx, "user_id", user)
}

func (l *Ledger) erasure(ctx context.Context, column, value string) (*erasure.Erasure, error) {
	var e erasure.Erasure
	err := l.read(ctx, "read an erasure", func(s *session) error {
		rows, err := s.query(ctx, `SELECT `+erasureColumns+` FROM erasures WHERE `+column+` = ?`, value)
		if err != nil {
			return err
		}
		return one(rows, notFound(anErasure, value), func() error { return scanErasure(rows, &e) })
	})
	if err != nil {
		return nil, err
	}
	return &e, nil
}

func scanErasure(rows *sql.Rows, e *erasure.Erasure) error {
	var user sql.NullString
	var waits, erased string
	var clean, requested, updated, done int64
	err := rows.Scan(&e.ID, &user, &e.Pseudonym, &e.LeaveBalance, &e.State, &e.Step, &e.Cursor, &e.Changed, &clean, &waits, &erased,
		&requested, &updated, &done, &e.Version)
	if err != nil {
		return err
	}
	e.UserID, e.CleanSince, e.DoneAt = user.String, fromOptionalMS(clean), fromOptionalMS(done)
	e.RequestedAt, e.UpdatedAt = fromMS(requested), fromMS(updated)
	if err := errors.Join(json.Unmarshal([]byte(waits), &e.WaitsFor), json.Unmarshal([]byte(erased), &e.Erased)); err != nil {
		return fmt.Errorf("%w: the erasure %s: %w", dibs.ErrCorrupt, e.ID, err)
	}
	return nil
}

// erasureKey is where a page of erasures ends.
type erasureKey struct {
	At int64
	ID string
}

// ErasureList implements dibs.Users.
func (l *Ledger) ErasureList(ctx context.Context, open bool, page dibs.Page) (dibs.List[erasure.Erasure], error) {
	where, args := `1 = 1`, []any{}
	if open {
		where = `user_id IS NOT NULL`
	}
	var after erasureKey
	if more, err := readCursor(page, &after); err != nil {
		return dibs.List[erasure.Erasure]{}, err
	} else if more {
		condition, values := l.d.compare([]string{"requested_at", "id"}, "<", after.At, after.ID)
		where, args = where+` AND `+condition, values
	}
	limit := limitOf(page)
	var found []erasure.Erasure
	err := l.read(ctx, "list erasures", func(s *session) error {
		return s.each(ctx, `SELECT `+erasureColumns+` FROM erasures WHERE `+where+` ORDER BY requested_at DESC, id DESC LIMIT ?`,
			append(args, limit+1), func(rows *sql.Rows) error {
				found = append(found, erasure.Erasure{})
				return scanErasure(rows, &found[len(found)-1])
			})
	})
	if err != nil {
		return dibs.List[erasure.Erasure]{}, err
	}
	return cut(found, limit, func(e *erasure.Erasure) any { return erasureKey{e.RequestedAt.UnixMilli(), e.ID} })
}

// UserRecord implements dibs.Users.
func (l *Ledger) UserRecord(ctx context.Context, user string) (*erasure.UserRecord, error) {
	r := &erasure.UserRecord{UserID: user}
	balances, err := l.Balances(ctx, user)
	if err != nil {
		return nil, err
	}
	err = l.snapshot(ctx, "read what there is about a user", func(s *session) error {
		r.Balances, r.Campaigns = balances, []erasure.UserClaims{}
		if err := s.each(ctx, `SELECT c.id, c.state, c.product_id, t.n FROM (SELECT campaign, COUNT(*) AS n FROM claims WHERE user_id = ? GROUP BY campaign) t
			JOIN campaigns c ON c.number = t.campaign ORDER BY t.campaign DESC LIMIT ?`, []any{user, dibs.MaxUserRecord}, func(rows *sql.Rows) error {
			r.Campaigns = append(r.Campaigns, erasure.UserClaims{})
			last := &r.Campaigns[len(r.Campaigns)-1]
			var c dibs.Campaign
			err := rows.Scan(&c.ID, &c.State, &c.ProductID, &last.Claims)
			if last.CampaignID = c.ID; c.Regular() {
				last.CampaignID = "product:" + c.ProductID
			}
			return err
		}); err != nil {
			return err
		}
		for _, list := range []struct {
			into      *[]string
			statement string
		}{
			{&r.Sent, `SELECT c.id FROM packets p JOIN campaigns c ON c.number = p.campaign WHERE p.sender_id = ? ORDER BY c.number DESC LIMIT ?`},
			{&r.Lotteries, `SELECT c.id FROM lotteries y JOIN lottery_entries e ON e.campaign = y.campaign AND e.user_id = ?
				JOIN campaigns c ON c.number = y.campaign ORDER BY c.number DESC LIMIT ?`},
			{&r.Rooms, `SELECT c.id FROM room_places p JOIN campaigns c ON c.number = p.campaign WHERE p.user_id = ? ORDER BY c.number DESC LIMIT ?`},
			{&r.Follows, `SELECT m.id FROM merchants m JOIN followers f ON f.merchant = m.id AND f.user_id = ? WHERE f.follows = 1 ORDER BY m.id LIMIT ?`},
		} {
			found, err := texts(ctx, s, list.statement, user, dibs.MaxUserRecord)
			if err != nil {
				return err
			}
			*list.into = found
		}
		return s.row(ctx, `SELECT COUNT(*) FROM quarantine WHERE user_id = ?`, []any{user}, &r.Quarantined)
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// texts reads rows of one text.
func texts(ctx context.Context, s *session, statement string, args ...any) ([]string, error) {
	found := []string{}
	err := s.each(ctx, statement, args, func(rows *sql.Rows) error {
		found = append(found, "")
		return rows.Scan(&found[len(found)-1])
	})
	return found, err
}

package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/erasure"
)

// Erasures keeps the erasing of users: how far each is, and the steps of it
// that touch the ledger's tables.
//
// A step changes rows and the erasure's own row in one transaction, and fails
// when the erasure's version is not what was read: of two processes at the same
// step, one undoes what it did. An erasure that is done names no user any more.
type Erasures struct{ db *sqldb.DB }

// erasureColumns are the columns of an erasure. user_id is unique and NULL once
// the erasure is done, so that a user has one at a time; place is the cursor
// within its step. changed counts rows, waits and erased are JSON. clean_since
// is since when rounds have found nothing to change, 0 before; asked_at is when an entry
// of the admin log last asked for it, 0 for none.
const erasureColumns = `id, user_id, pseudonym, leave_balance, state, step, place, changed, clean_since, waits, erased, requested_at, updated_at, done_at, asked_at, version`

// erasureValues are the columns of an erasure but for its id and version. They
// are in the order of erasureColumns.
func erasureValues(e *erasure.Erasure) ([]any, error) {
	waits, err := json.Marshal(e.WaitsFor)
	erased, erasedErr := json.Marshal(e.Erased)
	if err := errors.Join(err, erasedErr); err != nil {
		return nil, fmt.Errorf("write an erasure: %w", err)
	}
	user := sql.NullString{String: e.UserID, Valid: e.State != erasure.ErasureDone}
	pseudonym, place := e.Pseudonym, e.Cursor
	if !user.Valid {
		// Nothing names the user any more.
		user.String, pseudonym, place = "", "", ""
	}
	return []any{
		user, pseudonym, flag(e.LeaveBalance), string(e.State), string(e.Step), place, e.Changed, toOptionalMS(e.CleanSince), string(waits), string(erased),
		e.RequestedAt.UnixMilli(), e.UpdatedAt.UnixMilli(), toOptionalMS(e.DoneAt), toOptionalMS(e.AskedAt),
	}, nil
}

// InsertErasure stores an erasure, which the entry of the admin log has asked for whose id act is: the chain over the log
// says so from then on, and AskedAt is set. For an act that is empty, or is none that erases, the erasure adds an entry
// of its own when it changes the log. ErrAlreadyExists while one of the same user is not done.
func (er *Erasures) InsertErasure(ctx context.Context, e *erasure.Erasure, act string) error {
	var next *erasure.Erasure
	err := er.db.Write(ctx, "insert an erasure", func(s *sqldb.Session) error {
		next = e.Clone()
		// The end of the chain is locked before all else, as by every writer of it.
		if err := askedBy(ctx, s, next, act); err != nil {
			return err
		}
		values, err := erasureValues(next)
		if err != nil {
			return err
		}
		return orExists(s, s.Do(ctx, `INSERT INTO erasures (`+erasureColumns+`) VALUES (`+sqldb.Repeat("?", 16)+`)`,
			append(append([]any{e.ID}, values...), e.Version)...), anErasure, e.ID)
	})
	if err == nil {
		*e = *next
	}
	return err
}

// askedBy notes in the chain which entry asked for an erasure.
func askedBy(ctx context.Context, s *sqldb.Session, e *erasure.Erasure, act string) error {
	if act == "" {
		return nil
	}
	end, err := lockChain(ctx, s)
	if err != nil {
		return err
	}
	a, err := actionByID(ctx, s, act)
	if isNoRows(err) || err == nil && (a.Action != access.EraseAction || a.Status != 0 || a.parts == nil) {
		return nil
	}
	if err != nil {
		return err
	}
	e.AskedAt = a.At
	if err := end.ask(ctx, s, &a, e); err != nil {
		return err
	}
	return end.save(ctx, s)
}

// SaveErasure stores e where the stored version is e.Version, and raises the
// version in e. One that is done loses user and pseudonym, in e too.
// ErrConflict.
func (er *Erasures) SaveErasure(ctx context.Context, e *erasure.Erasure) error {
	err := er.db.Write(ctx, "save an erasure", func(s *sqldb.Session) error { return saveErasure(ctx, s, e) })
	if err == nil {
		saved(e)
	}
	return err
}

// saved makes an erasure what was stored of it. The caller can go on with e and
// save it again.
func saved(e *erasure.Erasure) {
	e.Version++
	if e.State == erasure.ErasureDone {
		e.UserID, e.Pseudonym, e.Cursor = "", "", ""
	}
}

// saveErasure is SaveErasure within a transaction; e stays as it is.
func saveErasure(ctx context.Context, s *sqldb.Session, e *erasure.Erasure) error {
	values, err := erasureValues(e)
	if err != nil {
		return err
	}
	return s.DoOne(ctx, dibs.ErrConflict, `UPDATE erasures
		SET user_id = ?, pseudonym = ?, leave_balance = ?, state = ?, step = ?, place = ?, changed = ?, clean_since = ?,
			waits = ?, erased = ?, requested_at = ?, updated_at = ?, done_at = ?, asked_at = ?, version = ?
		WHERE id = ? AND version = ?`,
		append(values, e.Version+1, e.ID, e.Version)...)
}

// ErasureByID returns an erasure. ErrNotFound.
func (er *Erasures) ErasureByID(ctx context.Context, id string) (*erasure.Erasure, error) {
	return er.by(ctx, "id", id)
}

// ErasureOf returns the erasure of a user that is not done. ErrNotFound.
func (er *Erasures) ErasureOf(ctx context.Context, user string) (*erasure.Erasure, error) {
	return er.by(ctx, "user_id", user)
}

// by reads the erasure that has a value in a unique column.
func (er *Erasures) by(ctx context.Context, column, value string) (*erasure.Erasure, error) {
	return sqldb.ReadOne(ctx, er.db, "read an erasure", `SELECT `+erasureColumns+` FROM erasures WHERE `+column+` = ?`, []any{value},
		notFound(anErasure, value), scanErasure)
}

// scanErasure reads erasureColumns. user_id is NULL once the erasure is done.
func scanErasure(rows *sql.Rows, e *erasure.Erasure) error {
	var user sql.NullString
	var waits, erased string
	err := rows.Scan(&e.ID, &user, &e.Pseudonym, &e.LeaveBalance, &e.State, &e.Step, &e.Cursor, &e.Changed,
		optionalMS(&e.CleanSince), &waits, &erased, ms(&e.RequestedAt), ms(&e.UpdatedAt), optionalMS(&e.DoneAt),
		optionalMS(&e.AskedAt), &e.Version)
	if err != nil {
		return err
	}
	e.UserID = user.String
	if err := errors.Join(json.Unmarshal([]byte(waits), &e.WaitsFor), json.Unmarshal([]byte(erased), &e.Erased)); err != nil {
		return fmt.Errorf("%w: the erasure %s: %w", dibs.ErrCorrupt, e.ID, err)
	}
	return nil
}

// erasureCursor is where a page of erasures ended.
type erasureCursor struct {
	At int64
	ID string
}

// ErasureList lists erasures, the newest first; open narrows the list to those
// not done.
func (er *Erasures) ErasureList(ctx context.Context, open bool, page dibs.Page) (dibs.List[erasure.Erasure], error) {
	return readPage(ctx, er.db, "list erasures", page, erasureCursor{At: math.MaxInt64}, func(after erasureCursor) query {
		where, args := er.db.Compare([]string{"requested_at", "id"}, "<", after.At, after.ID)
		if open {
			where += ` AND user_id IS NOT NULL`
		}
		where += ` ORDER BY requested_at DESC, id DESC LIMIT ?`
		return query{`SELECT ` + erasureColumns + ` FROM erasures WHERE ` + where, args}
	}, scanErasure, func(e *erasure.Erasure) erasureCursor { return erasureCursor{e.RequestedAt.UnixMilli(), e.ID} })
}

// UserRecord returns what the ledger has about a user, on one state of the
// ledger; each list has at most erasure.MaxUserRecord lines.
func (er *Erasures) UserRecord(ctx context.Context, user string) (*erasure.UserRecord, error) {
	const op = "read what there is about a user"
	return sqldb.Result(ctx, er.db.Snapshot, op, func(s *sqldb.Session) (_ *erasure.UserRecord, err error) {
		r := &erasure.UserRecord{UserID: user}
		if r.Balances, err = readBalances(ctx, s, user, ""); err != nil {
			return nil, err
		}
		found, err := sqldb.List(ctx, s, `SELECT c.id, c.state, c.product_id, t.n
			FROM (SELECT campaign, COUNT(*) AS n FROM claims WHERE user_id = ? GROUP BY campaign) t
			JOIN campaigns c ON c.number = t.campaign ORDER BY t.campaign DESC LIMIT ?`, []any{user, erasure.MaxUserRecord}, scanUserClaims)
		if err != nil {
			return nil, err
		}
		r.Campaigns = append([]erasure.UserClaims{}, found...)
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
			found, err := sqldb.List(ctx, s, list.statement, []any{user, erasure.MaxUserRecord}, sqldb.Scan1[string])
			if err != nil {
				return nil, err
			}
			*list.into = append([]string{}, found...)
		}
		return r, s.Row(ctx, `SELECT COUNT(*) FROM quarantine WHERE user_id = ?`, []any{user}, &r.Quarantined)
	})
}

// scanUserClaims reads a campaign's id, its state and its product, and a count of claims.
func scanUserClaims(rows *sql.Rows, u *erasure.UserClaims) error {
	var c dibs.Campaign
	err := rows.Scan(&c.ID, &c.State, &c.ProductID, &u.Claims)
	u.CampaignID = c.Name()
	return err
}

package sqlledger

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/gate"
)

// Rooms keeps the waiting rooms that one process runs, and the lotteries.
//
// A lottery's row is locked while users register, so that no user is registered
// once it is closed; entries in it is the number of its registrations. A
// lottery's row has a version, so that of two processes that close or draw it
// one fails (ErrConflict).
type Rooms struct{ db *sqldb.DB }

// SavePlaces stores places, some of which may be stored already, and how far
// the room is.
func (ro *Rooms) SavePlaces(ctx context.Context, r gate.SavedRoom, places []gate.SavedPlace) error {
	return ro.db.Write(ctx, "save places", func(s *sqldb.Session) error {
		if _, err := s.InsertNew(ctx, `INSERT INTO rooms (campaign, tail, early, seed, admitted_micro, at) VALUES (?,?,?,?,?,?)`,
			r.Campaign, r.Tail, r.Early, r.Seed, r.AdmittedMicro, r.At.UnixMilli()); err != nil {
			return err
		}
		if err := s.Do(ctx, `UPDATE rooms SET tail = ?, early = ?, seed = ?, admitted_micro = ?, at = ? WHERE campaign = ?`,
			r.Tail, r.Early, r.Seed, r.AdmittedMicro, r.At.UnixMilli(), r.Campaign); err != nil {
			return err
		}
		args := make([]any, 0, 3*len(places))
		for i := range places {
			args = append(args, r.Campaign, places[i].Number, places[i].UserID)
		}
		return s.InsertNewRows(ctx, `INSERT INTO room_places (campaign, number, user_id) VALUES `, args, 3)
	})
}

// DropPlace stores that a place was given up: its number is higher by
// gate.PlaceGivenUp from then on.
func (ro *Rooms) DropPlace(ctx context.Context, campaign uint32, number int64) error {
	return ro.db.Do(ctx, "drop a place", `UPDATE room_places SET number = number + ? WHERE campaign = ? AND number = ?`,
		gate.PlaceGivenUp, campaign, number)
}

// SavedRoomOf returns how far a room was. ErrNotFound.
func (ro *Rooms) SavedRoomOf(ctx context.Context, campaign uint32) (*gate.SavedRoom, error) {
	return sqldb.ReadOne(ctx, ro.db, "read a waiting room", `SELECT campaign, tail, early, seed, admitted_micro, at FROM rooms WHERE campaign = ?`,
		[]any{campaign}, notFound(aRoom, campaign), func(rows *sql.Rows, r *gate.SavedRoom) error {
			return rows.Scan(&r.Campaign, &r.Tail, &r.Early, &r.Seed, &r.AdmittedMicro, ms(&r.At))
		})
}

// SavedPlaces returns places by their numbers, after a number, up to most;
// those that were given up come last.
func (ro *Rooms) SavedPlaces(ctx context.Context, campaign uint32, after int64, most int) ([]gate.SavedPlace, error) {
	return sqldb.ReadList(ctx, ro.db, "list places", `SELECT number, user_id FROM room_places WHERE campaign = ? AND number > ? ORDER BY number LIMIT ?`,
		[]any{campaign, after, most}, func(rows *sql.Rows, p *gate.SavedPlace) error { return rows.Scan(&p.Number, &p.UserID) })
}

// TrimRooms forgets the rooms of campaigns that ended before a time.
func (ro *Rooms) TrimRooms(ctx context.Context, before time.Time) error {
	return ro.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "trim waiting rooms", func(s *sqldb.Session) error {
		const over = ` WHERE campaign IN (SELECT number FROM campaigns WHERE ends_at < ?)`
		for _, table := range []string{"room_places", "rooms"} {
			if err := s.Do(ctx, `DELETE FROM `+table+over, before.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

// The columns of a lottery. winners is how many are drawn; closed_at and
// drawn_at are 0 for not yet; list_hash is that of the closed list,
// public_value what the draw took from outside, and cutoff the highest winning
// score; all empty before.
const (
	lotteryColumns = `campaign, seed, winners, committed_at, closed_at, entries, list_hash, public_value, cutoff, drawn_at, version`
	lotteryOf      = `SELECT ` + lotteryColumns + ` FROM lotteries WHERE campaign = ?`
)

// CommitLottery stores a lottery unless the campaign has one, and returns the
// stored one.
func (ro *Rooms) CommitLottery(ctx context.Context, row gate.LotteryRow) (*gate.LotteryRow, error) {
	return sqldb.Result(ctx, ro.db.Write, "commit a lottery", func(s *sqldb.Session) (*gate.LotteryRow, error) {
		if _, err := s.InsertNew(ctx, `INSERT INTO lotteries (`+lotteryColumns+`) VALUES (`+sqldb.Repeat("?", 11)+`)`,
			row.Campaign, row.Seed, row.Winners, row.CommittedAt.UnixMilli(), 0, 0, "", "", "", 0, 1); err != nil {
			return nil, err
		}
		stored := &gate.LotteryRow{}
		return stored, sqldb.One(ctx, s, lotteryOf, []any{row.Campaign}, notFound(aLottery, row.Campaign), stored, scanLottery)
	})
}

// LotteryOf returns a campaign's lottery. ErrNotFound.
func (ro *Rooms) LotteryOf(ctx context.Context, campaign uint32) (*gate.LotteryRow, error) {
	return sqldb.ReadOne(ctx, ro.db, "read a lottery", lotteryOf, []any{campaign}, notFound(aLottery, campaign), scanLottery)
}

// scanLottery reads lotteryColumns.
func scanLottery(rows *sql.Rows, row *gate.LotteryRow) error {
	return rows.Scan(&row.Campaign, &row.Seed, &row.Winners, ms(&row.CommittedAt), optionalMS(&row.ClosedAt), &row.Entries, &row.ListHash,
		&row.PublicValue, &row.Cutoff, optionalMS(&row.DrawnAt), &row.Version)
}

// UpdateLottery stores row where the stored version is row.Version, and raises
// the version in row. It leaves the number of entries alone, which registering
// raises. Once ClosedAt is stored, no registration follows. ErrConflict,
// ErrNotFound.
func (ro *Rooms) UpdateLottery(ctx context.Context, row *gate.LotteryRow) error {
	err := ro.db.Write(ctx, "update a lottery", func(s *sqldb.Session) error {
		n, err := s.Exec(ctx, `UPDATE lotteries SET closed_at = ?, list_hash = ?, public_value = ?, cutoff = ?, drawn_at = ?, version = version + 1
			WHERE campaign = ? AND version = ?`, toOptionalMS(row.ClosedAt), row.ListHash, row.PublicValue, row.Cutoff, toOptionalMS(row.DrawnAt),
			row.Campaign, row.Version)
		if err != nil || n == 1 {
			return err
		}
		return changedOrGone(ctx, s, `SELECT 1 FROM lotteries WHERE campaign = ?`, aLottery, row.Campaign)
	})
	if err == nil {
		row.Version++
	}
	return err
}

var errLotteryClosed = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "registration is closed", ZH: "登记已截止"})

// RegisterEntries stores the entries of users who have none, as long as the
// lottery has fewer than most, and returns the users' stored entries in the
// same order; a zero entry for a user for whom there is no room.
// ErrInvalidState once the lottery is closed; ErrNotFound without one.
func (ro *Rooms) RegisterEntries(ctx context.Context, campaign uint32, entries []gate.LotteryEntry, most int64) ([]gate.LotteryEntry, error) {
	// In the order of users, no two transactions wait for each other.
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(entries[a].UserID, entries[b].UserID) })
	return sqldb.Result(ctx, ro.db.Write, "register for a lottery", func(s *sqldb.Session) ([]gate.LotteryEntry, error) {
		stored := make([]gate.LotteryEntry, len(entries))
		var row gate.LotteryRow
		if err := sqldb.One(ctx, s, lotteryOf+s.ForUpdate, []any{campaign}, notFound(aLottery, campaign), &row, scanLottery); err != nil {
			return nil, err
		}
		if !row.ClosedAt.IsZero() {
			return nil, errLotteryClosed
		}
		// The row's count is exact while the row is locked.
		added := int64(0)
		for _, i := range order {
			n, err := registerEntry(ctx, s, campaign, &entries[i], &stored[i], row.Entries+added < most)
			if err != nil {
				return nil, err
			}
			added += n
		}
		if added == 0 {
			return stored, nil
		}
		return stored, s.Do(ctx, `UPDATE lotteries SET entries = entries + ? WHERE campaign = ?`, added, campaign)
	})
}

const (
	entryColumns = `user_id, entry, nonce, at`
	entryOf      = `SELECT ` + entryColumns + ` FROM lottery_entries WHERE campaign = ? AND user_id = ?`
)

// registerEntry stores an entry, or reads the user's stored one; free says that
// there is room for one more. stored stays empty for a user without an entry
// when there is no room. Entries of a user who has one do not count again.
func registerEntry(ctx context.Context, s *sqldb.Session, campaign uint32, e, stored *gate.LotteryEntry, free bool) (added int64, err error) {
	if free {
		added, err = s.InsertNew(ctx, `INSERT INTO lottery_entries (campaign, user_id, entry, nonce, at) VALUES (?,?,?,?,?)`,
			campaign, e.UserID, e.Entry, e.Nonce, e.At.UnixMilli())
		if err != nil {
			return 0, err
		}
		if added > 0 {
			*stored = *e
			stored.At = fromMS(e.At.UnixMilli())
			return added, nil
		}
	}
	return 0, s.Each(ctx, entryOf, []any{campaign, e.UserID}, func(rows *sql.Rows) error { return scanEntry(rows, stored) })
}

// scanEntry reads entryColumns.
func scanEntry(rows *sql.Rows, e *gate.LotteryEntry) error {
	return rows.Scan(&e.UserID, &e.Entry, &e.Nonce, ms(&e.At))
}

// EntryOf returns a user's entry. ErrNotFound.
func (ro *Rooms) EntryOf(ctx context.Context, campaign uint32, user string) (*gate.LotteryEntry, error) {
	return sqldb.ReadOne(ctx, ro.db, "read a registration", entryOf, []any{campaign, user}, notFound(aRegistration, user), scanEntry)
}

// EntriesAfter returns entries in ascending order of their hashes, after a
// hash, up to most.
func (ro *Rooms) EntriesAfter(ctx context.Context, campaign uint32, after string, most int) ([]gate.LotteryEntry, error) {
	return sqldb.ReadList(ctx, ro.db, "list registrations", `SELECT `+entryColumns+` FROM lottery_entries WHERE campaign = ? AND entry > ? ORDER BY entry LIMIT ?`,
		[]any{campaign, after, most}, scanEntry)
}

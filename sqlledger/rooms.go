package sqlledger

import (
	"context"
	"database/sql"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

// placeRows is the most places that one statement writes.
const placeRows = 256

var aRoom = dibs.Text{EN: "waiting room of campaign", ZH: "等候室"}

// SavePlaces implements dibs.RoomLedger.
func (l *Ledger) SavePlaces(ctx context.Context, r gate.SavedRoom, places []gate.SavedPlace) error {
	return l.write(ctx, "save places", func(s *session) error {
		if _, err := s.insertNew(ctx, `INSERT INTO rooms (campaign, tail, early, seed, admitted_micro, at) VALUES (?,?,?,?,?,?)`,
			r.Campaign, r.Tail, r.Early, r.Seed, r.AdmittedMicro, r.At.UnixMilli()); err != nil {
			return err
		}
		if _, err := s.exec(ctx, `UPDATE rooms SET tail = ?, early = ?, seed = ?, admitted_micro = ?, at = ? WHERE campaign = ?`,
			r.Tail, r.Early, r.Seed, r.AdmittedMicro, r.At.UnixMilli(), r.Campaign); err != nil {
			return err
		}
		args := make([]any, 0, 3*len(places))
		for i := range places {
			args = append(args, r.Campaign, places[i].Number, places[i].UserID)
		}
		return insertPlaces(ctx, s, args)
	})
}

// insertPlaces writes rows of three arguments each. Some may be there already.
func insertPlaces(ctx context.Context, s *session, args []any) error {
	const statement = `INSERT INTO room_places (campaign, number, user_id) VALUES `
	for len(args) > 0 {
		n := 1
		if s.d.keepExisting != "" {
			n = chunk(len(args)/3, placeRows)
		}
		if _, err := s.insertNew(ctx, statement+repeat("(?,?,?)", n), args[:3*n]...); err != nil {
			return err
		}
		args = args[3*n:]
	}
	return nil
}

// DropPlace implements dibs.RoomLedger.
func (l *Ledger) DropPlace(ctx context.Context, campaign uint32, number int64) error {
	return l.write(ctx, "drop a place", func(s *session) error {
		_, err := s.exec(ctx, `UPDATE room_places SET number = number + ? WHERE campaign = ? AND number = ?`, gate.PlaceGivenUp, campaign, number)
		return err
	})
}

// SavedRoomOf implements dibs.RoomLedger.
func (l *Ledger) SavedRoomOf(ctx context.Context, campaign uint32) (*gate.SavedRoom, error) {
	var r gate.SavedRoom
	err := l.read(ctx, "read a waiting room", func(s *session) error {
		rows, err := s.query(ctx, `SELECT campaign, tail, early, seed, admitted_micro, at FROM rooms WHERE campaign = ?`, campaign)
		if err != nil {
			return err
		}
		return one(rows, notFound(aRoom, campaign), func() error {
			var at int64
			err := rows.Scan(&r.Campaign, &r.Tail, &r.Early, &r.Seed, &r.AdmittedMicro, &at)
			r.At = fromMS(at)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// SavedPlaces implements dibs.RoomLedger.
func (l *Ledger) SavedPlaces(ctx context.Context, campaign uint32, after int64, most int) ([]gate.SavedPlace, error) {
	found := make([]gate.SavedPlace, 0, most)
	err := l.read(ctx, "list places", func(s *session) error {
		found = found[:0]
		return s.each(ctx, `SELECT number, user_id FROM room_places WHERE campaign = ? AND number > ? ORDER BY number LIMIT ?`,
			[]any{campaign, after, most}, func(rows *sql.Rows) error {
				var p gate.SavedPlace
				err := rows.Scan(&p.Number, &p.UserID)
				found = append(found, p)
				return err
			})
	})
	return found, err
}

// TrimRooms implements dibs.RoomLedger.
func (l *Ledger) TrimRooms(ctx context.Context, before time.Time) error {
	return l.write(long(ctx, longStatement), "trim waiting rooms", func(s *session) error {
		const over = ` WHERE campaign IN (SELECT number FROM campaigns WHERE ends_at < ?)`
		for _, table := range []string{"room_places", "rooms"} {
			if _, err := s.exec(ctx, `DELETE FROM `+table+over, before.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

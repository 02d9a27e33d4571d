package sqlledger

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

const lotteryColumns = `campaign, seed, winners, committed_at, closed_at, entries, list_hash, public_value, cutoff, drawn_at, version`

var (
	aLottery = dibs.Text{EN: "lottery of campaign", ZH: "活动抽签"}
	anEntry  = dibs.Text{EN: "registration of", ZH: "登记"}
)

// CommitLottery implements dibs.RoomLedger.
func (l *Ledger) CommitLottery(ctx context.Context, row gate.LotteryRow) (*gate.LotteryRow, error) {
	var kept gate.LotteryRow
	err := l.write(ctx, "commit a lottery", func(s *session) error {
		if _, err := s.insertNew(ctx, `INSERT INTO lotteries (`+lotteryColumns+`) VALUES (`+repeat("?", 11)+`)`,
			row.Campaign, row.Seed, row.Winners, row.CommittedAt.UnixMilli(), 0, 0, "", "", "", 0, 1); err != nil {
			return err
		}
		return readLottery(ctx, s, row.Campaign, &kept)
	})
	if err != nil {
		return nil, err
	}
	return &kept, nil
}

// LotteryOf implements dibs.RoomLedger.
func (l *Ledger) LotteryOf(ctx context.Context, campaign uint32) (*gate.LotteryRow, error) {
	var row gate.LotteryRow
	err := l.read(ctx, "read a lottery", func(s *session) error { return readLottery(ctx, s, campaign, &row) })
	if err != nil {
		return nil, err
	}
	return &row, nil
}

func readLottery(ctx context.Context, s *session, campaign uint32, row *gate.LotteryRow) error {
	rows, err := s.query(ctx, `SELECT `+lotteryColumns+` FROM lotteries WHERE campaign = ?`, campaign)
	if err != nil {
		return err
	}
	return one(rows, notFound(aLottery, campaign), func() error { return scanLottery(rows, row) })
}

func scanLottery(rows *sql.Rows, row *gate.LotteryRow) error {
	var committed, closed, drawn int64
	err := rows.Scan(&row.Campaign, &row.Seed, &row.Winners, &committed, &closed, &row.Entries, &row.ListHash, &row.PublicValue,
		&row.Cutoff, &drawn, &row.Version)
	row.CommittedAt, row.ClosedAt, row.DrawnAt = fromMS(committed), fromOptionalMS(closed), fromOptionalMS(drawn)
	return err
}

// UpdateLottery implements dibs.RoomLedger. The count of entries is that of the
// rows, whatever the row says: registering raises it.
func (l *Ledger) UpdateLottery(ctx context.Context, row *gate.LotteryRow) error {
	err := l.write(ctx, "update a lottery", func(s *session) error {
		n, err := s.exec(ctx, `UPDATE lotteries SET closed_at = ?, list_hash = ?, public_value = ?, cutoff = ?, drawn_at = ?, version = version + 1
			WHERE campaign = ? AND version = ?`, toOptionalMS(row.ClosedAt), row.ListHash, row.PublicValue, row.Cutoff, toOptionalMS(row.DrawnAt),
			row.Campaign, row.Version)
		if err != nil || n == 1 {
			return err
		}
		return changedOrGone(ctx, s, `SELECT 1 FROM lotteries WHERE campaign = ?`, row.Campaign, notFound(aLottery, row.Campaign))
	})
	if err == nil {
		row.Version++
	}
	return err
}

var errLotteryClosed = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "registration is closed", ZH: "登记已截止"})

// RegisterEntries implements dibs.RoomLedger. The lottery's row is locked, so
// that nobody is entered once it is closed.
func (l *Ledger) RegisterEntries(ctx context.Context, campaign uint32, entries []gate.LotteryEntry, most int64) ([]gate.LotteryEntry, error) {
	// In the order of users, no two transactions wait for each other.
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(entries[a].UserID, entries[b].UserID) })
	var got []gate.LotteryEntry
	err := l.write(ctx, "register for a lottery", func(s *session) error {
		got = make([]gate.LotteryEntry, len(entries))
		var row gate.LotteryRow
		rows, err := s.query(ctx, `SELECT `+lotteryColumns+` FROM lotteries WHERE campaign = ?`+s.d.forUpdate, campaign)
		if err != nil {
			return err
		}
		if err := one(rows, notFound(aLottery, campaign), func() error { return scanLottery(rows, &row) }); err != nil {
			return err
		}
		if !row.ClosedAt.IsZero() {
			return errLotteryClosed
		}
		added := int64(0)
		for _, i := range order {
			n, err := registerEntry(ctx, s, campaign, &entries[i], &got[i], row.Entries+added < most)
			if err != nil {
				return err
			}
			added += n
		}
		if added == 0 {
			return nil
		}
		_, err = s.exec(ctx, `UPDATE lotteries SET entries = entries + ? WHERE campaign = ?`, added, campaign)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// registerEntry stores an entry, or reads the one there is; free says whether
// there is room for one more.
func registerEntry(ctx context.Context, s *session, campaign uint32, e, got *gate.LotteryEntry, free bool) (added int64, err error) {
	if free {
		added, err = s.insertNew(ctx, `INSERT INTO lottery_entries (campaign, user_id, entry, nonce, at) VALUES (?,?,?,?,?)`,
			campaign, e.UserID, e.Entry, e.Nonce, e.At.UnixMilli())
		if err != nil {
			return 0, err
		}
		if added > 0 {
			*got = *e
			got.At = fromMS(e.At.UnixMilli())
			return added, nil
		}
	}
	return 0, s.each(ctx, entryOf, []any{campaign, e.UserID}, func(rows *sql.Rows) error { return scanEntry(rows, got) })
}

const entryOf = `SELECT user_id, entry, nonce, at FROM lottery_entries WHERE campaign = ? AND user_id = ?`

func scanEntry(rows *sql.Rows, e *gate.LotteryEntry) error {
	var at int64
	err := rows.Scan(&e.UserID, &e.Entry, &e.Nonce, &at)
	e.At = fromMS(at)
	return err
}

// EntryOf implements dibs.RoomLedger.
func (l *Ledger) EntryOf(ctx context.Context, campaign uint32, user string) (*gate.LotteryEntry, error) {
	var e gate.LotteryEntry
	err := l.read(ctx, "read a registration", func(s *session) error {
		rows, err := s.query(ctx, entryOf, campaign, user)
		if err != nil {
			return err
		}
		return one(rows, notFound(anEntry, user), func() error { return scanEntry(rows, &e) })
	})
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// EntriesAfter implements dibs.RoomLedger.
func (l *Ledger) EntriesAfter(ctx context.Context, campaign uint32, after string, most int) ([]gate.LotteryEntry, error) {
	found := make([]gate.LotteryEntry, 0, most)
	err := l.read(ctx, "list registrations", func(s *session) error {
		found = found[:0]
		return s.each(ctx, `SELECT user_id, entry, nonce, at FROM lottery_entries WHERE campaign = ? AND entry > ? ORDER BY entry LIMIT ?`,
			[]any{campaign, after, most}, func(rows *sql.Rows) error {
				var e gate.LotteryEntry
				err := scanEntry(rows, &e)
				found = append(found, e)
				return err
			})
	})
	return found, err
}

package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"
)

// Quarantine records the batch's only entry, which Settle refused with
// ErrPoison, and moves the position past it, in one transaction. The entry
// takes from the stock, and a grant adds to the totals, as a settled one would,
// but never more than is left. ErrFenced, ErrPositionMoved and ErrForked as in
// Settle; ErrCorrupt for an entry that is neither a grant nor a withdrawal, and
// can be read.
func (st *Settlement) Quarantine(ctx context.Context, b live.Batch, why string) error {
	op := "quarantine an entry of shard " + b.Shard.String()
	if len(b.Entries) != 1 || b.To != b.Entries[0].Cursor || !follows(&b.Entries[0], b.From) {
		return refusedBefore(op, fmt.Errorf("%w: it needs the one entry that follows %s", dibs.ErrGap, b.From))
	}
	e := &b.Entries[0]
	if e.Kind != dibs.EntryGrant && e.Kind != dibs.EntryUnreadable && (e.Kind != dibs.EntryAdjust || e.Quantity >= 0) {
		return refusedBefore(op, fmt.Errorf("%w: the entry at %s is neither a grant nor a withdrawal, and can be read", dibs.ErrCorrupt, e.Cursor))
	}
	return st.db.Write(ctx, op, func(s *sqldb.Session) error {
		now, err := lockShard(ctx, s, b.Shard)
		if err != nil {
			return err
		}
		if now.position != b.From || now.epoch != b.Fence {
			return notMoved(ctx, s, &b)
		}
		if err := checkVacant(ctx, s, dibs.Position{ShardID: b.Shard, Cursor: e.Cursor}); err != nil {
			return err
		}
		// The entry may grant more than is left: it was refused for that,
		// perhaps. The sums stay what the tables demand.
		held := quarantinedEntry{Cursor: e.Cursor, kind: e.Kind, status: b.Campaign.InitialStatus(), quantity: e.Quantity}
		counted := min(held.units(), now.left)
		if err := insertQuarantined(ctx, s, &b, counted, why); err != nil {
			return err
		}
		// The claim keeps it there until it is settled, and users see it meanwhile.
		if err := insertReferencesOf(ctx, s, &b); err != nil {
			return err
		}
		if err := s.Do(ctx, `UPDATE positions SET pos_epoch = ?, pos_seq = ? WHERE campaign = ? AND shard = ?`,
			b.To.Epoch, b.To.Seq, b.Shard.Campaign, b.Shard.Shard); err != nil {
			return err
		}
		return countEntry(ctx, s, b.Shard, &held, counted)
	})
}

// checkVacant returns ErrForked when there is a claim at a position. Journal
// and ledger tell different histories then, and an administrator has to decide.
func checkVacant(ctx context.Context, s *sqldb.Session, p dibs.Position) error {
	n, err := sqldb.Get[int](ctx, s, `SELECT COUNT(*) FROM claims WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`,
		p.Campaign, p.Shard, p.Epoch, p.Seq)
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: %s", dibs.ErrForked, p)
	}
	return err
}

// countEntry takes the units of an entry from what is left. Those of a grant
// are added to the totals.
func countEntry(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, held *quarantinedEntry, units int64) error {
	if units == 0 {
		return nil
	}
	granted := map[dibs.Status]int64{}
	if held.kind == dibs.EntryGrant {
		granted[held.status] = units
	}
	if err := s.Do(ctx, `UPDATE positions SET stock_left = stock_left - ?, pending = pending + ?, confirmed = confirmed + ?
		WHERE campaign = ? AND shard = ?`, units, granted[dibs.Pending], granted[dibs.Confirmed], shard.Campaign, shard.Shard); err != nil {
		return err
	}
	return s.Do(ctx, `UPDATE campaigns SET stock_left = stock_left - ? WHERE number = ?`, units, shard.Campaign)
}

// quarantinedEntry is what an entry in quarantine means to the sums.
type quarantinedEntry struct {
	dibs.Cursor
	kind   dibs.EntryKind
	status dibs.Status
	// quantity is the entry's own, counted how much of it the sums took: never
	// more than was left.
	quantity, counted int64
}

// units is what the entry would take from the stock. It is 0 for an entry that
// cannot be read, of which nothing is known.
func (h *quarantinedEntry) units() int64 {
	if h.kind == dibs.EntryAdjust {
		return max(-h.quantity, 0)
	}
	return max(h.quantity, 0)
}

// insertQuarantined stores the batch's only entry, of which the sums count some
// units.
func insertQuarantined(ctx context.Context, s *sqldb.Session, b *live.Batch, counted int64, why string) error {
	e := &b.Entries[0]
	items, err := json.Marshal(e.Items)
	if err != nil {
		return fmt.Errorf("write the items: %w", err)
	}
	return s.Do(ctx, `INSERT INTO quarantine (campaign, shard, epoch, seq, kind, user_id, quantity, counted, status,
		request_key, ref, created_at, pay_by, items, why, at) VALUES (`+sqldb.Repeat("?", 16)+`)`,
		b.Shard.Campaign, b.Shard.Shard, e.Epoch, int64(e.Seq), int64(e.Kind), storable(e.UserID), e.Quantity, counted,
		int64(b.Campaign.InitialStatus()), int64(e.Key), storable(e.Ref), e.At, e.PayBy, string(items), storable(why), s.Now().UnixMilli())
}

const quarantineColumns = `campaign, shard, epoch, seq, kind, user_id, quantity, request_key, ref, created_at, pay_by, items, why, at`

// Quarantined lists the entries in quarantine that a filter names, by their places.
func (st *Settlement) Quarantined(ctx context.Context, f live.QuarantineFilter, most int) ([]live.Quarantined, error) {
	return sqldb.Result(ctx, st.db.Snapshot, "list the quarantine", func(s *sqldb.Session) ([]live.Quarantined, error) {
		which := whichQuarantined(&f)
		found, err := readQuarantine(ctx, s, which.statement+` ORDER BY campaign, shard, epoch, seq LIMIT ?`, append(which.args, most)...)
		if err != nil {
			return nil, err
		}
		for i := range found {
			q := &found[i]
			for _, n := range q.Entry.Items {
				value, err := sqldb.Get[string](ctx, s, `SELECT value FROM items WHERE campaign = ? AND n = ?`, q.Shard.Campaign, int64(n))
				if isNoRows(err) {
					continue
				}
				if err == nil {
					value, err = openItem(s.Codes, q.Shard.Campaign, value)
				}
				if err != nil {
					return nil, err
				}
				q.Items = append(q.Items, value)
			}
		}
		return found, nil
	})
}

// whichQuarantined is a filter as the condition of a query. The table is small, or
// something is very wrong: only a place and a campaign have an index.
func whichQuarantined(f *live.QuarantineFilter) query {
	q := query{statement: ` WHERE 1 = 1`}
	if f.Campaign != 0 {
		q.and(`campaign = ?`, f.Campaign)
	}
	if f.User != "" {
		q.and(`user_id = ?`, storable(f.User))
	}
	if f.Key != 0 {
		q.and(`request_key = ?`, int64(f.Key))
	}
	if p := f.At; p != (dibs.Position{}) {
		q.and(`campaign = ? AND shard = ? AND epoch = ? AND seq = ?`, p.Campaign, p.Shard, p.Epoch, p.Seq)
	}
	if p := f.After; p != (dibs.Position{}) {
		q.and(`(campaign, shard, epoch, seq) > (?, ?, ?, ?)`, p.Campaign, p.Shard, p.Epoch, p.Seq)
	}
	return q
}

// CountQuarantined counts the entries in quarantine of each shard that has some.
func (st *Settlement) CountQuarantined(ctx context.Context) (map[dibs.ShardID]int64, error) {
	return byShard[int64](ctx, st.db.Snapshot, "count the quarantine",
		`SELECT campaign, shard, COUNT(*) FROM quarantine GROUP BY campaign, shard`)
}

// byShard reads rows of a shard and a number.
func byShard[T any](
	ctx context.Context, run func(context.Context, string, func(*sqldb.Session) error) error, op, statement string, args ...any,
) (map[dibs.ShardID]T, error) {
	return sqldb.Result(ctx, run, op, func(s *sqldb.Session) (map[dibs.ShardID]T, error) {
		found := make(map[dibs.ShardID]T)
		return found, s.Each(ctx, statement, args, func(rows *sql.Rows) error {
			var shard dibs.ShardID
			var n T
			err := rows.Scan(&shard.Campaign, &shard.Shard, &n)
			found[shard] = n
			return err
		})
	})
}

// readQuarantine reads rows of the quarantine.
func readQuarantine(ctx context.Context, s *sqldb.Session, which string, args ...any) ([]live.Quarantined, error) {
	return sqldb.List(ctx, s, `SELECT `+quarantineColumns+` FROM quarantine`+which, args, scanQuarantined)
}

// scanQuarantined reads quarantineColumns.
func scanQuarantined(rows *sql.Rows, q *live.Quarantined) error {
	var key int64
	var items string
	e := &q.Entry
	if err := rows.Scan(&q.Shard.Campaign, &q.Shard.Shard, &e.Epoch, &e.Seq, &e.Kind, &e.UserID, &e.Quantity, &key, &e.Ref,
		&e.At, &e.PayBy, &items, &q.Why, ms(&q.At)); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(items), &e.Items); err != nil {
		return fmt.Errorf("%w: the items of %s in quarantine: %w", dibs.ErrCorrupt, e.Cursor, err)
	}
	e.Key = uint64(key)
	return nil
}

// Readmit settles an entry that is in quarantine, in one transaction. ErrPoison
// when it can still not be taken, ErrForked as in Settle: it stays in
// quarantine then. ErrNotFound.
func (st *Settlement) Readmit(ctx context.Context, c *dibs.Campaign, at dibs.Position) error {
	return st.blamed(st.db.Write(ctx, "settle "+at.String()+" from the quarantine", func(s *sqldb.Session) error {
		if _, err := lockShard(ctx, s, at.ShardID); err != nil {
			return err
		}
		place := []any{at.Campaign, at.Shard, at.Epoch, at.Seq}
		found, err := readQuarantine(ctx, s, ` WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`, place...)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return notFound(aQuarantined, at)
		}
		const here = ` FROM quarantine WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`
		counted, err := sqldb.Get[int64](ctx, s, `SELECT counted`+here, place...)
		if err == nil {
			err = admit(ctx, s, c, &found[0], counted)
		}
		if err == nil {
			err = s.Do(ctx, `DELETE`+here, place...)
		}
		if err != nil {
			return err
		}
		return appendFeed(ctx, s, grantRows(nil, &live.Batch{
			Shard: at.ShardID, From: dibs.Cursor{Epoch: at.Epoch, Seq: at.Seq - 1}, Entries: []dibs.Entry{found[0].Entry},
		}))
	}))
}

// admit settles an entry of which the sums have counted a part. It does what
// settleBatch does, but for the position, which is past the entry already.
func admit(ctx context.Context, s *sqldb.Session, c *dibs.Campaign, q *live.Quarantined, counted int64) error {
	b := live.Batch{Campaign: c, Shard: q.Shard, Entries: []dibs.Entry{q.Entry}}
	var sum batchSums
	if err := sum.add(c, &q.Entry); err != nil {
		return err
	}
	held := quarantinedEntry{kind: q.Entry.Kind, status: c.InitialStatus(), quantity: q.Entry.Quantity}
	// The sums have counted a part of the entry when it was put into
	// quarantine. The rest is counted now, if there is stock for it; the
	// constraints of the tables refuse it else.
	if q.Entry.Kind == dibs.EntryGrant {
		if err := checkVacant(ctx, s, dibs.Position{ShardID: q.Shard, Cursor: q.Entry.Cursor}); err != nil {
			return err
		}
		if err := insertGrants(ctx, s, &b); err != nil {
			return err
		}
		if sum.items > 0 {
			if err := assignItems(ctx, s, &b); err != nil {
				return err
			}
		}
		// Claims after this one may be credited already.
		if c.Kind == dibs.RedPacket {
			if err := creditLate(ctx, s, c, dibs.Position{ShardID: q.Shard, Cursor: q.Entry.Cursor}, s.Now()); err != nil {
				return err
			}
		}
		return countEntry(ctx, s, q.Shard, &held, sum.units-counted)
	}
	if err := withdraw(ctx, s, &b, &sum); err != nil {
		return err
	}
	taken := sum.withdrawn + sum.moved
	if err := countEntry(ctx, s, q.Shard, &held, taken-counted); err != nil || taken == 0 {
		return err
	}
	// stock_left was lowered first, since the table demands that it never
	// exceeds the stock.
	if err := s.Do(ctx, `UPDATE positions SET stock = stock - ? WHERE campaign = ? AND shard = ?`,
		taken, q.Shard.Campaign, q.Shard.Shard); err != nil {
		return err
	}
	// The units of a transfer are the campaign's still, and the recipient has them.
	return s.Do(ctx, `UPDATE campaigns SET stock_total = stock_total - ?, stock_left = stock_left + ? WHERE number = ?`,
		sum.withdrawn, sum.moved, q.Shard.Campaign)
}

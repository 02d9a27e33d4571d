package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dibs-dev/dibs"
)

// refused says of an error of settling whether the entries are to blame: what
// a constraint or a check of theirs refused will be refused again.
func (l *Ledger) refused(err error) error {
	if err == nil || errors.Is(err, dibs.ErrPositionMoved) || errors.Is(err, dibs.ErrFenced) || errors.Is(err, dibs.ErrForked) {
		return err
	}
	switch fault := l.d.classify(err); {
	case fault == faultUnique:
		// The only key that settling can find taken is a claim's place.
		return fmt.Errorf("%w: %w", dibs.ErrForked, err)
	case fault == faultConstraint, errors.Is(err, dibs.ErrInvalid), errors.Is(err, dibs.ErrCorrupt) && fault != faultCorrupt:
		return fmt.Errorf("%w: %w", dibs.ErrPoison, err)
	}
	return err
}

// shardNow is a shard's row, kept from others until the transaction ends.
type shardNow struct {
	epoch    uint16
	position dibs.Cursor
	// left is what the shard and its campaign both have left.
	left int64
}

// lockShard keeps the rows of a shard and its campaign, in the order in which
// settling does.
func lockShard(ctx context.Context, s *session, shard dibs.ShardID) (now shardNow, err error) {
	err = s.row(ctx, `SELECT epoch, pos_epoch, pos_seq, stock_left FROM positions WHERE campaign = ? AND shard = ?`+s.d.forUpdate,
		[]any{shard.Campaign, shard.Shard}, &now.epoch, &now.position.Epoch, &now.position.Seq, &now.left)
	if errors.Is(err, sql.ErrNoRows) {
		return now, notFound(aShard, shard)
	}
	if err != nil {
		return now, err
	}
	var left int64
	err = s.row(ctx, `SELECT stock_left FROM campaigns WHERE number = ?`+s.d.forUpdate, []any{shard.Campaign}, &left)
	now.left = max(min(now.left, left), 0)
	return now, err
}

// Quarantine implements dibs.Mending.
func (l *Ledger) Quarantine(ctx context.Context, b dibs.Batch, why string) error {
	op := "quarantine an entry of shard " + b.Shard.String()
	if len(b.Entries) != 1 || b.To != b.Entries[0].Cursor || !follows(&b.Entries[0], b.From) {
		return l.d.explain(op, fmt.Errorf("%w: it needs the one entry that follows %s", dibs.ErrGap, b.From))
	}
	e := &b.Entries[0]
	if e.Kind != dibs.EntryGrant && e.Kind != dibs.EntryUnreadable && (e.Kind != dibs.EntryAdjust || e.Quantity >= 0) {
		return l.d.explain(op, fmt.Errorf("%w: the entry at %s is neither a grant nor a withdrawal, and can be read", dibs.ErrCorrupt, e.Cursor))
	}
	return l.write(ctx, op, func(s *session) error {
		now, err := lockShard(ctx, s, b.Shard)
		if err != nil {
			return err
		}
		if now.position != b.From || now.epoch != b.Fence {
			return passed(ctx, s, &b)
		}
		if err := vacant(ctx, s, dibs.Position{ShardID: b.Shard, Cursor: e.Cursor}); err != nil {
			return err
		}
		held := heldBack{Cursor: e.Cursor, kind: e.Kind, status: b.Campaign.InitialStatus(), quantity: e.Quantity}
		counted := min(held.units(), now.left)
		if err := l.insertQuarantined(ctx, s, &b, counted, why); err != nil {
			return err
		}
		_, err = s.exec(ctx, `UPDATE positions SET pos_epoch = ?, pos_seq = ? WHERE campaign = ? AND shard = ?`,
			b.To.Epoch, b.To.Seq, b.Shard.Campaign, b.Shard.Shard)
		if err != nil {
			return err
		}
		return count(ctx, s, b.Shard, &held, counted)
	})
}

// vacant returns ErrForked when there is a claim at a place.
func vacant(ctx context.Context, s *session, p dibs.Position) error {
	var n int
	err := s.row(ctx, `SELECT COUNT(*) FROM claims WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`,
		[]any{p.Campaign, p.Shard, p.Epoch, p.Seq}, &n)
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: %s", dibs.ErrForked, p)
	}
	return err
}

// count lets an entry take units from what is left, and a grant add them to
// the totals.
func count(ctx context.Context, s *session, shard dibs.ShardID, held *heldBack, units int64) error {
	if units == 0 {
		return nil
	}
	granted := map[dibs.Status]int64{}
	if held.kind == dibs.EntryGrant {
		granted[held.status] = units
	}
	_, err := s.exec(ctx, `UPDATE positions SET stock_left = stock_left - ?, pending = pending + ?, confirmed = confirmed + ?
		WHERE campaign = ? AND shard = ?`, units, granted[dibs.Pending], granted[dibs.Confirmed], shard.Campaign, shard.Shard)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, `UPDATE campaigns SET stock_left = stock_left - ? WHERE number = ?`, units, shard.Campaign)
	return err
}

// heldBack is what an entry in quarantine means to the sums.
type heldBack struct {
	dibs.Cursor
	kind   dibs.EntryKind
	status dibs.Status
	// quantity is as the entry says it, counted what the sums took of it.
	quantity, counted int64
}

// units is what the entry would take from the stock.
func (h *heldBack) units() int64 {
	if h.kind == dibs.EntryAdjust {
		return max(-h.quantity, 0)
	}
	return max(h.quantity, 0)
}

// maxKept bounds the texts of an entry in quarantine, in bytes.
const maxKept = 1000

// kept makes a text one that every database can keep.
func kept(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > maxKept {
		text = strings.ToValidUTF8(text[:maxKept], "")
	}
	return text
}

func (l *Ledger) insertQuarantined(ctx context.Context, s *session, b *dibs.Batch, counted int64, why string) error {
	e := &b.Entries[0]
	items, err := json.Marshal(e.Items)
	if err != nil {
		return fmt.Errorf("write the items: %w", err)
	}
	_, err = s.exec(ctx, `INSERT INTO quarantine (campaign, shard, epoch, seq, kind, user_id, quantity, counted, status,
		request_key, ref, created_at, pay_by, items, why, at) VALUES (`+repeat("?", 16)+`)`,
		b.Shard.Campaign, b.Shard.Shard, e.Epoch, int64(e.Seq), int64(e.Kind), kept(e.UserID), e.Quantity, counted,
		int64(b.Campaign.InitialStatus()), int64(e.Key), kept(e.Ref), e.At, e.PayBy, string(items), kept(why), l.opts.Now().UnixMilli())
	return err
}

const quarantineColumns = `campaign, shard, epoch, seq, kind, user_id, quantity, request_key, ref, created_at, pay_by, items, why, at`

// Quarantined implements dibs.Mending.
func (l *Ledger) Quarantined(ctx context.Context, campaign uint32, most int) ([]dibs.Quarantined, error) {
	var found []dibs.Quarantined
	err := l.snapshot(ctx, "list the quarantine", func(s *session) error {
		where, args := ``, []any{most}
		if campaign != 0 {
			where, args = ` WHERE campaign = ?`, []any{campaign, most}
		}
		var err error
		if found, err = readQuarantine(ctx, s, where+` ORDER BY campaign, shard, epoch, seq LIMIT ?`, args...); err != nil {
			return err
		}
		for i := range found {
			q := &found[i]
			for _, n := range q.Entry.Items {
				var value string
				err := s.row(ctx, `SELECT value FROM items WHERE campaign = ? AND n = ?`, []any{q.Shard.Campaign, int64(n)}, &value)
				if errors.Is(err, sql.ErrNoRows) {
					continue
				}
				if err != nil {
					return err
				}
				q.Items = append(q.Items, value)
			}
		}
		return nil
	})
	return found, err
}

// readQuarantine reads rows of the quarantine.
func readQuarantine(ctx context.Context, s *session, which string, args ...any) (found []dibs.Quarantined, err error) {
	err = s.each(ctx, `SELECT `+quarantineColumns+` FROM quarantine`+which, args, func(rows *sql.Rows) error {
		var q dibs.Quarantined
		var key, at int64
		var items string
		e := &q.Entry
		if err := rows.Scan(&q.Shard.Campaign, &q.Shard.Shard, &e.Epoch, &e.Seq, &e.Kind, &e.UserID, &e.Quantity, &key, &e.Ref,
			&e.At, &e.PayBy, &items, &q.Why, &at); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(items), &e.Items); err != nil {
			return fmt.Errorf("%w: the items of %s in quarantine: %w", dibs.ErrCorrupt, e.Cursor, err)
		}
		e.Key, q.At = uint64(key), fromMS(at)
		found = append(found, q)
		return nil
	})
	return found, err
}

// Readmit implements dibs.Mending.
func (l *Ledger) Readmit(ctx context.Context, c *dibs.Campaign, at dibs.Position) error {
	return l.refused(l.write(ctx, "settle "+at.String()+" from the quarantine", func(s *session) error {
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
		var counted int64
		if err := s.row(ctx, `SELECT counted FROM quarantine WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`,
			place, &counted); err != nil {
			return err
		}
		if err := l.admit(ctx, s, c, &found[0], counted); err != nil {
			return err
		}
		if _, err = s.exec(ctx, `DELETE FROM quarantine WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`, place...); err != nil {
			return err
		}
		return publish(ctx, s, tellGrants(nil, &dibs.Batch{
			Shard: at.ShardID, From: dibs.Cursor{Epoch: at.Epoch, Seq: at.Seq - 1}, Entries: []dibs.Entry{found[0].Entry},
		}))
	}))
}

// admit settles an entry of which the sums have counted a part.
func (l *Ledger) admit(ctx context.Context, s *session, c *dibs.Campaign, q *dibs.Quarantined, counted int64) error {
	b := dibs.Batch{Campaign: c, Shard: q.Shard, Entries: []dibs.Entry{q.Entry}}
	var sum batchSums
	if err := sum.add(c, &q.Entry); err != nil {
		return err
	}
	held := heldBack{kind: q.Entry.Kind, status: c.InitialStatus(), quantity: q.Entry.Quantity}
	if q.Entry.Kind == dibs.EntryGrant {
		if err := vacant(ctx, s, dibs.Position{ShardID: q.Shard, Cursor: q.Entry.Cursor}); err != nil {
			return err
		}
		if err := l.insertClaims(ctx, s, &b); err != nil {
			return err
		}
		if sum.items > 0 {
			if err := l.assignItems(ctx, s, &b); err != nil {
				return err
			}
		}
		if c.Kind == dibs.RedPacket {
			if err := creditLate(ctx, s, c, q.Entry.Cursor, l.opts.Now()); err != nil {
				return err
			}
		}
		return count(ctx, s, q.Shard, &held, sum.units-counted)
	}
	if err := withdraw(ctx, s, &b, &sum); err != nil {
		return err
	}
	if err := count(ctx, s, q.Shard, &held, sum.withdrawn-counted); err != nil || sum.withdrawn == 0 {
		return err
	}
	// The stock follows what is left of it: it may never be the smaller.
	if _, err := s.exec(ctx, `UPDATE positions SET stock = stock - ? WHERE campaign = ? AND shard = ?`,
		sum.withdrawn, q.Shard.Campaign, q.Shard.Shard); err != nil {
		return err
	}
	_, err := s.exec(ctx, `UPDATE campaigns SET stock_total = stock_total - ? WHERE number = ?`, sum.withdrawn, q.Shard.Campaign)
	return err
}

package sqlledger

import (
	"context"
	"fmt"

	"github.com/dibs-dev/dibs"
)

// insertClaims writes the batch's grants in multi-row statements. A statement
// holds claims of one epoch.
func (l *Ledger) insertClaims(ctx context.Context, s *session, b *dibs.Batch) error {
	_, currency := splitMoney(b.Campaign.Price)
	w := rowWriter{
		most: l.d.claimRows, fixed: 6, width: 7, text: l.d.insertClaims,
		head: []any{int64(b.Shard.Campaign), int64(b.Shard.Shard), nil, int64(b.Campaign.InitialStatus()), int64(dibs.FlashOrder), currency},
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Kind != dibs.EntryGrant {
			continue
		}
		if err := w.begin(ctx, s, e.Epoch); err != nil {
			return err
		}
		amount, _ := splitMoney(b.Campaign.AmountFor(e.Quantity))
		w.args = append(w.args, int64(e.Seq), e.UserID, e.Quantity, amount, int64(e.Key), e.PayBy, e.At)
	}
	_, err := w.flush(ctx, s)
	return err
}

// assignItem gives a free item to a claim.
const assignItem = `UPDATE items SET claim_epoch = ?, claim_seq = ?
	WHERE campaign = ? AND shard = ? AND n = ? AND claim_epoch IS NULL AND withdrawn = 0`

// assignItems gives the items of the batch's grants to their claims. Each has
// to be free: one that is not makes the whole batch fail. Each is a statement
// of its own, found by its key: given a list of items, SQLite reads all items
// of the campaign once for each of them.
func (l *Ledger) assignItems(ctx context.Context, s *session, b *dibs.Batch) error {
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Kind != dibs.EntryGrant {
			continue
		}
		for _, item := range e.Items {
			n, err := s.exec(ctx, assignItem,
				int64(e.Epoch), int64(e.Seq), int64(b.Shard.Campaign), int64(b.Shard.Shard), int64(item))
			if err != nil {
				return err
			}
			if n != 1 {
				return fmt.Errorf("%w: item %d, granted at %s, was not free", dibs.ErrCorrupt, item, e.Cursor)
			}
		}
	}
	return nil
}

// rowWriter gathers rows of one epoch and writes them in multi-row statements.
type rowWriter struct {
	// most rows go into one statement; a row has width arguments, which follow
	// the fixed ones.
	most, fixed, width int
	text               func(rows int) string
	// head holds the fixed arguments; the third is the epoch.
	head    []any
	args    []any
	epoch   uint16
	changed int64
}

// begin makes room for a row of an epoch.
func (w *rowWriter) begin(ctx context.Context, s *session, epoch uint16) error {
	if w.args == nil {
		w.args = make([]any, 0, w.fixed+w.width*w.most)
	}
	if len(w.args) == cap(w.args) || epoch != w.epoch {
		if _, err := w.flush(ctx, s); err != nil {
			return err
		}
	}
	if len(w.args) == 0 {
		w.epoch = epoch
		w.args = append(w.args, w.head...)
		w.args[2] = int64(epoch)
	}
	return nil
}

// flush writes the gathered rows and returns how many rows all statements so
// far have changed.
func (w *rowWriter) flush(ctx context.Context, s *session) (int64, error) {
	if len(w.args) == 0 {
		return w.changed, nil
	}
	rows := w.args[w.fixed:]
	for len(rows) > 0 {
		n := chunk(len(rows)/w.width, w.most)
		// The fixed arguments move up in front of the rows that are left.
		end := w.fixed + n*w.width
		changed, err := s.exec(ctx, w.text(n), w.args[:end]...)
		if err != nil {
			return w.changed, err
		}
		w.changed += changed
		rest := copy(rows, rows[n*w.width:])
		rows = rows[:rest]
	}
	w.args = w.args[:0]
	return w.changed, nil
}

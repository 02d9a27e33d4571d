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

// assignItems gives the items of the batch's grants to their claims. Each has
// to be free: one that is not makes the whole batch fail.
func (l *Ledger) assignItems(ctx context.Context, s *session, b *dibs.Batch) error {
	w := rowWriter{
		most: l.d.itemRows, fixed: 3, width: 2, text: l.d.assignItems,
		head: []any{int64(b.Shard.Campaign), int64(b.Shard.Shard), nil},
	}
	given := 0
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Kind != dibs.EntryGrant {
			continue
		}
		for _, item := range e.Items {
			if err := w.begin(ctx, s, e.Epoch); err != nil {
				return err
			}
			w.args = append(w.args, int64(item), int64(e.Seq))
			given++
		}
	}
	changed, err := w.flush(ctx, s)
	if err == nil && changed != int64(given) {
		err = fmt.Errorf("%w: of %d items granted up to %s, %d were free", dibs.ErrCorrupt, given, b.To, changed)
	}
	return err
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

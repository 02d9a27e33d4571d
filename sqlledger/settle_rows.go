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
		to: &l.d.claims, width: 7,
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
		w.rows = append(w.rows, int64(e.Seq), e.UserID, e.Quantity, amount, int64(e.Key), e.PayBy, e.At)
	}
	_, err := w.flush(ctx, s)
	return err
}

// assignItems gives the items of the batch's grants to their claims. Each has
// to be free: one that is not makes the whole batch fail.
func (l *Ledger) assignItems(ctx context.Context, s *session, b *dibs.Batch) error {
	w := rowWriter{
		to: &l.d.items, width: 2,
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
			w.rows = append(w.rows, int64(item), int64(e.Seq))
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
	to *manyRows
	// head holds the fixed arguments; the third is the epoch. A row has width
	// arguments besides.
	head    []any
	width   int
	rows    []any
	args    []any
	epoch   uint16
	changed int64
}

// begin makes room for a row of an epoch.
func (w *rowWriter) begin(ctx context.Context, s *session, epoch uint16) error {
	if len(w.rows) == w.width*w.to.most || epoch != w.epoch {
		if _, err := w.flush(ctx, s); err != nil {
			return err
		}
	}
	w.epoch = epoch
	return nil
}

// flush writes the gathered rows and returns how many rows all statements so
// far have changed.
func (w *rowWriter) flush(ctx context.Context, s *session) (int64, error) {
	w.head[2] = int64(w.epoch)
	for rows := w.rows; len(rows) > 0; {
		n := w.to.take(len(rows) / w.width)
		w.args = w.to.arguments(w.args[:0], w.head, rows[:n*w.width], w.width)
		changed, err := s.exec(ctx, w.to.text(n), w.args...)
		if err != nil {
			return w.changed, err
		}
		w.changed += changed
		rows = rows[n*w.width:]
	}
	w.rows = w.rows[:0]
	return w.changed, nil
}

package sqlledger

import (
	"context"

	"github.com/dibs-dev/dibs"
)

// noticeLow notes, once, that a campaign's stock has come down to what its
// operations want to hear of, and reports whether it has just now. It belongs to
// the transaction that takes the stock: whoever is to be told of it is told by
// a row that is written here.
func (l *Ledger) noticeLow(ctx context.Context, s *session, campaign uint32) (bool, error) {
	n, err := s.exec(ctx, `UPDATE campaigns SET low_since = ? WHERE number = ? AND low_stock > 0 AND low_since = 0
		AND stock_left <= low_stock AND state IN (?,?)`,
		l.opts.Now().UnixMilli(), campaign, string(dibs.Published), string(dibs.PausedState))
	return n > 0, err
}

// noticeMore ends the notice of a campaign whose stock is above it again: the
// next time counts anew.
func noticeMore(ctx context.Context, s *session, campaign uint32) error {
	_, err := s.exec(ctx, `UPDATE campaigns SET low_since = 0 WHERE number = ? AND low_since > 0
		AND (low_stock = 0 OR stock_left > low_stock)`, campaign)
	return err
}

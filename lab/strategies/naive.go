package strategies

import "context"

// naive reads the stock, reads the user's orders, takes one and
// writes an order: four statements, and between any two of them anybody may do
// the same. It sells more than there is, and twice to one user.
type naive simple

// Claim implements Attempt.
func (a naive) Claim(ctx context.Context, user string) (Outcome, error) {
	left, err := a.SQL.stock(ctx, a.SQL.db)
	if err != nil || left < 1 {
		return SoldOut, err
	}
	has, err := a.SQL.has(ctx, a.SQL.db, user)
	if err != nil || has {
		return Again, err
	}
	a.at(ctx, AfterRead)
	if _, err := a.SQL.exec(ctx, a.SQL.db, "UPDATE lab_offers SET stock_left = stock_left - 1 WHERE id = ?", offer); err != nil {
		return Busy, err
	}
	return Granted, a.SQL.order(ctx, a.SQL.db, user)
}

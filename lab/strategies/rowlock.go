package strategies

import (
	"context"
	"database/sql"
)

// rowLock (the pessimistic lock) reads the stock with FOR UPDATE: who
// comes later waits for the commit, and reads what is true. Everybody stands in
// one queue, whose pace is that of one commit after another.
type rowLock simple

// Claim implements Attempt.
func (a rowLock) Claim(ctx context.Context, user string) (out Outcome, err error) {
	err = a.SQL.transact(ctx, func(tx *sql.Tx) (bool, error) {
		var left int64
		err := a.SQL.row(ctx, tx, "SELECT stock_left FROM lab_offers WHERE id = ? FOR UPDATE", []any{offer}, &left)
		if err != nil || left < 1 {
			out = SoldOut
			return false, err
		}
		// The first plain read comes after the lock: it sees every earlier sale.
		has, err := a.SQL.has(ctx, tx, user)
		if err != nil || has {
			out = Again
			return false, err
		}
		if _, err := a.SQL.exec(ctx, tx, "UPDATE lab_offers SET stock_left = ? WHERE id = ?", left-1, offer); err != nil {
			return false, err
		}
		return true, a.SQL.order(ctx, tx, user)
	})
	return out, err
}

package strategies

import (
	"context"
	"database/sql"
)

// byVersion (the version number) takes one if nobody has changed the
// row since it was read, and else reads again. It is right, and the more people
// come, the more of them work for nothing.
type byVersion simple

// Claim implements Attempt.
func (a byVersion) Claim(ctx context.Context, user string) (Outcome, error) {
	for {
		var left, version int64
		err := a.SQL.row(ctx, a.SQL.db, "SELECT stock_left, version FROM lab_offers WHERE id = ?", []any{offer}, &left, &version)
		if err != nil || left < 1 {
			return SoldOut, err
		}
		a.at(ctx, AfterRead)
		took, err := a.SQL.buyIf(ctx, user, "UPDATE lab_offers SET stock_left = stock_left - 1, version = version + 1 WHERE id = ? AND version = ?", offer, version)
		if err != nil || took {
			return Granted, err
		}
		select {
		case <-a.Over:
			return Busy, nil
		default:
		}
	}
}

// byEquality (the compare-and-set method) takes one if the stock is
// still what was read, and refuses else: of all who read the same number one
// gets something, and the others go home while stock is left.
type byEquality simple

// Claim implements Attempt.
func (a byEquality) Claim(ctx context.Context, user string) (Outcome, error) {
	left, err := a.SQL.stock(ctx, a.SQL.db)
	if err != nil || left < 1 {
		return SoldOut, err
	}
	a.at(ctx, AfterRead)
	took, err := a.SQL.buyIf(ctx, user, "UPDATE lab_offers SET stock_left = stock_left - 1 WHERE id = ? AND stock_left = ?", offer, left)
	if err != nil || took {
		return Granted, err
	}
	return Busy, nil
}

// byStock, the classical answer to overselling, lets the database compare: one
// statement takes one if any is left. It never sells too much, and all sales
// still wait for each other's commit on one row.
type byStock simple

// takeIfAny is the condition that does not depend on what somebody read.
const takeIfAny = "UPDATE lab_offers SET stock_left = stock_left - 1 WHERE id = ? AND stock_left > 0"

// Claim implements Attempt.
func (a byStock) Claim(ctx context.Context, user string) (Outcome, error) {
	took, err := a.SQL.buyIf(ctx, user, takeIfAny, offer)
	if err != nil || took {
		return Granted, err
	}
	return SoldOut, nil
}

// buyIf takes one by a statement with a condition, and writes the order in the
// same transaction when it held.
func (d *SQL) buyIf(ctx context.Context, user, take string, args ...any) (took bool, err error) {
	err = d.transact(ctx, func(tx *sql.Tx) (bool, error) {
		n, err := d.exec(ctx, tx, take, args...)
		if err != nil || n == 0 {
			return false, err
		}
		took = true
		return true, d.order(ctx, tx, user)
	})
	return took && err == nil, err
}

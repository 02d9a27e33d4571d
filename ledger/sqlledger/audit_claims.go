package sqlledger

import (
	"context"
	"database/sql"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// replayEvents applies the events of every claim that has some to the claim as
// it was granted, and compares the result with the claim's row and payment. It
// adds the payments up, too.
func (au *auditor) replayEvents(ctx context.Context) error {
	after := dibs.Position{}
	for {
		claims, err := au.movedAfter(ctx, after)
		if err != nil {
			return err
		}
		for i := range claims {
			au.checkClaim(&claims[i])
		}
		if len(claims) < runLength {
			break
		}
		after = claims[len(claims)-1].claim.Position
	}
	if err := au.findWithoutEvent(ctx); err != nil {
		return err
	}
	return au.s.Row(ctx, `SELECT COALESCE(SUM(CASE WHEN due = 0 THEN amount ELSE 0 END), 0), COALESCE(SUM(refunded), 0),
		COALESCE(SUM(CASE WHEN due = 1 THEN amount - refunded ELSE 0 END), 0) FROM payments WHERE campaign = ?`,
		[]any{au.c.Number}, &au.a.Paid, &au.a.Refunded, &au.a.Due)
}

// movedAfter reads the next claims that have moved, with their events applied,
// beside what their rows say. A page is as long as one statement may name
// claims.
func (au *auditor) movedAfter(ctx context.Context, after dibs.Position) ([]lockedClaim, error) {
	where, args := au.s.Compare([]string{"shard", "epoch", "seq"}, ">", after.Shard, after.Epoch, after.Seq)
	args = append(append([]any{au.c.Number}, args...), runLength)
	found, err := sqldb.List(ctx, au.s, `SELECT `+claimColumns+` FROM claims WHERE campaign = ? AND `+where+` AND steps > 0
		ORDER BY shard, epoch, seq LIMIT ?`, args, scanLocked)
	if err != nil {
		return nil, err
	}
	claims := make([]*dibs.Claim, len(found))
	byPosition := make(map[dibs.Position]*lockedClaim, len(found))
	at := make([]dibs.Position, len(found))
	for i := range found {
		// As the claim was granted: the events must lead from there to what the
		// row says.
		claims[i] = &found[i].claim
		claims[i].Restocked = false
		claims[i].Status = au.c.InitialStatus()
		if au.c.Regular() && claims[i].PayBy.IsZero() {
			claims[i].Status = dibs.Confirmed
		} else if au.c.Regular() {
			claims[i].Status = dibs.Pending
		}
		byPosition[claims[i].Position], at[i] = &found[i], claims[i].Position
	}
	if err := applyEvents(ctx, au.s, claims); err != nil {
		return nil, err
	}
	return found, au.readPayments(ctx, at, byPosition)
}

// readPayments reads the payments of claims. A claim without a payment keeps
// nil.
func (au *auditor) readPayments(ctx context.Context, at []dibs.Position, byPosition map[dibs.Position]*lockedClaim) error {
	return eachOf(ctx, au.s, at, "payments", "seq, ref, amount, currency, refunded, due, at", func(r *run, rows *sql.Rows) error {
		paid := &dibs.Payment{}
		var seq uint32
		err := rows.Scan(&seq, &paid.Ref, &paid.Amount.Amount, &paid.Amount.Currency, &paid.Refunded, &paid.Due, ms(&paid.At))
		if err == nil {
			byPosition[r.position(seq)].payment = paid
		}
		return err
	})
}

// checkClaim compares one claim. The row is what readers see, the events are
// what happened, and the payment is what is owed: the three are written
// together and must never differ.
func (au *auditor) checkClaim(v *lockedClaim) {
	c, at := &v.claim, v.claim.Position
	if len(c.Events) != v.steps {
		au.badClaim("the claim %s has %d events and should have %d", at, len(c.Events), v.steps)
		return
	}
	if c.Status != v.status || c.Restocked != v.restocked {
		au.badClaim("the claim %s is %s, its events say %s", at, v.status, c.Status)
	}
	switch {
	case (c.Payment == nil) != (v.payment == nil):
		au.badClaim("the claim %s has a payment in its row or in its events, and not in both", at)
	case c.Payment != nil && c.Payment.Refunded > c.Payment.Amount.Amount:
		au.badClaim("of the claim %s more went back than was paid", at)
	case c.Payment != nil && *c.Payment != *v.payment:
		au.badClaim("the payment of the claim %s is %+v, its events say %+v", at, *v.payment, *c.Payment)
	}
}

// findWithoutEvent finds claims that have changed without an event.
// replayEvents reads only claims that have steps, so that a row which was
// changed by hand, and says that it has none, is found here.
func (au *auditor) findWithoutEvent(ctx context.Context) error {
	// Each regular order has the terms of payment of its own time.
	initial, args := `?`, []any{au.c.Number, int64(au.c.InitialStatus()), maxBad}
	if au.c.Regular() {
		initial, args = `CASE WHEN pay_by > 0 THEN 0 ELSE 1 END`, []any{au.c.Number, maxBad}
	}
	return au.s.Each(ctx, `SELECT shard, epoch, seq FROM claims WHERE campaign = ? AND steps = 0 AND (status <> `+initial+` OR restocked = 1)
		ORDER BY shard, epoch, seq LIMIT ?`, args, func(rows *sql.Rows) error {
		p := dibs.Position{ShardID: dibs.ShardID{Campaign: au.c.Number}}
		err := rows.Scan(&p.Shard, &p.Epoch, &p.Seq)
		au.badClaim("the claim %s has changed without an event", p)
		return err
	})
}

// badClaim adds a contradiction between a claim and its events to the audit.
func (au *auditor) badClaim(format string, args ...any) { addBad(&au.a.BadLives, format, args...) }

package sqlledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dibs-dev/dibs"
)

// retellLives tells the life of every claim that has one from its events, and
// compares what comes out with the claim's row and payment.
func (au *auditor) retellLives(ctx context.Context) error {
	after := dibs.Position{}
	for {
		claims, err := au.movedAfter(ctx, after)
		if err != nil {
			return err
		}
		for i := range claims {
			au.retell(&claims[i])
		}
		if len(claims) < runLength {
			break
		}
		after = claims[len(claims)-1].claim.Position
	}
	if err := au.findUntold(ctx); err != nil {
		return err
	}
	return au.s.row(ctx, `SELECT COALESCE(SUM(CASE WHEN due = 0 THEN amount ELSE 0 END), 0), COALESCE(SUM(refunded), 0),
		COALESCE(SUM(CASE WHEN due = 1 THEN amount - refunded ELSE 0 END), 0) FROM payments WHERE campaign = ?`,
		[]any{au.c.Number}, &au.a.Paid, &au.a.Refunded, &au.a.Due)
}

// movedAfter reads the next claims that have moved, each brought up to its
// events, beside what its row says.
func (au *auditor) movedAfter(ctx context.Context, after dibs.Position) ([]life, error) {
	where, args := au.s.d.compare([]string{"shard", "epoch", "seq"}, ">", after.Shard, after.Epoch, after.Seq)
	args = append(append([]any{au.c.Number}, args...), runLength)
	var found []life
	if err := au.s.each(ctx, `SELECT `+claimColumns+` FROM claims WHERE campaign = ? AND `+where+` AND steps > 0
		ORDER BY shard, epoch, seq LIMIT ?`, args, func(rows *sql.Rows) error {
		found = append(found, life{})
		v := &found[len(found)-1]
		err := scanClaim(rows, &v.claim)
		v.status, v.restocked, v.steps = v.claim.Status, v.claim.Restocked, cap(v.claim.Events)
		return err
	}); err != nil {
		return nil, err
	}
	claims := make([]*dibs.Claim, len(found))
	byPlace := make(map[dibs.Position]*life, len(found))
	at := make([]dibs.Position, len(found))
	for i := range found {
		// The events alone have to tell it.
		claims[i] = &found[i].claim
		claims[i].Restocked = false
		claims[i].Status = au.c.InitialStatus()
		if au.c.Regular() && claims[i].PayBy.IsZero() {
			claims[i].Status = dibs.Confirmed
		} else if au.c.Regular() {
			claims[i].Status = dibs.Pending
		}
		byPlace[claims[i].Position], at[i] = &found[i], claims[i].Position
	}
	if err := eventsOf(ctx, au.s, claims); err != nil {
		return nil, err
	}
	return found, au.readPayments(ctx, at, byPlace)
}

func (au *auditor) readPayments(ctx context.Context, at []dibs.Position, byPlace map[dibs.Position]*life) error {
	for _, r := range runsOf(at) {
		if err := r.each(func(seqs []any) error {
			where, args := r.at(au.s.d, "payments", "epoch", "seq", seqs)
			return au.s.each(ctx, `SELECT seq, ref, amount, currency, refunded, due, at FROM payments WHERE `+where, args,
				func(rows *sql.Rows) error {
					p := dibs.Position{ShardID: r.shard, Cursor: dibs.Cursor{Epoch: r.epoch}}
					paid := &dibs.Payment{}
					var at int64
					if err := rows.Scan(&p.Seq, &paid.Ref, &paid.Amount.Amount, &paid.Amount.Currency, &paid.Refunded, &paid.Due, &at); err != nil {
						return err
					}
					paid.At = fromMS(at)
					byPlace[p].payment = paid
					return nil
				})
		}); err != nil {
			return err
		}
	}
	return nil
}

// retell compares one claim.
func (au *auditor) retell(v *life) {
	c, at := &v.claim, v.claim.Position
	if len(c.Events) != v.steps {
		au.badLife("the claim %s has %d events and should have %d", at, len(c.Events), v.steps)
		return
	}
	if c.Status != v.status || c.Restocked != v.restocked {
		au.badLife("the claim %s is %s, its events say %s", at, v.status, c.Status)
	}
	switch {
	case (c.Payment == nil) != (v.payment == nil):
		au.badLife("the claim %s has a payment in its row or in its events, and not in both", at)
	case c.Payment != nil && c.Payment.Refunded > c.Payment.Amount.Amount:
		au.badLife("of the claim %s more went back than was paid", at)
	case c.Payment != nil && *c.Payment != *v.payment:
		au.badLife("the payment of the claim %s is %+v, its events say %+v", at, *v.payment, *c.Payment)
	}
}

// findUntold finds claims that have changed without an event.
func (au *auditor) findUntold(ctx context.Context) error {
	// Each regular order has the terms of its own time.
	initial, args := `?`, []any{au.c.Number, int64(au.c.InitialStatus()), maxBad}
	if au.c.Regular() {
		initial, args = `CASE WHEN pay_by > 0 THEN 0 ELSE 1 END`, []any{au.c.Number, maxBad}
	}
	return au.s.each(ctx, `SELECT shard, epoch, seq FROM claims WHERE campaign = ? AND steps = 0 AND (status <> `+initial+` OR restocked = 1)
		ORDER BY shard, epoch, seq LIMIT ?`, args, func(rows *sql.Rows) error {
		p := dibs.Position{ShardID: dibs.ShardID{Campaign: au.c.Number}}
		err := rows.Scan(&p.Shard, &p.Epoch, &p.Seq)
		au.badLife("the claim %s has changed without an event", p)
		return err
	})
}

func (au *auditor) badLife(format string, args ...any) {
	if len(au.a.BadLives) < maxBad {
		au.a.BadLives = append(au.a.BadLives, fmt.Sprintf(format, args...))
	}
}

// countCommands counts what the engine has not been told.
func (au *auditor) countCommands(ctx context.Context) error {
	return au.s.row(ctx, `SELECT COUNT(*) FROM outbox WHERE campaign = ?`, []any{au.c.Number}, &au.a.Waiting)
}

package orders

import (
	"context"
	"errors"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

// Confirm takes note of a payment, once: the same ref again returns the claim.
// replayed reports, here and below, that the step was made before; it is known by its ref, where it has one.
// A claim that is on its way to the ledger is waited for. A payment whose claim
// was released follows the campaign's rule: the claim returned may then be a new
// one that names the old, or the old one with a payment that is due back.
// *Error of NotFound, InvalidRequest for another amount, InvalidState, or
// Unavailable: repeat it with the same ref.
func (s *Orders) Confirm(ctx context.Context, id string, p dibs.PaymentSpec) (claim *dibs.Claim, replayed bool, err error) {
	fs := dibs.TextFault("/payment_ref", p.PaymentRef, true, dibs.MaxRefLen)
	if p.Amount != nil {
		fs = append(fs, p.Amount.Faults("/amount")...)
	}
	if len(fs) > 0 {
		return nil, false, dibs.Invalid(fs...)
	}
	facts := dibs.EventFacts{Ref: p.PaymentRef, Amount: p.Amount}
	claim, replayed, err = s.step(ctx, id, dibs.Move{Step: dibs.StepConfirm, EventFacts: facts})
	if errors.Is(err, dibs.ErrLatePayment) {
		return s.payLate(ctx, claim, facts)
	}
	if err == nil && replayed && claim.ReplacedBy != "" {
		claim, err = s.claims.Find(ctx, claim.ReplacedBy)
	}
	return claim, replayed, err
}

// Cancel gives a pending claim up: its stock comes back. user is whose claim it
// must be, empty for anyone's. ref makes it happen once; it may be empty. Errors as Confirm.
func (s *Orders) Cancel(ctx context.Context, id, user, ref string) (claim *dibs.Claim, replayed bool, err error) {
	return s.step(ctx, id, dibs.Move{Step: dibs.StepCancel, UserID: user, EventFacts: dibs.EventFacts{Ref: ref}})
}

// Refund notes that money went back, all that is left of it or a part, and
// takes the stock back when told to. Refunds never exceed what was
// paid. ref makes it happen once; it may be empty. Errors as Confirm.
func (s *Orders) Refund(ctx context.Context, id string, r dibs.RefundSpec, ref string) (claim *dibs.Claim, replayed bool, err error) {
	return s.RefundWithin(ctx, id, r, ref, 0)
}

// RefundWithin is Refund that brings what went back of the claim to a bound at most, in minor units; 0 for no bound. Of
// refunds at the same time that exceed it together, the ledger refuses the later ones: *Error of InvalidState.
func (s *Orders) RefundWithin(ctx context.Context, id string, r dibs.RefundSpec, ref string, bound int64) (claim *dibs.Claim, replayed bool, err error) {
	if r.Amount != nil {
		if fs := r.Amount.Faults("/amount"); len(fs) > 0 {
			return nil, false, dibs.Invalid(fs...)
		}
	}
	return s.step(ctx, id, dibs.Move{Step: dibs.StepRefund, Within: bound, EventFacts: dibs.EventFacts{Ref: ref, Amount: r.Amount, Restock: r.Restock}})
}

// Redeem notes the use of a coupon, once for each ref. Errors as Confirm.
func (s *Orders) Redeem(ctx context.Context, id string, r dibs.RedeemSpec) (claim *dibs.Claim, replayed bool, err error) {
	fs := dibs.TextFault("/ref", r.Ref, true, dibs.MaxRefLen)
	if r.UserID != "" && !dibs.IsID(r.UserID) {
		fs = append(fs, dibs.Fault{Field: "/user_id", Problem: dibs.BadID})
	}
	if r.Amount != nil {
		fs = append(fs, r.Amount.Faults("/amount")...)
	}
	if len(fs) > 0 {
		return nil, false, dibs.Invalid(fs...)
	}
	return s.step(ctx, id, dibs.Move{Step: dibs.StepRedeem, UserID: r.UserID, EventFacts: dibs.EventFacts{Ref: r.Ref, Amount: r.Amount}})
}

// Unredeem rolls the use of a coupon back: it can be used again, under another
// ref. Errors as Confirm.
func (s *Orders) Unredeem(ctx context.Context, id string, r dibs.UnredeemSpec) (claim *dibs.Claim, replayed bool, err error) {
	if fs := dibs.TextFault("/ref", r.Ref, false, dibs.MaxRefLen); len(fs) > 0 {
		return nil, false, dibs.Invalid(fs...)
	}
	return s.step(ctx, id, dibs.Move{Step: dibs.StepUnredeem, EventFacts: dibs.EventFacts{Ref: r.Ref}})
}

// Ship notes how the goods of a confirmed claim travel. Said again otherwise,
// the last word counts. Errors as Confirm.
func (s *Orders) Ship(ctx context.Context, id string, sh dibs.ShipmentSpec) (claim *dibs.Claim, replayed bool, err error) {
	fs := dibs.TextFault("/carrier", sh.Carrier, true, dibs.MaxCarrierLen)
	fs = append(fs, dibs.TextFault("/tracking_no", sh.TrackingNo, true, dibs.MaxRefLen)...)
	if len(fs) > 0 {
		return nil, false, dibs.Invalid(fs...)
	}
	return s.step(ctx, id, dibs.Move{Step: dibs.StepShip, EventFacts: dibs.EventFacts{Carrier: sh.Carrier, TrackingNo: sh.TrackingNo}})
}

// step makes one move of one claim. With an error of a move, the claim is
// returned as it stands when there is one.
func (s *Orders) step(ctx context.Context, id string, m dibs.Move) (*dibs.Claim, bool, error) {
	p, err := s.ids.Decode(id)
	if err != nil {
		return nil, false, dibs.NoSuchClaim
	}
	if m.Campaign, err = s.registry.GetByNumber(ctx, p.Campaign); errors.Is(err, dibs.ErrNotFound) {
		return nil, false, dibs.NoSuchClaim
	} else if err != nil {
		return nil, false, err
	}
	m.Position, m.At = p, dibs.Ms(s.now())
	moved, err := s.move(ctx, m)
	if errors.Is(err, dibs.ErrNotFound) && len(moved) == 1 && moved[0].Claim == nil {
		// It may be on its way.
		if err := s.awaitSettled(ctx, m.Campaign, p); err != nil {
			return nil, false, err
		}
		moved, err = s.move(ctx, m)
	}
	if len(moved) != 1 || moved[0].Claim == nil {
		if errors.Is(err, dibs.ErrNotFound) {
			err = dibs.NoSuchClaim
		}
		return nil, false, err
	}
	return s.claims.Fill(m.Campaign, moved[0].Claim), moved[0].Replayed, err
}

// awaitSettled returns when a claim that the engine has granted is in the
// ledger.
func (s *Orders) awaitSettled(ctx context.Context, c *dibs.Campaign, p dibs.Position) error {
	if _, ok, err := s.engine.Find(ctx, p); err != nil {
		return dibs.AsUnavailable(err, dibs.EffectNone)
	} else if !ok {
		// It may have been settled, and left the engine, meanwhile.
		return nil
	}
	if _, err := s.loader.EnsureLive(ctx, c); err != nil {
		return err
	}
	if t := s.registry.Shard(p.ShardID); t != nil {
		return s.settler.SettleTo(ctx, t, p.Cursor)
	}
	// The campaign is over, and another node settles the rest of it.
	ctx, cancel := context.WithTimeout(ctx, s.ledgerTimeout)
	defer cancel()
	for {
		totals, err := s.ledger.Totals(ctx, p.ShardID)
		if err == nil && !totals.Position.Before(p.Cursor) {
			return nil
		}
		if !wait.Sleep(ctx, live.FollowEvery) {
			return dibs.Unavail(dibs.EffectNone, errors.Join(live.ErrStill, err))
		}
	}
}

// lateTries bounds how many claims a late payment goes through that were
// released before it reached them.
const lateTries = 8

// payLate does with a payment whose claim was released what the campaign's rule
// says. A repeat of the payment with the same ref comes to the same end, also after a
// failure on the way.
func (s *Orders) payLate(ctx context.Context, claim *dibs.Claim, facts dibs.EventFacts) (*dibs.Claim, bool, error) {
	c, err := s.registry.GetByNumber(ctx, claim.Position.Campaign)
	if err != nil {
		return nil, false, err
	}
	// A user who gave the claim up does not want it back.
	if c.LatePayment != dibs.Reclaim || claim.Last(dibs.StepExpire) == nil {
		return s.flagRefundDue(ctx, c, claim, facts)
	}
	next := claim.Position
	for range lateTries {
		g, err := s.reclaim(ctx, c, claim, next)
		if err != nil {
			return nil, false, err
		}
		if g == nil {
			return s.flagRefundDue(ctx, c, claim, facts)
		}
		at, old := dibs.Ms(s.now()), claim.Position
		replace, confirm := facts, facts
		replace.Other, confirm.Other = &g.Position, &old
		moved, err := s.move(ctx,
			dibs.Move{Campaign: c, Position: old, Step: dibs.StepReplace, At: at, EventFacts: replace},
			dibs.Move{Campaign: c, Position: g.Position, Step: dibs.StepConfirm, At: at, EventFacts: confirm})
		if errors.Is(err, dibs.ErrLatePayment) {
			// An earlier attempt took this stock, and nobody came back in time.
			next = g.Position
			continue
		}
		if errors.Is(err, dibs.ErrInvalidState) {
			// An earlier attempt took this stock, and another payment paid for it.
			return s.flagRefundDue(ctx, c, claim, facts)
		}
		if err != nil {
			return nil, false, err
		}
		return s.claims.Fill(c, moved[1].Claim), moved[1].Replayed, nil
	}
	return s.flagRefundDue(ctx, c, claim, facts)
}

// flagRefundDue leaves the claim released and flags its payment.
func (s *Orders) flagRefundDue(ctx context.Context, c *dibs.Campaign, claim *dibs.Claim, facts dibs.EventFacts) (*dibs.Claim, bool, error) {
	moved, err := s.move(ctx, dibs.Move{
		Campaign: c, Position: claim.Position, Step: dibs.StepRefundDue, At: dibs.Ms(s.now()), EventFacts: facts,
	})
	if err != nil {
		return nil, false, err
	}
	return s.claims.Fill(c, moved[0].Claim), moved[0].Replayed, nil
}

// reclaim takes stock again for a late payer and waits until the ledger has
// the grant; nil when there is none to be had. The key names the claim that was
// released last, so that whoever tries again finds the same grant.
func (s *Orders) reclaim(ctx context.Context, c *dibs.Campaign, claim *dibs.Claim, released dibs.Position) (*dibs.Grant, error) {
	if c.Regular() {
		return s.reorder(ctx, c, claim, LateKey(s.ids.Encode(released)))
	}
	if l := s.registry.Live(c.ID); l == nil || len(l.Shards) < c.Shards {
		// It may have left the engine, which decides all the same.
		if err := s.loader.Recall(ctx, c); err != nil {
			return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
	}
	late := dibs.EngineClaim{
		Shard: released.ShardID, UserID: claim.UserID, Quantity: claim.Quantity,
		Key: LateKey(s.ids.Encode(released)), Reference: claim.Reference, Late: true,
	}
	d, err := s.engine.Claim(ctx, late)
	if err == nil && d.Outcome == dibs.SoldOut && c.Shards > 1 {
		// Other shards may have some.
		if err := s.moving.Gather(ctx, c, released.Shard, claim.Quantity); errors.Is(err, dibs.ErrInvalidState) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		d, err = s.engine.Claim(ctx, late)
	}
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	if d.Outcome == dibs.Unavailable {
		// It may be granted yet: the payment is tried again.
		return nil, claims.LevelLost
	}
	if d.Outcome != dibs.Granted {
		return nil, nil
	}
	if err := s.awaitSettled(ctx, c, d.Grant.Position); err != nil {
		return nil, err
	}
	return &d.Grant, nil
}

// LateKey is the key under which a payment takes stock again for a claim that
// was released, as the engine has it. No user's key has a space in it.
func LateKey(claimID string) uint64 { return dibs.KeyHash("late payment of " + claimID) }

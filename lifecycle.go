package dibs

import (
	"context"
	"errors"
	"time"
)

// PaymentSpec tells of a payment.
type PaymentSpec struct {
	Amount     *Money `json:"amount,omitempty" doc:"what was paid: exactly what the claim costs; absent when it costs nothing"`
	PaymentRef string `json:"payment_ref" doc:"the payment's own name, 1-255 characters: the same one again changes nothing"`
}

// RefundSpec asks for money to be noted as returned.
type RefundSpec struct {
	Amount  *Money `json:"amount,omitempty" doc:"absent: all that is left of the payment"`
	Restock bool   `json:"restock,omitempty" doc:"the stock and the user's allowance come back too"`
}

// RedeemSpec tells of the use of a coupon.
type RedeemSpec struct {
	Ref    string `json:"ref" doc:"what the coupon is used for, an order say, 1-255 characters: the same one again changes nothing"`
	UserID string `json:"user_id,omitempty" doc:"whose the coupon must be, when given"`
	Amount *Money `json:"amount,omitempty" doc:"what it saved, for the record"`
}

// UnredeemSpec rolls the use of a coupon back.
type UnredeemSpec struct {
	Ref string `json:"ref,omitempty" doc:"the use to roll back; absent: the present one"`
}

// ShipmentSpec says how the goods travel.
type ShipmentSpec struct {
	Carrier    string `json:"carrier" doc:"1-100 characters"`
	TrackingNo string `json:"tracking_no" doc:"1-255 characters"`
}

// Confirm takes note of a payment, once: the same ref again returns the claim.
// A claim that is on its way to the ledger is waited for. A payment whose claim
// was released follows the campaign's rule: the claim returned may then be a new
// one that names the old, or the old one with a payment that is due back.
// *Error of NotFound, InvalidRequest for another amount, InvalidState, or
// Unavailable: repeat it with the same ref.
func (s *Service) Confirm(ctx context.Context, id string, p PaymentSpec) (*Claim, bool, error) {
	fs := refFault("/payment_ref", p.PaymentRef, true)
	if p.Amount != nil {
		fs = append(fs, p.Amount.faults("/amount")...)
	}
	if len(fs) > 0 {
		return nil, false, Invalid(fs...)
	}
	facts := EventFacts{Ref: p.PaymentRef, Amount: p.Amount}
	claim, replayed, err := s.step(ctx, id, Move{Step: StepConfirm, EventFacts: facts})
	if errors.Is(err, ErrLatePayment) {
		return s.payLate(ctx, claim, facts)
	}
	if err == nil && replayed && claim.ReplacedBy != "" {
		claim, err = s.FindClaim(ctx, claim.ReplacedBy)
	}
	return claim, replayed, err
}

// Cancel gives a pending claim up: its stock comes back. user is whose claim it
// must be, empty for anyone's. ref makes it happen once; it may be empty.
func (s *Service) Cancel(ctx context.Context, id, user, ref string) (*Claim, bool, error) {
	return s.step(ctx, id, Move{Step: StepCancel, UserID: user, EventFacts: EventFacts{Ref: ref}})
}

// Refund notes that money went back, all that is left of it or a part, and
// takes the stock back when told to. What was refunded never exceeds what was
// paid. ref makes it happen once; it may be empty.
func (s *Service) Refund(ctx context.Context, id string, r RefundSpec, ref string) (*Claim, bool, error) {
	if r.Amount != nil {
		if fs := r.Amount.faults("/amount"); len(fs) > 0 {
			return nil, false, Invalid(fs...)
		}
	}
	return s.step(ctx, id, Move{Step: StepRefund, EventFacts: EventFacts{Ref: ref, Amount: r.Amount, Restock: r.Restock}})
}

// Redeem notes the use of a coupon, once for each ref.
func (s *Service) Redeem(ctx context.Context, id string, r RedeemSpec) (*Claim, bool, error) {
	fs := refFault("/ref", r.Ref, true)
	if r.UserID != "" && !isID(r.UserID) {
		fs = append(fs, Fault{"/user_id", badID})
	}
	if r.Amount != nil {
		fs = append(fs, r.Amount.faults("/amount")...)
	}
	if len(fs) > 0 {
		return nil, false, Invalid(fs...)
	}
	return s.step(ctx, id, Move{Step: StepRedeem, UserID: r.UserID, EventFacts: EventFacts{Ref: r.Ref, Amount: r.Amount}})
}

// Unredeem rolls the use of a coupon back: it can be used again, under another
// ref.
func (s *Service) Unredeem(ctx context.Context, id string, r UnredeemSpec) (*Claim, bool, error) {
	if fs := refFault("/ref", r.Ref, false); len(fs) > 0 {
		return nil, false, Invalid(fs...)
	}
	return s.step(ctx, id, Move{Step: StepUnredeem, EventFacts: EventFacts{Ref: r.Ref}})
}

// Ship notes how the goods of a confirmed claim travel. Said again otherwise,
// the last word counts.
func (s *Service) Ship(ctx context.Context, id string, sh ShipmentSpec) (*Claim, bool, error) {
	fs := textFault("/carrier", sh.Carrier, true, MaxCarrierLen)
	fs = append(fs, refFault("/tracking_no", sh.TrackingNo, true)...)
	if len(fs) > 0 {
		return nil, false, Invalid(fs...)
	}
	return s.step(ctx, id, Move{Step: StepShip, EventFacts: EventFacts{Carrier: sh.Carrier, TrackingNo: sh.TrackingNo}})
}

// refFault reports a ref that is missing, too long, or has characters that
// cannot be seen.
func refFault(field, ref string, required bool) []Fault {
	if fs := textFault(field, ref, required, MaxRefLen); len(fs) > 0 {
		return fs
	}
	for _, r := range ref {
		if r < ' ' || r == 0x7f {
			return []Fault{{field, Text{"must not have control characters", "不能包含控制字符"}}}
		}
	}
	return nil
}

// step makes one move of one claim. With an error of a move, the claim is
// returned as it stands when there is one.
func (s *Service) step(ctx context.Context, id string, m Move) (*Claim, bool, error) {
	p, err := s.ids.Decode(id)
	if err != nil {
		return nil, false, noSuchClaim
	}
	if m.Campaign, err = s.campaignOf(ctx, p.Campaign); errors.Is(err, ErrNotFound) {
		return nil, false, noSuchClaim
	} else if err != nil {
		return nil, false, err
	}
	m.Position, m.At = p, ms(s.cfg.Now())
	moved, err := s.move(ctx, m)
	if errors.Is(err, ErrNotFound) && len(moved) == 1 && moved[0].Claim == nil {
		// It may be on its way.
		if err := s.awaitSettled(ctx, m.Campaign, p); err != nil {
			return nil, false, err
		}
		moved, err = s.move(ctx, m)
	}
	if len(moved) != 1 || moved[0].Claim == nil {
		if errors.Is(err, ErrNotFound) {
			err = noSuchClaim
		}
		return nil, false, err
	}
	return s.dress(m.Campaign, moved[0].Claim), moved[0].Replayed, err
}

// awaitSettled returns when a claim that the engine has granted is in the
// ledger.
func (s *Service) awaitSettled(ctx context.Context, c *Campaign, p Position) error {
	if _, ok, err := s.engine.Find(ctx, p); err != nil {
		return asUnavailable(err, EffectNone)
	} else if !ok {
		// It may have been settled, and left the engine, meanwhile.
		return nil
	}
	if _, err := s.liveOf(ctx, c); err != nil {
		return err
	}
	if t := s.settlingOf(p.ShardID); t != nil {
		return s.settleTo(ctx, t, p.Cursor)
	}
	// The campaign is over, and another node settles the rest of it.
	ctx, cancel := context.WithTimeout(ctx, s.cfg.LedgerTimeout)
	defer cancel()
	for {
		totals, err := s.ledger.Totals(ctx, p.ShardID)
		if err == nil && !totals.Position.Before(p.Cursor) {
			return nil
		}
		if !sleep(ctx, followEvery) {
			return Unavail(EffectNone, errors.Join(errStill, err))
		}
	}
}

// lateTries bounds how many claims a late payment goes through that were
// released before it reached them.
const lateTries = 8

// payLate does with a payment whose claim was released what the campaign's rule
// says. Whatever happens on the way, the payment with the same ref again comes
// to the same end.
func (s *Service) payLate(ctx context.Context, claim *Claim, facts EventFacts) (*Claim, bool, error) {
	c, err := s.campaignOf(ctx, claim.Position.Campaign)
	if err != nil {
		return nil, false, err
	}
	// Who gave the claim up does not want it back.
	if c.LatePayment != Reclaim || claim.last(StepExpire) == nil {
		return s.payBack(ctx, c, claim, facts)
	}
	next := claim.Position
	for range lateTries {
		g, err := s.reclaim(ctx, c, claim, next)
		if err != nil {
			return nil, false, err
		}
		if g == nil {
			return s.payBack(ctx, c, claim, facts)
		}
		at, old := ms(s.cfg.Now()), claim.Position
		replace, confirm := facts, facts
		replace.Other, confirm.Other = &g.Position, &old
		moved, err := s.move(ctx,
			Move{Campaign: c, Position: old, Step: StepReplace, At: at, EventFacts: replace},
			Move{Campaign: c, Position: g.Position, Step: StepConfirm, At: at, EventFacts: confirm})
		if errors.Is(err, ErrLatePayment) {
			// An earlier attempt took this stock, and nobody came back in time.
			next = g.Position
			continue
		}
		if err != nil {
			return nil, false, err
		}
		return s.dress(c, moved[1].Claim), moved[1].Replayed, nil
	}
	return s.payBack(ctx, c, claim, facts)
}

// payBack leaves the claim released and flags its payment.
func (s *Service) payBack(ctx context.Context, c *Campaign, claim *Claim, facts EventFacts) (*Claim, bool, error) {
	moved, err := s.move(ctx, Move{
		Campaign: c, Position: claim.Position, Step: StepRefundDue, At: ms(s.cfg.Now()), EventFacts: facts,
	})
	if err != nil {
		return nil, false, err
	}
	return s.dress(c, moved[0].Claim), moved[0].Replayed, nil
}

// reclaim takes stock again for a late payer and waits until the ledger has
// the grant; nil when there is none to be had. The key names the claim that was
// released last, so that whoever tries again finds the same grant.
func (s *Service) reclaim(ctx context.Context, c *Campaign, claim *Claim, released Position) (*Grant, error) {
	if c.Regular() {
		return s.reorder(ctx, c, claim, LateKey(s.ids.Encode(released)))
	}
	if _, ok := s.lives.Load(c.ID); !ok {
		// It may have left the engine, which decides all the same.
		if err := s.recall(ctx, c); err != nil {
			return nil, asUnavailable(err, EffectUnknown)
		}
	}
	d, err := s.engine.Claim(ctx, EngineClaim{
		Shard: released.ShardID, UserID: claim.UserID, Quantity: claim.Quantity,
		Key: LateKey(s.ids.Encode(released)), Late: true,
	})
	if err != nil {
		return nil, asUnavailable(err, EffectUnknown)
	}
	if d.Outcome == Unavailable {
		// It may be granted yet: the payment is tried again.
		return nil, levelLost
	}
	if d.Outcome != Granted {
		return nil, nil
	}
	if err := s.awaitSettled(ctx, c, d.Grant.Position); err != nil {
		return nil, err
	}
	return &d.Grant, nil
}

// LateKey is the key under which a payment takes stock again for a claim that
// was released, as the engine has it. No user's key has a space in it.
func LateKey(claimID string) uint64 { return keyHash("late payment of " + claimID) }

// dressLife fills in what a claim's events tell about other claims, and the
// end of a coupon.
func (s *Service) dressLife(c *Campaign, claim *Claim) {
	claim.ValidUntil = time.Time{}
	if c.Kind == Coupon {
		claim.ValidUntil = c.ValidUntilFor(claim)
	}
	for i := range claim.Events {
		e := &claim.Events[i]
		switch {
		case e.Other == nil:
		case e.Step == StepReplace:
			claim.ReplacedBy = s.ids.Encode(*e.Other)
		default:
			claim.Replaces = s.ids.Encode(*e.Other)
		}
	}
}

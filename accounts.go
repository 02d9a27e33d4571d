package dibs

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// DepositSpec is money that comes in from outside.
type DepositSpec struct {
	Amount Money  `json:"amount" doc:"what came in, from 1 minor unit"`
	Ref    string `json:"ref" doc:"the deposit's own name, 1-255 characters: the same one again changes nothing"`
}

// DepositView is a deposit as answered.
type DepositView struct {
	UserID string `json:"user_id"`
	Amount Money  `json:"amount"`
	Ref    string `json:"ref"`
	// Balances are the user's after it, by currency.
	Balances []Money `json:"balances"`
}

// BalanceView is what a user has, by currency.
type BalanceView struct {
	Balances []Money `json:"balances"`
}

// PostingView is one entry of a user's account.
type PostingView struct {
	Kind TransferKind `json:"kind" enum:"deposit,fund,credit,return" doc:"deposit: came in from outside; fund: paid for a red packet; credit: a share of one; return: what was left of one"`
	// Amount is negative for what left the account.
	Amount     SignedMoney `json:"amount"`
	Ref        string      `json:"ref,omitempty"`
	CampaignID string      `json:"campaign_id,omitempty"`
	ClaimID    string      `json:"claim_id,omitempty"`
	At         time.Time   `json:"at"`
}

// SignedMoney is an amount of money that may be negative.
type SignedMoney struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// PacketView is a red packet as everybody may see it.
type PacketView struct {
	Total Money `json:"total"`
	Count int64 `json:"count"`
}

// FundsView says where a red packet's money is: funded = credited + returned +
// escrow.
type FundsView struct {
	Funded   Money `json:"funded"`
	Credited Money `json:"credited"`
	Returned Money `json:"returned"`
	Escrow   Money `json:"escrow"`
	// ReturnedAt is when the rest went back to the sender; null while open.
	ReturnedAt *time.Time `json:"returned_at"`
	// Problem says why the red packet does not get on; absent while it does.
	Problem string `json:"problem,omitempty"`
}

// ResultCode is the answer to a grab in one character, as the articles have
// it: "0" granted, "1" the user has one already, "-1" none left; empty for other
// outcomes.
func ResultCode(outcome Reason) string {
	switch outcome {
	case Granted:
		return "0"
	case LimitReached:
		return "1"
	case SoldOut:
		return "-1"
	}
	return ""
}

// Deposit puts money that came in from outside on a user's account, once by its
// ref; true when that had been done before. *Error of InvalidRequest, of
// AlreadyExists when the ref is another deposit's, or Unavailable: repeat it with
// the same ref.
func (s *Service) Deposit(ctx context.Context, user string, d DepositSpec) (*DepositView, bool, error) {
	var fs []Fault
	if !isID(user) {
		fs = append(fs, Fault{"/user", badID})
	}
	if d.Amount.Amount == 0 {
		fs = append(fs, Fault{"/amount/amount", Textf("must be from 1 to %d", "必须在 1 到 %d 之间", MaxMinor-1)})
	}
	fs = append(fs, d.Amount.faults("/amount")...)
	fs = append(fs, refFault("/ref", d.Ref, true)...)
	if len(fs) > 0 {
		return nil, false, Invalid(fs...)
	}
	replayed, err := s.ledger.Deposit(ctx, &Deposit{UserID: user, Amount: d.Amount, Ref: d.Ref, At: ms(s.cfg.Now())})
	if err != nil {
		return nil, false, asUnavailable(err, EffectUnknown)
	}
	balances, err := s.ledger.Balances(ctx, user)
	if err != nil {
		return nil, false, asUnavailable(err, EffectUnknown)
	}
	return &DepositView{UserID: user, Amount: d.Amount, Ref: d.Ref, Balances: balances}, replayed, nil
}

// Balance returns what a user has, by currency; none for a user who never had
// anything.
func (s *Service) Balance(ctx context.Context, user string) (*BalanceView, error) {
	if !isID(user) {
		return nil, Invalid(Fault{"/user", badID})
	}
	balances, err := s.ledger.Balances(ctx, user)
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	return &BalanceView{Balances: balances}, nil
}

// Postings lists the entries of a user's account, newest first.
func (s *Service) Postings(ctx context.Context, user string, page Page) (List[PostingView], error) {
	var views List[PostingView]
	if !isID(user) {
		return views, Invalid(Fault{"/user", badID})
	}
	list, err := s.ledger.Postings(ctx, user, page)
	if err != nil {
		return views, asUnavailable(err, EffectNone)
	}
	views.NextCursor = list.NextCursor
	views.Items = make([]PostingView, len(list.Items))
	for i := range list.Items {
		p := &list.Items[i]
		if p.Kind == TransferCredit {
			p.ClaimID = s.ids.Encode(p.Claim)
		}
		views.Items[i] = PostingView{
			Kind: p.Kind, Amount: SignedMoney{p.Amount, p.Currency}, Ref: p.Ref,
			CampaignID: p.CampaignID, ClaimID: p.ClaimID, At: p.At,
		}
	}
	return views, nil
}

// fundsView says where a red packet's money is; nil for other kinds.
func (s *Service) fundsView(ctx context.Context, c *Campaign) (*FundsView, error) {
	if c.Kind != RedPacket {
		return nil, nil
	}
	f, err := s.ledger.PacketFunds(ctx, c.Number)
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	in := func(amount int64) Money { return Money{Amount: amount, Currency: f.Currency} }
	v := &FundsView{Funded: in(f.Funded), Credited: in(f.Credited), Returned: in(f.Returned), Escrow: in(f.Escrow)}
	if !f.ReturnedAt.IsZero() {
		v.ReturnedAt = &f.ReturnedAt
	} else {
		v.Problem = s.packetProblem(c.Number)
	}
	return v, nil
}

// money judges the money of a campaign: what was paid for its claims, or what a
// red packet's shares came to.
func (f *finding) money() PromiseCheck {
	a := f.audit
	check := PromiseCheck{Promise: "money is conserved", Held: len(a.BadLives) == 0}
	if a.Packet == nil {
		check.Detail = fmt.Sprintf("%d paid, %d refunded, %d due back (minor units); claims at odds with their events: %s",
			a.Paid, a.Refunded, a.Due, orNone(a.BadLives))
		return check
	}
	p := a.Packet
	bad := slices.Concat(p.Bad, f.accounts, a.BadLives)
	check.Held = len(bad) == 0 && p.Shares == p.Total && p.Funded == p.Credited+p.Returned+p.Escrow
	check.Detail = fmt.Sprintf("%d shares sum to %d of %d; %d funded = %d credited + %d returned + %d in escrow (minor units); "+
		"claims still to be credited: %d; at odds: %s",
		p.Count, p.Shares, p.Total, p.Funded, p.Credited, p.Returned, p.Escrow, p.Waiting, orNone(bad))
	return check
}

package dibs

import (
	"errors"
	"testing"
	"time"
)

// A stepCase is a story of a claim, and what the next step makes of it.
type stepCase struct {
	status   Status
	campaign *Campaign
	made     []Move
	next     Move
	want     Status
	replayed bool
	fails    error
}

// stepCases are the stories of claims, by what happens in them.
func stepCases(now time.Time) map[string]stepCase {
	price := &Money{Amount: 500, Currency: "CNY"}
	sale, coupon := &Campaign{Kind: Sale}, &Campaign{Kind: Coupon}
	step := func(s Step, facts EventFacts) Move { return Move{Step: s, At: now, EventFacts: facts} }
	pay := step(StepConfirm, EventFacts{Ref: "pay", Amount: price})
	cancel, back := step(StepCancel, EventFacts{}), step(StepRefund, EventFacts{Ref: "back"})
	return map[string]stepCase{
		"paid in time":                {status: Pending, next: pay, want: Confirmed},
		"paid twice by one payment":   {status: Pending, made: []Move{pay}, next: pay, replayed: true},
		"paid by another payment too": {status: Pending, made: []Move{pay}, next: step(StepConfirm, EventFacts{Ref: "second", Amount: price}), fails: ErrInvalidState},
		"paid too little":             {status: Pending, next: step(StepConfirm, EventFacts{Ref: "pay", Amount: &Money{Amount: 499, Currency: "CNY"}}), fails: ErrInvalid},
		"paid after its release":      {status: Pending, made: []Move{cancel}, next: pay, fails: ErrLatePayment},
		"cancelled":                   {status: Pending, next: cancel, want: Released},
		"cancelled after payment":     {status: Pending, made: []Move{pay}, next: cancel, fails: ErrInvalidState},
		"refunded":                    {status: Pending, made: []Move{pay}, next: back, want: Refunded},
		"refunded twice by one ref":   {status: Pending, made: []Move{pay, back}, next: back, replayed: true},
		"refunded in part":            {status: Pending, made: []Move{pay}, next: step(StepRefund, EventFacts{Ref: "part", Amount: &Money{Amount: 1, Currency: "CNY"}}), want: Confirmed},
		"refunded beyond the payment": {status: Pending, made: []Move{pay}, next: step(StepRefund, EventFacts{Ref: "more", Amount: &Money{Amount: 501, Currency: "CNY"}}), fails: ErrInvalidState},
		"a sale is not redeemed":      {status: Confirmed, campaign: sale, next: step(StepRedeem, EventFacts{Ref: "order"}), fails: ErrInvalidState},
		"a coupon is not shipped":     {status: Confirmed, campaign: coupon, next: step(StepShip, EventFacts{Carrier: "SF", TrackingNo: "1"}), fails: ErrInvalidState},
		"redeemed":                    {status: Confirmed, campaign: coupon, next: step(StepRedeem, EventFacts{Ref: "order"}), want: Confirmed},
		"redeemed for another order": {
			status: Confirmed, campaign: coupon, made: []Move{step(StepRedeem, EventFacts{Ref: "order"})},
			next: step(StepRedeem, EventFacts{Ref: "other"}), fails: ErrInvalidState,
		},
		"redeemed again after the use was rolled back": {
			status: Confirmed, campaign: coupon, made: []Move{step(StepRedeem, EventFacts{Ref: "order"}), step(StepUnredeem, EventFacts{Ref: "order"})},
			next: step(StepRedeem, EventFacts{Ref: "order"}), fails: ErrInvalidState,
		},
		"another user's": {status: Pending, next: Move{Step: StepCancel, UserID: "bob", At: now}, fails: ErrNotFound},
	}
}

// A story of steps ends each claim where the rules say, whichever step is tried at
// whichever place; a step that was made before is no second one.
func TestStepsByStatus(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	for name, c := range stepCases(now) {
		t.Run(name, func(t *testing.T) {
			claim := &Claim{UserID: "ann", Status: c.status, Quantity: 1, Amount: &Money{Amount: 500, Currency: "CNY"}, CreatedAt: now}
			decide := func(m Move) (bool, error) {
				if m.Campaign == nil {
					m.Campaign = c.campaign
				}
				e, replayed, err := m.Decide(claim)
				if e != nil {
					claim.Apply(e)
				}
				return replayed, err
			}
			for _, m := range c.made {
				if replayed, err := decide(m); err != nil || replayed {
					t.Fatalf("%s: replayed %t, %v", m.Step, replayed, err)
				}
			}
			before := claim.Status
			replayed, err := decide(c.next)
			switch {
			case c.fails != nil:
				if !errors.Is(err, c.fails) || claim.Status != before {
					t.Errorf("%v, and the claim is %s; want %v, and %s", err, claim.Status, c.fails, before)
				}
			case c.replayed:
				if err != nil || !replayed || claim.Status != before {
					t.Errorf("replayed %t, %v, and the claim is %s", replayed, err, claim.Status)
				}
			case err != nil || replayed || claim.Status != c.want:
				t.Errorf("replayed %t, %v, and the claim is %s, want %s", replayed, err, claim.Status, c.want)
			}
		})
	}
}

// A payment's amount may be absent when nothing is to be paid, and only then.
func TestNothingToPay(t *testing.T) {
	zero, price := &Money{Currency: "CNY"}, &Money{Amount: 500, Currency: "CNY"}
	for _, c := range []struct {
		costs, paid *Money
		fails       bool
	}{
		{nil, nil, false}, {nil, zero, false}, {nil, price, true},
		{zero, nil, false}, {zero, zero, false}, {zero, price, true},
		{price, nil, true}, {price, zero, true}, {price, price, false},
	} {
		claim := &Claim{UserID: "ann", Status: Pending, Quantity: 1, Amount: c.costs}
		err := (&Move{Step: StepConfirm, EventFacts: EventFacts{Ref: "pay", Amount: c.paid}}).rightAmount(claim)
		if c.fails != errors.Is(err, ErrInvalid) || !c.fails && err != nil {
			t.Errorf("a claim that costs %v, paid with %v: %v", c.costs, c.paid, err)
		}
	}
}

package dibs

import "time"

// Step names what happens to a claim after its grant. docs/STATES.md shows
// which step leads from which status to which.
type Step string

// The steps.
const (
	// StepConfirm: the payment arrived.
	StepConfirm Step = "confirm"
	// StepCancel: the user, or an admin for them, gave an unpaid claim up.
	StepCancel Step = "cancel"
	// StepExpire: nobody paid in time.
	StepExpire Step = "expire"
	// StepReplace: a payment came after the deadline and took stock again. The
	// claim stays released; another one stands for it.
	StepReplace Step = "replace"
	// StepRefundDue: a payment came too late, and nothing was left for it. The
	// claim stays released, and the money belongs to its payer.
	StepRefundDue Step = "refund_due"
	// StepRefund: money went back, the stock too when the step says so.
	StepRefund Step = "refund"
	// StepRedeem and StepUnredeem: a coupon was used, and the use rolled back.
	StepRedeem   Step = "redeem"
	StepUnredeem Step = "unredeem"
	// StepShip: the goods are on their way.
	StepShip Step = "ship"
)

// ClaimEvent is one step of a claim as it happened. It never changes.
type ClaimEvent struct {
	// N counts the claim's events from 1.
	N    int
	Step Step
	// Status is the claim's after the step.
	Status Status
	At     time.Time
	EventFacts
}

// EventFacts are what a step says beside its name; each step has its own.
type EventFacts struct {
	// Ref makes the step happen once: the payment's, the refund's, the order's
	// that a coupon was used for.
	Ref string `json:"ref,omitempty"`
	// Amount is what was paid, refunded, or saved by a coupon.
	Amount *Money `json:"amount,omitempty"`
	// Restock says that the stock came back.
	Restock    bool   `json:"restock,omitempty"`
	Carrier    string `json:"carrier,omitempty"`
	TrackingNo string `json:"tracking_no,omitempty"`
	// Other is the claim that replaces this one, or that this one replaces.
	Other *Position `json:"other,omitempty"`
}

// Payment is what was paid for a claim.
type Payment struct {
	// Ref is empty for a claim that was confirmed when it was granted: its
	// amount counts as paid.
	Ref    string
	Amount Money
	// Refunded is what of it went back, in minor units.
	Refunded int64
	// Due says that the payment came too late, and has to go back.
	Due bool
	At  time.Time
}

// Redemption is the use of a coupon.
type Redemption struct {
	Ref    string
	Amount *Money
	At     time.Time
}

// Shipment is how a claim's goods travel.
type Shipment struct {
	Carrier    string
	TrackingNo string
	At         time.Time
}

// Move asks for one step of one claim.
type Move struct {
	// Campaign is the claim's.
	Campaign *Campaign
	Position Position
	Step     Step
	At       time.Time
	// UserID, when it is not empty, is who the claim must belong to.
	UserID string
	// Within, unless it is 0, is the most that may have gone back of the payment after a refund, in minor units.
	Within int64
	EventFacts
}

// Moved is what became of a move.
type Moved struct {
	// Claim is the claim after the move; as it was, when Err is set. Nil when
	// there is none.
	Claim *Claim
	// Replayed says that the step had been made before, and nothing changed.
	Replayed bool
	// Err is an *Error of NotFound, InvalidState or InvalidRequest, or
	// ErrLatePayment.
	Err error
}

// Limits of what a step may say.
const (
	MaxRefLen     = 255
	MaxCarrierLen = 100
	// maxSteps bounds the events of one claim.
	maxSteps = 1000
)

// Apply brings a claim up to an event: the ledger tells a claim's life by
// applying its events in order.
func (c *Claim) Apply(e *ClaimEvent) {
	c.Events = append(c.Events, *e)
	c.Status, c.UpdatedAt = e.Status, e.At
	switch e.Step {
	case StepConfirm:
		c.Payment = &Payment{Ref: e.Ref, Amount: amountOr(e.Amount), At: e.At}
	case StepRefundDue:
		c.Payment = &Payment{Ref: e.Ref, Amount: amountOr(e.Amount), Due: true, At: e.At}
	case StepRefund:
		c.applyRefund(e)
	case StepRedeem:
		c.Redemption = &Redemption{Ref: e.Ref, Amount: e.Amount, At: e.At}
	case StepUnredeem:
		c.Redemption = nil
	case StepShip:
		c.Shipment = &Shipment{Carrier: e.Carrier, TrackingNo: e.TrackingNo, At: e.At}
	case StepCancel, StepExpire, StepReplace:
		// They change the status, or tell of another claim.
	}
}

func (c *Claim) applyRefund(e *ClaimEvent) {
	paid := c.Paid()
	paid.Refunded += amountOr(e.Amount).Amount
	paid.Due = paid.Due && paid.Refunded < paid.Amount.Amount
	c.Payment = &paid
	c.Restocked = c.Restocked || e.Restock
}

// Paid is what counts as paid for the claim. One that was confirmed when it
// was granted was paid elsewhere, or costs nothing.
func (c *Claim) Paid() Payment {
	if c.Payment != nil {
		return *c.Payment
	}
	return Payment{Amount: amountOr(c.Amount), At: c.CreatedAt}
}

func amountOr(m *Money) Money {
	if m == nil {
		return Money{}
	}
	return *m
}

// Last returns the claim's newest event of a step, nil for none.
func (c *Claim) Last(step Step) *ClaimEvent {
	for i := len(c.Events) - 1; i >= 0; i-- {
		if c.Events[i].Step == step {
			return &c.Events[i]
		}
	}
	return nil
}

// byRef returns the claim's event of a step and a ref, nil for none.
func (c *Claim) byRef(step Step, ref string) *ClaimEvent {
	for i := range c.Events {
		if c.Events[i].Step == step && c.Events[i].Ref == ref {
			return &c.Events[i]
		}
	}
	return nil
}

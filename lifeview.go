package dibs

import "time"

// PaymentView is what was paid for a claim.
type PaymentView struct {
	PaymentRef string `json:"payment_ref,omitempty"`
	Amount     *Money `json:"amount"`
	// Refunded is what of it went back.
	Refunded *Money `json:"refunded"`
	// RefundDue says that the payment came too late and has to go back.
	RefundDue bool      `json:"refund_due"`
	At        time.Time `json:"at"`
}

// RedemptionView is the use of a coupon.
type RedemptionView struct {
	Ref    string    `json:"ref"`
	Amount *Money    `json:"amount,omitempty"`
	At     time.Time `json:"at"`
}

// ShipmentView is how a claim's goods travel.
type ShipmentView struct {
	Carrier    string    `json:"carrier"`
	TrackingNo string    `json:"tracking_no"`
	At         time.Time `json:"at"`
}

// EventView is one step of a claim's life, for admins.
type EventView struct {
	Step       Step      `json:"step"`
	Status     string    `json:"status" enum:"pending,confirmed,released,refunded"`
	At         time.Time `json:"at"`
	Ref        string    `json:"ref,omitempty"`
	Amount     *Money    `json:"amount,omitempty"`
	Restock    bool      `json:"restock,omitempty"`
	Carrier    string    `json:"carrier,omitempty"`
	TrackingNo string    `json:"tracking_no,omitempty"`
}

// viewLife adds what happened since the grant, but the events.
func (c *Claim) viewLife(v *ClaimView) {
	v.Restocked, v.Replaces, v.ReplacedBy = c.Restocked, c.Replaces, c.ReplacedBy
	if p := c.Payment; p != nil {
		v.Payment = &PaymentView{PaymentRef: p.Ref, RefundDue: p.Due, At: p.At}
		if p.Amount.Currency != "" {
			v.Payment.Amount = &p.Amount
			v.Payment.Refunded = &Money{Amount: p.Refunded, Currency: p.Amount.Currency}
		}
	}
	if r := c.Redemption; r != nil {
		v.Redemption = &RedemptionView{Ref: r.Ref, Amount: r.Amount, At: r.At}
	}
	if s := c.Shipment; s != nil {
		v.Shipment = &ShipmentView{Carrier: s.Carrier, TrackingNo: s.TrackingNo, At: s.At}
	}
	if !c.ValidUntil.IsZero() {
		v.ValidUntil = &c.ValidUntil
	}
}

// AdminView is View with the claim's events.
func (c *Claim) AdminView() ClaimView {
	v := c.View()
	for i := range c.Events {
		e := &c.Events[i]
		v.Events = append(v.Events, EventView{
			Step: e.Step, Status: e.Status.String(), At: e.At, Ref: e.Ref, Amount: e.Amount,
			Restock: e.Restock, Carrier: e.Carrier, TrackingNo: e.TrackingNo,
		})
	}
	return v
}

package api

import (
	"time"

	"github.com/dibs-dev/dibs"
)

// ClaimView is a claim as answered.
type ClaimView struct {
	ID         string         `json:"id"`
	CampaignID string         `json:"campaign_id"`
	ProductID  string         `json:"product_id,omitempty"`
	Kind       dibs.Kind      `json:"kind"`
	UserID     string         `json:"user_id"`
	Quantity   int64          `json:"quantity"`
	Status     string         `json:"status" enum:"pending,confirmed,released,refunded"`
	StatusCode int8           `json:"status_code"`
	OrderType  dibs.OrderType `json:"order_type"`
	Items      []string       `json:"items"`
	Amount     *dibs.Money    `json:"amount"`
	PayBy      *time.Time     `json:"pay_by,omitempty"`
	CreatedAt  time.Time      `json:"created_at"`
	// UpdatedAt is when the last step was; CreatedAt before the first.
	UpdatedAt time.Time `json:"updated_at"`
	// Reference is what the caller gave with the request; never follow it unchecked.
	Reference string `json:"reference,omitempty"`
	// ResultCode is "0" for a red packet.
	ResultCode string `json:"result_code,omitempty"`

	// The rest is there once it happened.
	Payment    *PaymentView    `json:"payment,omitempty"`
	Restocked  bool            `json:"restocked,omitempty"`
	Redemption *RedemptionView `json:"redemption,omitempty"`
	Shipment   *ShipmentView   `json:"shipment,omitempty"`
	// Replaces and ReplacedBy name the claim before and after a late payment.
	Replaces   string     `json:"replaces,omitempty"`
	ReplacedBy string     `json:"replaced_by,omitempty"`
	ValidUntil *time.Time `json:"valid_until_at,omitempty"`
	// Comment and Events are for admins.
	Comment string      `json:"comment,omitempty"`
	Events  []EventView `json:"events,omitempty"`
}

// ClaimViewOf returns the claim as answered.
func ClaimViewOf(c *dibs.Claim) ClaimView {
	v := ClaimView{
		ID: c.ID, CampaignID: c.CampaignID, ProductID: c.ProductID, Kind: c.Kind, UserID: c.UserID, Quantity: c.Quantity,
		Status: c.Status.String(), StatusCode: int8(c.Status), OrderType: c.OrderType,
		Items: c.Items, Amount: c.Amount, PayBy: givenTime(&c.PayBy), CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, Reference: c.Reference,
		Restocked: c.Restocked, Replaces: c.Replaces, ReplacedBy: c.ReplacedBy, ValidUntil: givenTime(&c.ValidUntil),
	}
	if v.Items == nil {
		v.Items = []string{}
	}
	if c.Kind == dibs.RedPacket {
		v.ResultCode = dibs.ResultCode(dibs.Granted)
	}
	if p := c.Payment; p != nil {
		v.Payment = &PaymentView{PaymentRef: p.Ref, RefundDue: p.Due, At: p.At}
		if p.Amount.Currency != "" {
			v.Payment.Amount = &p.Amount
			v.Payment.Refunded = &dibs.Money{Amount: p.Refunded, Currency: p.Amount.Currency}
		}
	}
	if r := c.Redemption; r != nil {
		v.Redemption = &RedemptionView{Ref: r.Ref, Amount: r.Amount, At: r.At}
	}
	if s := c.Shipment; s != nil {
		v.Shipment = &ShipmentView{Carrier: s.Carrier, TrackingNo: s.TrackingNo, At: s.At}
	}
	return v
}

// PaymentView is what was paid for a claim.
type PaymentView struct {
	PaymentRef string      `json:"payment_ref,omitempty"`
	Amount     *dibs.Money `json:"amount"`
	// Refunded is what of it went back.
	Refunded *dibs.Money `json:"refunded"`
	// RefundDue says that the payment came too late and has to go back.
	RefundDue bool      `json:"refund_due"`
	At        time.Time `json:"at"`
}

// RedemptionView is the use of a coupon.
type RedemptionView struct {
	Ref    string      `json:"ref"`
	Amount *dibs.Money `json:"amount,omitempty"`
	At     time.Time   `json:"at"`
}

// ShipmentView is how a claim's goods travel.
type ShipmentView struct {
	Carrier    string    `json:"carrier"`
	TrackingNo string    `json:"tracking_no"`
	At         time.Time `json:"at"`
}

// EventView is one step of a claim's life, for admins.
type EventView struct {
	Step       dibs.Step   `json:"step"`
	Status     string      `json:"status" enum:"pending,confirmed,released,refunded"`
	At         time.Time   `json:"at"`
	Ref        string      `json:"ref,omitempty"`
	Amount     *dibs.Money `json:"amount,omitempty"`
	Restock    bool        `json:"restock,omitempty"`
	Carrier    string      `json:"carrier,omitempty"`
	TrackingNo string      `json:"tracking_no,omitempty"`
}

// AdminClaimViewOf is ClaimViewOf with the claim's events and comment.
func AdminClaimViewOf(c *dibs.Claim) ClaimView {
	v := ClaimViewOf(c)
	v.Comment = c.Comment
	for i := range c.Events {
		e := &c.Events[i]
		v.Events = append(v.Events, EventView{
			Step: e.Step, Status: e.Status.String(), At: e.At, Ref: e.Ref, Amount: e.Amount,
			Restock: e.Restock, Carrier: e.Carrier, TrackingNo: e.TrackingNo,
		})
	}
	return v
}

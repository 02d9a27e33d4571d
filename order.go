package dibs

import (
	"slices"
	"time"
)

// OrderQuery looks for orders. Zero fields do not filter.
type OrderQuery struct {
	UserID     string
	Status     *Status
	CampaignID string
	ProductID  string
	OrderType  OrderType
	PaymentRef string
	// RefundDue: only those whose payment came too late and has to go back.
	RefundDue bool
	// Reference is the caller's own, as it was given with the claim.
	Reference string
	// Code is a code or a seat of the campaign, or of any campaign where none is named.
	Code string
	// Since ≤ created_at < Until.
	Since, Until time.Time
}

// Faults lists what is wrong with the query.
func (q *OrderQuery) Faults() []Fault {
	inYears := func(t time.Time) bool { return t.IsZero() || t.Year() >= 1970 && t.Year() <= 9999 }
	years := Text{"must be a time from 1970 to 9999", "必须是 1970 到 9999 年之间的时间"}
	fs := slices.Concat(
		zeroOrID("/user_id", q.UserID), zeroOrID("/campaign_id", q.CampaignID), zeroOrID("/product_id", q.ProductID),
		unless(q.OrderType == 0 || q.OrderType == RegularOrder || q.OrderType == FlashOrder,
			"/order_type", Text{"must be 1 or 2", "必须是 1 或 2"}),
		TextFault("/payment_ref", q.PaymentRef, false, MaxRefLen),
		TextFault("/reference", q.Reference, false, maxReferenceLen),
		unless(q.Code == "" || IsItem(q.Code), "/code", BadItem),
		unless(inYears(q.Since), "/since", years), unless(inYears(q.Until), "/until", years),
	)
	if len(fs) == 0 && !q.Since.IsZero() && !q.Until.IsZero() {
		return unless(q.Since.Before(q.Until), "/until", Text{"must be after since", "必须晚于 since"})
	}
	return fs
}

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

package httpapi

import (
	"strconv"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

// appendMoney appends an amount, or null.
func appendMoney(b []byte, m *dibs.Money) []byte {
	if m == nil {
		return append(b, "null"...)
	}
	b = strconv.AppendInt(append(b, `{"amount":`...), m.Amount, 10)
	b = web.AppendString(append(b, `,"currency":`...), m.Currency)
	return append(b, '}')
}

// appendClaim appends what dibs.ClaimView looks like in JSON. Nothing has
// happened to the claim since its grant.
func appendClaim(b []byte, c *dibs.Claim) []byte {
	b = web.AppendString(append(b, `{"id":`...), c.ID)
	b = web.AppendString(append(b, `,"campaign_id":`...), c.CampaignID)
	if c.ProductID != "" {
		b = web.AppendString(append(b, `,"product_id":`...), c.ProductID)
	}
	b = web.AppendString(append(b, `,"kind":`...), string(c.Kind))
	b = web.AppendString(append(b, `,"user_id":`...), c.UserID)
	b = strconv.AppendInt(append(b, `,"quantity":`...), c.Quantity, 10)
	b = web.AppendString(append(b, `,"status":`...), c.Status.String())
	b = strconv.AppendInt(append(b, `,"status_code":`...), int64(c.Status), 10)
	b = strconv.AppendInt(append(b, `,"order_type":`...), int64(c.OrderType), 10)
	b = web.AppendStrings(append(b, `,"items":`...), c.Items)
	b = appendMoney(append(b, `,"amount":`...), c.Amount)
	if !c.PayBy.IsZero() {
		b = web.AppendTime(append(b, `,"pay_by":`...), c.PayBy)
	}
	b = web.AppendTime(append(b, `,"created_at":`...), c.CreatedAt)
	if c.Kind == dibs.RedPacket {
		b = append(b, `,"result_code":"0"`...)
	}
	if !c.ValidUntil.IsZero() {
		b = web.AppendTime(append(b, `,"valid_until_at":`...), c.ValidUntil)
	}
	return append(b, '}')
}

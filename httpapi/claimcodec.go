package httpapi

import (
	"math"
	"strconv"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

// claimBody is the body of a claim, as documented.
type claimBody struct {
	Quantity  *int64 `json:"quantity,omitempty" minimum:"1" maximum:"2147483647" doc:"units, default 1"`
	Reference string `json:"reference,omitempty" maxLength:"256" doc:"the caller's own, such as the address to go to afterwards: it comes back with the claim, and is never followed"`
}

// quickQuantity reads the bodies that nearly all clients send, `{}`, nothing at all
// and `{"quantity":1}`, without reflection. It reports false for any other body,
// right or wrong: the strict decoder reads those.
func quickQuantity(b []byte) (int64, bool) {
	i := skipSpace(b, 0)
	if i == len(b) {
		return 1, true
	}
	if b[i] != '{' {
		return 0, false
	}
	i = skipSpace(b, i+1)
	quantity := int64(1)
	if i < len(b) && b[i] != '}' {
		const name = `"quantity"`
		if len(b)-i < len(name) || string(b[i:i+len(name)]) != name {
			return 0, false
		}
		i = skipSpace(b, i+len(name))
		if i == len(b) || b[i] != ':' {
			return 0, false
		}
		i = skipSpace(b, i+1)
		from := i
		quantity = 0
		for ; i < len(b) && b[i] >= '0' && b[i] <= '9' && quantity <= math.MaxInt32; i++ {
			quantity = quantity*10 + int64(b[i]-'0')
		}
		// No digits, a leading zero and 0 itself all start with something else.
		if i == from || b[from] == '0' || quantity > math.MaxInt32 {
			return 0, false
		}
		i = skipSpace(b, i)
	}
	if i == len(b) || b[i] != '}' || skipSpace(b, i+1) != len(b) {
		return 0, false
	}
	return quantity, true
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// decodeClaim returns the quantity that a claim's body asks for, and its reference.
func decodeClaim(d web.Decoder, raw []byte) (quantity int64, reference string, err error) {
	if q, ok := quickQuantity(raw); ok {
		return q, "", nil
	}
	var body claimBody
	value, err := d.Decode(raw, &body)
	if err != nil {
		return 0, "", err
	}
	// Absent means 1 and none, but null is a value that the client failed to fill in.
	members, _ := value.(map[string]any)
	if v, given := members["quantity"]; given && v == nil {
		return 0, "", dibs.Invalid(dibs.Fault{Field: "/quantity", Problem: dibs.Text{EN: "must be a whole number", ZH: "必须是整数"}})
	}
	if v, given := members["reference"]; given && v == nil {
		return 0, "", dibs.Invalid(dibs.Fault{Field: "/reference", Problem: dibs.Text{EN: "must be a text", ZH: "必须是字符串"}})
	}
	if body.Quantity != nil {
		return *body.Quantity, body.Reference, nil
	}
	return 1, body.Reference, nil
}

// appendMoney appends an amount, or null.
func appendMoney(b []byte, m *dibs.Money) []byte {
	if m == nil {
		return append(b, "null"...)
	}
	b = strconv.AppendInt(append(b, `{"amount":`...), m.Amount, 10)
	b = web.AppendString(append(b, `,"currency":`...), m.Currency)
	return append(b, '}')
}

// appendClaim appends a claim as encoding/json writes its api.ClaimView, without
// reflection. The claim has no steps after its grant, whose members it leaves out.
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
	b = web.AppendTime(append(b, `,"updated_at":`...), c.UpdatedAt)
	if c.Reference != "" {
		b = web.AppendString(append(b, `,"reference":`...), c.Reference)
	}
	if c.Kind == dibs.RedPacket {
		b = append(b, `,"result_code":"0"`...)
	}
	if !c.ValidUntil.IsZero() {
		b = web.AppendTime(append(b, `,"valid_until_at":`...), c.ValidUntil)
	}
	return append(b, '}')
}

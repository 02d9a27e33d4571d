package httpapi

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/dibs-dev/dibs"
)

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are not UTF-8 become the
// replacement character, as encoding/json has it.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			if c == '"' || c == '\\' {
				b = append(b, '\\', c)
			} else {
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, s[from:i]...)
			b = append(b, "\ufffd"...)
			i++
			from = i
			continue
		}
		i += n
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// appendStrings appends a JSON array; nil is the empty one.
func appendStrings(b []byte, ss []string) []byte {
	b = append(b, '[')
	for i, s := range ss {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

// appendTime appends a time as RFC 3339 in UTC.
func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendMoney appends an amount, or null.
func appendMoney(b []byte, m *dibs.Money) []byte {
	if m == nil {
		return append(b, "null"...)
	}
	b = strconv.AppendInt(append(b, `{"amount":`...), m.Amount, 10)
	b = appendString(append(b, `,"currency":`...), m.Currency)
	return append(b, '}')
}

// appendClaim appends what dibs.ClaimView looks like in JSON. Nothing has
// happened to the claim since its grant.
func appendClaim(b []byte, c *dibs.Claim) []byte {
	b = appendString(append(b, `{"id":`...), c.ID)
	b = appendString(append(b, `,"campaign_id":`...), c.CampaignID)
	if c.ProductID != "" {
		b = appendString(append(b, `,"product_id":`...), c.ProductID)
	}
	b = appendString(append(b, `,"kind":`...), string(c.Kind))
	b = appendString(append(b, `,"user_id":`...), c.UserID)
	b = strconv.AppendInt(append(b, `,"quantity":`...), c.Quantity, 10)
	b = appendString(append(b, `,"status":`...), c.Status.String())
	b = strconv.AppendInt(append(b, `,"status_code":`...), int64(c.Status), 10)
	b = strconv.AppendInt(append(b, `,"order_type":`...), int64(c.OrderType), 10)
	b = appendStrings(append(b, `,"items":`...), c.Items)
	b = appendMoney(append(b, `,"amount":`...), c.Amount)
	if !c.PayBy.IsZero() {
		b = appendTime(append(b, `,"pay_by":`...), c.PayBy)
	}
	b = appendTime(append(b, `,"created_at":`...), c.CreatedAt)
	if c.Kind == dibs.RedPacket {
		b = append(b, `,"result_code":"0"`...)
	}
	if !c.ValidUntil.IsZero() {
		b = appendTime(append(b, `,"valid_until_at":`...), c.ValidUntil)
	}
	return append(b, '}')
}

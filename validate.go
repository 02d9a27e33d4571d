package dibs

import (
	"crypto/rand"
	"math"
	"time"
)

// ValidID reports whether s may be the id of a campaign, a product or a user:
// 1-64 characters of A-Z a-z 0-9 . _ -.
func ValidID(s string) bool { return IsID(s) }

// IsID reports whether s may be an id given by a caller.
func IsID(s string) bool {
	if len(s) == 0 || len(s) > MaxIDLen {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// NewID makes up an id with a prefix that says what it names.
func NewID(prefix string) string { return prefix + rand.Text()[:12] }

// BadID is the problem of an id.
var BadID = Text{"must be 1-64 characters of A-Z a-z 0-9 . _ -", "必须是 1-64 个字符，限 A-Z a-z 0-9 . _ -"}

// apply sets c.Stock and reports faults of the stock.
func (s *StockSpec) apply(c *Campaign) []Fault {
	set := 0
	for _, given := range []bool{s.Units != nil, s.Items != nil, s.Codes != nil, s.RedPacket != nil} {
		if given {
			set++
		}
	}
	if set != 1 {
		return []Fault{{"/stock", Text{"must have exactly one of units, items, codes, redpacket", "必须且只能有 units、items、codes、redpacket 之一"}}}
	}
	switch {
	case s.Units != nil:
		c.Stock = Stock{Kind: Units, Total: *s.Units}
		if *s.Units < 1 || *s.Units > MaxStock {
			return []Fault{{"/stock/units", Textf("must be from 1 to %d", "必须在 1 到 %d 之间", MaxStock)}}
		}
		return nil
	case s.RedPacket != nil:
		packet := s.RedPacket.WithDefaults()
		c.Packet, c.Stock = &packet, Stock{Kind: Shares, Total: packet.Count}
		return packet.Faults("/stock/redpacket")
	case s.Items != nil:
		c.Stock = Stock{Kind: Items, Total: int64(len(s.Items))}
		return itemFaults("/stock/items", s.Items)
	default:
		if s.Codes.Pattern == "" {
			s.Codes.Pattern = defaultPattern
		}
		c.Stock = Stock{Kind: Codes, Total: s.Codes.Count, Pattern: s.Codes.Pattern}
		return codesFaults(s.Codes)
	}
}

// Faults lists what is wrong with the fields that a spec and a patch share.
func (c *Campaign) Faults() []Fault {
	var fs []Fault
	bad := func(field string, t Text) { fs = append(fs, Fault{field, t}) }
	if !IsID(c.ID) {
		bad("/id", BadID)
	}
	if c.Kind != Sale && c.Kind != Coupon && c.Kind != RedPacket {
		bad("/kind", Text{"must be sale, coupon or redpacket", "必须是 sale、coupon 或 redpacket"})
	}
	fs = append(fs, c.packetFaults()...)
	fs = append(fs, TextFault("/title", c.Title, true, MaxTitleLen)...)
	fs = append(fs, proseFault("/comment", c.Comment, false, MaxCommentLen)...)
	if c.ProductID != "" && !IsID(c.ProductID) {
		bad("/product_id", BadID)
	}
	fs = append(fs, c.windowFaults()...)
	if c.LimitPerUser < 1 || c.LimitPerUser > MaxLimitPerUser {
		bad("/limit_per_user", limitRange)
	}
	fs = append(fs, c.productLimitFaults()...)
	if c.Price != nil {
		fs = append(fs, c.Price.Faults("/price")...)
	}
	fs = append(fs, c.tierFaults()...)
	if c.LowStock < 0 || c.LowStock > MaxStock {
		bad("/low_stock", Textf("must be from 0 to %d", "必须在 0 到 %d 之间", MaxStock))
	}
	if c.PayWithin != 0 && (c.PayWithin < time.Second || c.PayWithin > MaxPayWithin) {
		bad("/pay_within", Textf("must be from 1s to %s", "必须在 1s 到 %s 之间", MaxPayWithin))
	}
	if c.PayWithin != 0 && c.Kind == Coupon {
		bad("/pay_within", Text{"belongs to a sale; a coupon is issued at once", "仅用于 sale；优惠券立即发放"})
	}
	if c.LatePayment != Reclaim && c.LatePayment != RefundDue {
		bad("/late_payment", Text{"must be reclaim or refund_due", "必须是 reclaim 或 refund_due"})
	}
	fs = append(fs, c.validityFaults()...)
	fs = append(fs, c.Gate.faults(c)...)
	return append(fs, c.shardFaults()...)
}

// limitRange is the problem of a limit on what a user may hold.
var limitRange = Textf("must be from 1 to %d", "必须在 1 到 %d 之间", MaxLimitPerUser)

// productLimitFaults checks the limit that the campaign shares with others of its
// product.
func (c *Campaign) productLimitFaults() []Fault {
	const field = "/limit_per_product"
	switch {
	case c.LimitPerProduct == 0:
		return nil
	case c.LimitPerProduct < 0 || c.LimitPerProduct > MaxLimitPerUser:
		return []Fault{{field, limitRange}}
	case c.ProductID == "":
		return []Fault{{field, Text{"needs product_id: it counts over the campaigns of one product", "需要 product_id：它统计同一商品的所有活动"}}}
	case c.Kind == RedPacket:
		return []Fault{{field, Text{"belongs to a sale or coupon: a red packet has limit_per_user alone", "仅用于 sale 或 coupon；红包只有 limit_per_user"}}}
	}
	return nil
}

// maxCampaignShards is how many shards a campaign may have: fewer than a position can
// tell apart, since each of them costs requests that look at all.
const maxCampaignShards = 64

// shardFaults checks the number of shards.
func (c *Campaign) shardFaults() []Fault {
	if c.Shards < 1 || c.Shards > maxCampaignShards {
		return []Fault{{"/shards", Textf("must be from 1 to %d", "必须在 1 到 %d 之间", maxCampaignShards)}}
	}
	return nil
}

// validityFaults checks a coupon's life.
func (c *Campaign) validityFaults() []Fault {
	var fs []Fault
	if c.ValidFor != 0 && (c.ValidFor < time.Second || c.ValidFor > MaxValidFor) {
		fs = append(fs, Fault{"/valid_for", Textf("must be from 1s to %s", "必须在 1s 到 %s 之间", MaxValidFor)})
	}
	if !c.ValidUntil.IsZero() && (!c.ValidUntil.After(c.StartsAt) || c.ValidUntil.Year() > 9998) {
		fs = append(fs, Fault{"/valid_until_at", Text{"must be after starts_at", "必须晚于 starts_at"}})
	}
	if c.ValidFor != 0 && !c.ValidUntil.IsZero() {
		fs = append(fs, Fault{"/valid_until_at", Text{"cannot stand beside valid_for", "不能与 valid_for 同时设置"}})
	}
	if c.Kind != Coupon && (c.ValidFor != 0 || !c.ValidUntil.IsZero()) {
		fs = append(fs, Fault{"/kind", Text{"must be coupon for valid_for or valid_until_at", "设置 valid_for 或 valid_until_at 时必须是 coupon"}})
	}
	return fs
}

func (c *Campaign) windowFaults() []Fault {
	var fs []Fault
	latest := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, at := range []struct {
		field string
		t     time.Time
	}{{"/starts_at", c.StartsAt}, {"/ends_at", c.EndsAt}} {
		if at.t.Year() < 1970 || at.t.After(latest) {
			fs = append(fs, Fault{at.field, Text{"is required: a time from 1970 to 9998, such as 2026-12-01T04:00:00Z", "必填：1970 到 9998 年之间的时间，例如 2026-12-01T04:00:00Z"}})
		}
	}
	if len(fs) == 0 && !c.StartsAt.Before(c.EndsAt) {
		fs = append(fs, Fault{"/ends_at", Text{"must be after starts_at", "必须晚于 starts_at"}})
	}
	return fs
}

// Ms cuts a time to whole milliseconds UTC, the precision of the engines'
// clocks and of the ledger.
func Ms(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// FromMS is the time of milliseconds since 1970; the zero time for 0.
func FromMS(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

// Faults lists what is wrong with a claim request.
func (r *ClaimRequest) Faults() []Fault {
	var fs []Fault
	if !IsID(r.UserID) {
		fs = append(fs, Fault{"/user_id", BadID})
	}
	if r.Quantity < 1 || r.Quantity > math.MaxInt32 {
		fs = append(fs, Fault{"/quantity", Textf("must be from 1 to %d", "必须在 1 到 %d 之间", math.MaxInt32)})
	}
	// A key may have spaces, as one in quotes in a header has.
	if !isASCIIFrom(' ', r.Key, MaxKeyLen) {
		fs = append(fs, Fault{"/Idempotency-Key", Text{"must be 1-255 visible ASCII characters or spaces", "必须是 1-255 个可见 ASCII 字符或空格"}})
	}
	if r.Reference != "" {
		fs = append(fs, TextFault("/reference", r.Reference, false, maxReferenceLen)...)
	}
	if len(r.Device) > MaxDeviceLen {
		fs = append(fs, Fault{"/Dibs-Device", Textf("must be at most %d bytes", "最多 %d 个字节", MaxDeviceLen)})
	}
	return fs
}

// maxReferenceLen bounds a caller's reference, in characters: it fits an address, and
// an index of every database.
const maxReferenceLen = 256

// MaxDeviceLen bounds what a client calls itself, in bytes.
const MaxDeviceLen = 255

// MaxKeyLen bounds an idempotency key.
const MaxKeyLen = 255

// ValidKey reports whether a key is empty or 1-255 visible characters.
func ValidKey(k string) bool { return isASCIIFrom('!', k, MaxKeyLen) }

// isASCIIFrom reports whether s has at most so many characters, all from least to '~'.
func isASCIIFrom(least byte, s string, most int) bool {
	if len(s) > most {
		return false
	}
	for i := range len(s) {
		if s[i] < least || s[i] > '~' {
			return false
		}
	}
	return true
}

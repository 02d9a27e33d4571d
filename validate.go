package dibs

import (
	"cmp"
	"crypto/rand"
	"math"
	"slices"
	"time"
)

// IsID reports whether s may be the id of a campaign, a product, a user, or of anything
// else that callers name: 1-64 characters of A-Z a-z 0-9 . _ -.
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
	if s.kinds() != 1 {
		return []Fault{{"/stock", Text{"must have exactly one of units, items, codes, redpacket", "必须且只能有 units、items、codes、redpacket 之一"}}}
	}
	switch {
	case s.Units != nil:
		c.Stock = Stock{Kind: Units, Total: *s.Units}
		return within("/stock/units", *s.Units, 1, MaxStock)
	case s.RedPacket != nil:
		packet := s.RedPacket.WithDefaults()
		c.Packet, c.Stock = &packet, Stock{Kind: Shares, Total: packet.Count}
		return packet.Faults("/stock/redpacket")
	case s.Items != nil:
		c.Stock = Stock{Kind: Items, Total: int64(len(s.Items))}
		return itemFaults("/stock/items", s.Items)
	default:
		s.Codes.Pattern = cmp.Or(s.Codes.Pattern, defaultPattern)
		c.Stock = Stock{Kind: Codes, Total: s.Codes.Count, Pattern: s.Codes.Pattern}
		return codesFaults(s.Codes)
	}
}

// kinds counts the kinds of stock that are given.
func (s *StockSpec) kinds() (n int) {
	for _, given := range []bool{s.Units != nil, s.Items != nil, s.Codes != nil, s.RedPacket != nil} {
		if given {
			n++
		}
	}
	return n
}

// Faults lists what is wrong with the fields that a spec and a patch share.
func (c *Campaign) Faults() []Fault {
	return slices.Concat(
		unless(IsID(c.ID), "/id", BadID),
		unless(c.Kind == Sale || c.Kind == Coupon || c.Kind == RedPacket, "/kind",
			Text{"must be sale, coupon or redpacket", "必须是 sale、coupon 或 redpacket"}),
		c.packetFaults(),
		TextFault("/title", c.Title, true, MaxTitleLen),
		proseFault("/comment", c.Comment, false, MaxCommentLen),
		zeroOrID("/product_id", c.ProductID),
		c.windowFaults(),
		unless(c.LimitPerUser >= 1 && c.LimitPerUser <= MaxLimitPerUser, "/limit_per_user", limitRange),
		c.productLimitFaults(),
		priceFaults(c.Price),
		c.tierFaults(),
		within("/low_stock", c.LowStock, 0, MaxStock),
		zeroOrWithin("/pay_within", c.PayWithin, time.Second, MaxPayWithin),
		unless(c.PayWithin == 0 || c.Kind != Coupon, "/pay_within",
			Text{"belongs to a sale; a coupon is issued at once", "仅用于 sale；优惠券立即发放"}),
		lateFaults(c.LatePayment),
		c.validityFaults(),
		c.Gate.faults(c),
		within("/shards", c.Shards, 1, maxCampaignShards),
	)
}

// unless is the fault of a field, none where it is ok.
func unless(ok bool, field string, problem Text) []Fault {
	if ok {
		return nil
	}
	return []Fault{{field, problem}}
}

// within is the fault of a number or a duration that is not from least to most.
func within[T cmp.Ordered](field string, v, least, most T) []Fault {
	if least <= v && v <= most {
		return nil
	}
	return []Fault{{field, Textf("must be from %v to %v", "必须在 %v 到 %v 之间", least, most)}}
}

// zeroOrWithin is within for a field that may be left out.
func zeroOrWithin[T cmp.Ordered](field string, v, least, most T) []Fault {
	var zero T
	if v == zero {
		return nil
	}
	return within(field, v, least, most)
}

// zeroOrID is the fault of an id that may be left out.
func zeroOrID(field, id string) []Fault { return unless(id == "" || IsID(id), field, BadID) }

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

// validityFaults checks a coupon's life.
func (c *Campaign) validityFaults() []Fault {
	until := !c.ValidUntil.IsZero()
	return slices.Concat(
		zeroOrWithin("/valid_for", c.ValidFor, time.Second, MaxValidFor),
		unless(!until || c.ValidUntil.After(c.StartsAt) && c.ValidUntil.Year() <= 9998, "/valid_until_at", isAfterStart),
		unless(!until || c.ValidFor == 0, "/valid_until_at",
			Text{"cannot stand beside valid_for", "不能与 valid_for 同时设置"}),
		unless(c.Kind == Coupon || c.ValidFor == 0 && !until, "/kind",
			Text{"must be coupon for valid_for or valid_until_at", "设置 valid_for 或 valid_until_at 时必须是 coupon"}),
	)
}

var isAfterStart = Text{"must be after starts_at", "必须晚于 starts_at"}

func (c *Campaign) windowFaults() []Fault {
	latest := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	is := func(t time.Time) bool { return t.Year() >= 1970 && !t.After(latest) }
	need := Text{"is required: a time from 1970 to 9998, such as 2026-12-01T04:00:00Z", "必填：1970 到 9998 年之间的时间，例如 2026-12-01T04:00:00Z"}
	fs := append(unless(is(c.StartsAt), "/starts_at", need), unless(is(c.EndsAt), "/ends_at", need)...)
	if len(fs) == 0 {
		return unless(c.StartsAt.Before(c.EndsAt), "/ends_at", isAfterStart)
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

// IsVisibleASCII reports whether s is empty or has 1-255 visible characters of ASCII. A space is none.
func IsVisibleASCII(s string) bool { return isASCIIFrom('!', s, MaxKeyLen) }

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

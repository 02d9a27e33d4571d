package dibs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Split is how a red packet's total is divided into shares. Package redpacket
// has the methods and says what each does to the spread of the shares.
type Split string

// The splits.
const (
	// DoubleMean draws each share evenly around the mean of what is left, from
	// the least up to twice the mean (二倍均值法).
	DoubleMean Split = "double_mean"
	// LineCut cuts the total like a line at random points; each way of cutting
	// it is as likely as any other (线段切割法).
	LineCut Split = "line_cut"
	// Equal gives all the same, give or take one minor unit.
	Equal Split = "equal"
)

// Splits lists the splits, the default first.
func Splits() []Split { return []Split{DoubleMean, LineCut, Equal} }

// MaxShares bounds the shares of one red packet. Each is an item.
const MaxShares = MaxItems

// RedPacketSpec is a red packet as its sender describes it: a total, and how
// it is divided. Total and Count are required.
type RedPacketSpec struct {
	// Total is what all shares sum to, from 1 minor unit.
	Total Money `json:"total" doc:"what all shares sum to"`
	// Count is how many shares there are, 1 ≤ Count ≤ MaxShares.
	Count int64 `json:"count" doc:"how many shares, at most 1000000"`
	// Split is DoubleMean when empty.
	Split Split `json:"split,omitempty" doc:"how the total is divided, default double_mean" enum:"double_mean,line_cut,equal"`
	// Min is the least share in minor units; 0 means 1.
	Min int64 `json:"min,omitempty" doc:"the least share in minor units, default 1"`
	// Max is the greatest share in minor units; 0 means no bound.
	Max int64 `json:"max,omitempty" doc:"the greatest share in minor units, default no bound"`
}

// WithDefaults returns the spec with its zero fields filled in.
func (p RedPacketSpec) WithDefaults() RedPacketSpec {
	p.Split, p.Min = cmp.Or(p.Split, DoubleMean), cmp.Or(p.Min, 1)
	return p
}

// Faults lists everything that is wrong with the spec; field is the JSON
// pointer to it, empty when it is the whole input. A spec without faults can be
// divided.
func (p RedPacketSpec) Faults(field string) []Fault {
	p = p.WithDefaults()
	fs := slices.Concat(
		within(field+"/total/amount", p.Total.Amount, 1, MaxMinor-1),
		unless(isCurrency(p.Total.Currency), field+"/total/currency", badCurrency),
		within(field+"/count", p.Count, 1, MaxShares),
		unless(slices.Contains(Splits(), p.Split), field+"/split",
			Text{"must be double_mean, line_cut or equal", "必须是 double_mean、line_cut 或 equal"}),
		unless(p.Min >= 1 && p.Min < MaxMinor, field+"/min",
			Textf("must be from 1 to %d, or absent for 1", "必须在 1 到 %d 之间；省略时为 1", MaxMinor-1)),
		unless(p.Max >= 0 && p.Max < MaxMinor, field+"/max",
			Textf("must be from 1 to %d, or absent for no bound", "必须在 1 到 %d 之间；省略时不设上限", MaxMinor-1)),
	)
	if len(fs) > 0 {
		return fs
	}
	return p.sumFaults(field)
}

// sumFaults compares fields that are good by themselves. It divides where a
// product could overflow.
func (p RedPacketSpec) sumFaults(field string) []Fault {
	total := p.Total.Amount
	least, most := (total+p.Count-1)/p.Count, total/p.Count
	// Callers send minor units; people read the amount beside them.
	inUnits := func(minor int64) string {
		m := Money{minor, p.Total.Currency}
		if m.Decimals() == 0 {
			return fmt.Sprintf("%d %s", minor, m.Currency)
		}
		return fmt.Sprintf("%d (%s %s)", minor, m.Digits(), m.Currency)
	}
	return slices.Concat(
		unless(p.Max == 0 || p.Max >= p.Min, field+"/max",
			Textf("must be at least min, %s", "不得小于 min（%s）", inUnits(p.Min))),
		unless(total >= p.Count, field+"/total/amount",
			Textf("must be at least %s, one minor unit for each share", "至少为 %s，每份至少一个最小货币单位", inUnits(p.Count))),
		unless(total < p.Count || p.Min <= most, field+"/min",
			Textf("must be at most %s, or the total does not reach for %d shares", "最多为 %s，否则总额不够分成 %d 份", inUnits(most), p.Count)),
		unless(p.Max == 0 || p.Max >= least, field+"/max",
			Textf("must be at least %s, or %d shares cannot hold the total", "至少为 %s，否则 %d 份装不下总额", inUnits(least), p.Count)),
	)
}

// ParseShare reads a share's value; false when it is none.
func ParseShare(value string) (id string, amount int64, ok bool) {
	id, digits, ok := strings.Cut(value, ":")
	if !ok || id == "" || digits == "" || digits[0] < '1' || digits[0] > '9' {
		return "", 0, false
	}
	amount, err := strconv.ParseInt(digits, 10, 64)
	return id, amount, err == nil && amount < MaxMinor
}

// FixedShares refuses to change a red packet's shares.
var FixedShares = Fail(InvalidState, Text{
	"the shares of a red packet are fixed: end it, and what is left goes back to its sender",
	"红包的份额是固定的：结束活动后，剩余金额将退回发送方",
})

// packetFaults checks what belongs to red packets alone.
func (c *Campaign) packetFaults() []Fault {
	if c.Kind != RedPacket {
		return slices.Concat(
			unless(c.SenderID == "", "/sender_id", Text{"belongs to a red packet", "仅用于红包"}),
			unless(c.Packet == nil, "/stock/redpacket", Text{"belongs to the kind redpacket", "仅用于 redpacket 类活动"}),
		)
	}
	return slices.Concat(
		unless(c.Packet != nil || c.Stock.Kind == "", "/stock",
			Text{"must be redpacket for the kind redpacket", "redpacket 类活动的库存必须是 redpacket"}),
		zeroOrID("/sender_id", c.SenderID),
		unless(c.Price == nil, "/price",
			Text{"cannot stand in a red packet: nothing is to be paid", "红包无需支付，不能设置价格"}),
		unless(c.PayWithin == 0, "/pay_within",
			Text{"cannot stand in a red packet: nothing is to be paid", "红包无需支付，不能设置支付期限"}),
	)
}

// OpenShares turns the values of a red packet's shares into their ids and the
// claim's amount.
func (c *Campaign) OpenShares(claim *Claim) {
	if c.Kind != RedPacket {
		return
	}
	ids := make([]string, len(claim.Items))
	sum := Money{Currency: c.Packet.Total.Currency}
	for i, value := range claim.Items {
		id, amount, ok := ParseShare(value)
		if !ok {
			// Damage is found by verifying, and shown as it is.
			id = value
		}
		ids[i] = id
		sum.Amount += amount
	}
	claim.Items, claim.Amount = ids, &sum
}

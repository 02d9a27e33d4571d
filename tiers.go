package dibs

import (
	"slices"
	"strconv"
)

// Tier is the price of the units of one claim from a unit on, until the next
// tier: the second unit at half price is {2, 50}.
type Tier struct {
	// FromUnit is the first unit of it, counted within the claim from 1.
	FromUnit int64 `json:"from_unit" doc:"the first unit of a claim that costs this, counted from 1"`
	// Percent is of the price, 0 to 100.
	Percent int64 `json:"percent" doc:"what a unit costs then, in percent of the price, 0 to 100"`
}

// NeedPrice is the problem of tiers without a price.
var NeedPrice = Text{"needs a price, the campaign's or its product's", "需要价格：活动或其商品必须有 price"}

// maxTiers bounds the tiers of a campaign.
const maxTiers = 20

// AmountFor returns what quantity units cost in one claim; nil when there is no
// price. Each unit's price is rounded to a whole minor unit, halves up, and the
// claim costs their sum: what a bill of single units adds up to. Publishing
// checks that no claim within the limit can overflow; what cannot be an amount
// is MaxMinor-1.
func (c *Campaign) AmountFor(quantity int64) *Money {
	if c.Price == nil {
		return nil
	}
	sum, ok := tieredSum(c.Price.Amount, c.Tiers, quantity)
	if !ok {
		sum = MaxMinor - 1
	}
	return &Money{Amount: sum, Currency: c.Price.Currency}
}

// tieredSum adds the units' prices up; false when the sum is not below
// MaxMinor. It divides where a product could overflow.
func tieredSum(price int64, tiers []Tier, quantity int64) (sum int64, ok bool) {
	percent, from := int64(100), int64(1)
	for i := 0; i <= len(tiers); i++ {
		until := quantity
		if i < len(tiers) {
			until = min(quantity, tiers[i].FromUnit-1)
		}
		// A price is below 2^53: a hundred times as much still fits.
		unit := (price*percent + 50) / 100
		if n := until - from + 1; n > 0 && unit > 0 {
			if unit > (MaxMinor-1-sum)/n {
				return 0, false
			}
			sum += unit * n
		}
		if i < len(tiers) {
			percent, from = tiers[i].Percent, tiers[i].FromUnit
		}
	}
	return sum, true
}

// tierFaults checks the tiers, and that the dearest claim has an amount.
func (c *Campaign) tierFaults() []Fault {
	if len(c.Tiers) > maxTiers {
		return []Fault{{"/tiers", Textf("must be at most %d", "最多 %d 项", maxTiers)}}
	}
	var fs []Fault
	last := int64(0)
	for i, t := range c.Tiers {
		at := "/tiers/" + strconv.Itoa(i)
		from := within(at+"/from_unit", t.FromUnit, 1, MaxLimitPerUser)
		if from == nil {
			from = unless(t.FromUnit > last, at+"/from_unit",
				Textf("must be above that of the tier before it, %d", "必须大于前一档的 %d", last))
		}
		last = max(last, t.FromUnit)
		fs = slices.Concat(fs, from, within(at+"/percent", t.Percent, 0, 100))
	}
	none := len(c.Tiers) == 0
	fs = slices.Concat(fs,
		unless(none || c.Kind == Sale, "/tiers", Text{"belong to a sale", "仅用于 sale"}),
		unless(none || c.Price != nil || c.ProductID != "", "/tiers", NeedPrice),
	)
	if len(fs) > 0 || c.Price == nil || len(c.Price.Faults("")) > 0 {
		return fs
	}
	_, ok := tieredSum(c.Price.Amount, c.Tiers, c.LimitPerUser)
	return unless(ok, "/price/amount",
		Textf("times limit_per_user must stay below %d", "与 limit_per_user 的乘积必须小于 %d", MaxMinor))
}

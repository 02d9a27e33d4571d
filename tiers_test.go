package dibs

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// tieredOneByOne adds the units' prices up as the documentation says it.
func tieredOneByOne(price int64, tiers []Tier, quantity int64) int64 {
	sum := int64(0)
	for unit := int64(1); unit <= quantity; unit++ {
		percent := int64(100)
		for _, t := range tiers {
			if t.FromUnit <= unit {
				percent = t.Percent
			}
		}
		sum += (price*percent + 50) / 100
	}
	return sum
}

func TestAmountsByTiers(t *testing.T) {
	half := []Tier{{2, 50}}
	for _, c := range []struct {
		price, quantity int64
		tiers           []Tier
		want            int64
	}{
		{1000, 1, half, 1000},
		{1000, 2, half, 1500},
		{999, 2, half, 999 + 500},
		{1000, 5, half, 3000},
		{1000, 3, nil, 3000},
		{1000, 3, []Tier{{1, 90}}, 2700},
		{1000, 4, []Tier{{2, 50}, {3, 100}}, 3500},
		{1000, 3, []Tier{{3, 0}}, 2000},
		{1, 3, []Tier{{2, 49}}, 1},
		{0, 3, half, 0},
	} {
		campaign := &Campaign{Price: &Money{c.price, "CNY"}, Tiers: c.tiers}
		if got := campaign.AmountFor(c.quantity); got.Amount != c.want || got.Currency != "CNY" {
			t.Errorf("%d units at %d with %v cost %d, want %d", c.quantity, c.price, c.tiers, got.Amount, c.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var tiers []Tier
		for from := int64(1); from < 60 && len(tiers) < maxTiers; from += r.Int64N(8) + 1 {
			tiers = append(tiers, Tier{FromUnit: from, Percent: r.Int64N(101)})
		}
		if len(tiers) > 0 && r.IntN(2) == 0 {
			tiers = tiers[1:]
		}
		price, quantity := r.Int64N(100_000), r.Int64N(70)+1
		if got, ok := tieredSum(price, tiers, quantity); !ok || got != tieredOneByOne(price, tiers, quantity) {
			t.Fatalf("%d units at %d with %v cost %d %v", quantity, price, tiers, got, ok)
		}
	}
}

// Amounts near the bound are judged without an overflow.
func TestAmountsNearTheBound(t *testing.T) {
	for _, c := range []struct {
		price, quantity int64
		tiers           []Tier
		ok              bool
	}{
		{MaxMinor - 1, 1, nil, true},
		{MaxMinor - 1, 2, nil, false},
		{MaxMinor - 1, 2, []Tier{{2, 0}}, true},
		{MaxMinor - 1, MaxLimitPerUser, nil, false},
		{MaxMinor - 1, MaxLimitPerUser, []Tier{{2, 50}}, false},
		{(MaxMinor - 1) / MaxLimitPerUser, MaxLimitPerUser, nil, true},
		{(MaxMinor-1)/MaxLimitPerUser + 1, MaxLimitPerUser, nil, false},
	} {
		if sum, ok := tieredSum(c.price, c.tiers, c.quantity); ok != c.ok || sum < 0 || sum >= MaxMinor {
			t.Errorf("%d units at %d with %v: %d %v, want %v", c.quantity, c.price, c.tiers, sum, ok, c.ok)
		}
	}
	if got := (&Campaign{Price: &Money{MaxMinor - 1, "CNY"}}).AmountFor(1 << 40); got.Amount != MaxMinor-1 {
		t.Errorf("what cannot be an amount is %d", got.Amount)
	}
}

func TestTierFaults(t *testing.T) {
	many := make([]Tier, maxTiers+1)
	for i := range many {
		many[i] = Tier{int64(i + 1), 50}
	}
	price := &Money{1000, "CNY"}
	for name, c := range map[string]struct {
		change func(*CampaignSpec)
		want   []string
	}{
		"good":            {func(s *CampaignSpec) { s.Tiers = []Tier{{1, 100}, {2, 0}} }, nil},
		"from nothing":    {func(s *CampaignSpec) { s.Tiers = []Tier{{0, 50}} }, []string{"/tiers/0/from_unit"}},
		"below nothing":   {func(s *CampaignSpec) { s.Tiers = []Tier{{-1, 50}} }, []string{"/tiers/0/from_unit"}},
		"beyond limits":   {func(s *CampaignSpec) { s.Tiers = []Tier{{MaxLimitPerUser + 1, 50}} }, []string{"/tiers/0/from_unit"}},
		"out of order":    {func(s *CampaignSpec) { s.Tiers = []Tier{{3, 50}, {2, 40}} }, []string{"/tiers/1/from_unit"}},
		"twice":           {func(s *CampaignSpec) { s.Tiers = []Tier{{2, 50}, {2, 40}} }, []string{"/tiers/1/from_unit"}},
		"percents":        {func(s *CampaignSpec) { s.Tiers = []Tier{{1, -1}, {2, 101}} }, []string{"/tiers/0/percent", "/tiers/1/percent"}},
		"too many":        {func(s *CampaignSpec) { s.Tiers = many }, []string{"/tiers"}},
		"without a price": {func(s *CampaignSpec) { s.Price, s.Tiers = nil, []Tier{{2, 50}} }, []string{"/tiers"}},
		"of a coupon":     {func(s *CampaignSpec) { s.Kind, s.Tiers = Coupon, []Tier{{2, 50}} }, []string{"/tiers"}},
		"the sum":         {func(s *CampaignSpec) { s.Price, s.Limit = &Money{MaxMinor - 1, "CNY"}, new(int64(2)) }, []string{"/price/amount"}},
		"a price that is none": {func(s *CampaignSpec) {
			s.Price, s.Tiers = &Money{-1, "CNY"}, []Tier{{2, 50}}
		}, []string{"/price/amount"}},
	} {
		now := time.Now()
		spec := CampaignSpec{
			ID: "c", Kind: Sale, Title: "c", StartsAt: now, EndsAt: now.Add(time.Hour), Price: price, Stock: StockSpec{Units: new(int64(5))},
		}
		c.change(&spec)
		_, err := spec.Campaign(now)
		var fields []string
		var e *Error
		if errors.As(err, &e) {
			for _, f := range e.Faults {
				fields = append(fields, f.Field)
			}
		}
		if !slices.Equal(fields, c.want) {
			t.Errorf("%s: faults of %v, want %v", name, fields, c.want)
		}
	}
}

package announce

import (
	"context"
	"math"

	"github.com/dibs-dev/dibs"
)

// ThresholdView is how many followers the merchants have, and the threshold that this
// suggests: up to it all followers of a merchant are told at once. The threshold in use
// stays what the settings say.
type ThresholdView struct {
	// Merchants counts those that have followers.
	Merchants int64 `json:"merchants"`
	// Cover is the part of the merchants, in percent, that a threshold should cover.
	Cover float64 `json:"cover_percent"`
	// Proposed is the lowest threshold, rounded up to two digits, that covers them; 0
	// without merchants. Covered is what it covers, in percent, and Above counts the
	// merchants whose other followers have to queue.
	Proposed int64   `json:"proposed_threshold"`
	Covered  float64 `json:"covered_percent"`
	Above    int64   `json:"merchants_above"`
	// Threshold is the one in use, which covers CoveredNow percent.
	Threshold  int64   `json:"threshold"`
	CoveredNow float64 `json:"covered_now_percent"`
	// First and Rate are in use too: how many are told at once when there are more than
	// Threshold, and how many of the others each second.
	First int64 `json:"first"`
	Rate  int64 `json:"rate"`
	// Most is the largest number of followers of one merchant.
	Most int64 `json:"most_followers"`
	// Sizes are the merchants by their followers: each step has those that no earlier
	// step has.
	Sizes []SizeView `json:"sizes"`
}

// SizeView counts the merchants of a range of followers.
type SizeView struct {
	UpTo      int64 `json:"up_to"`
	Merchants int64 `json:"merchants"`
}

// Threshold proposes the threshold that covers so many percent of the merchants, from
// how many followers they have now. *Error of InvalidRequest.
func (s *Announcements) Threshold(ctx context.Context, cover float64) (ThresholdView, error) {
	if !(cover > 0 && cover <= 100) {
		return ThresholdView{}, dibs.Invalid(dibs.Fault{Field: "/cover", Problem: dibs.Text{EN: "must be above 0 and at most 100 percent", ZH: "必须大于 0 且不超过 100（百分比）"}})
	}
	var sizes [][2]int64
	if err := s.cfg.Ledger.MerchantSizes(ctx, func(followers, merchants int64) { sizes = append(sizes, [2]int64{followers, merchants}) }); err != nil {
		return ThresholdView{}, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	v := proposal(sizes, cover, s.cfg.Push.Threshold)
	v.First, v.Rate = max(0, min(s.cfg.Push.First, s.cfg.Push.Threshold)), s.cfg.Push.Rate
	return v, nil
}

// proposal reads the distribution: numbers of followers, rising, with how many merchants
// have each.
func proposal(sizes [][2]int64, cover float64, threshold int64) ThresholdView {
	v := ThresholdView{Cover: cover, Threshold: threshold, Sizes: []SizeView{}}
	for _, s := range sizes {
		v.Merchants += s[1]
		v.Most = s[0]
	}
	if v.Merchants == 0 {
		return v
	}
	// At least so many have to be covered: 99 % of 150 are 149.
	want := int64(math.Ceil(cover / 100 * float64(v.Merchants)))
	seen, step := int64(0), int64(1)
	for _, s := range sizes {
		if seen += s[1]; v.Proposed == 0 && seen >= want {
			v.Proposed = roundUp(s[0])
		}
		for step < s[0] {
			step *= 10
		}
		if last := len(v.Sizes) - 1; last >= 0 && v.Sizes[last].UpTo == step {
			v.Sizes[last].Merchants += s[1]
		} else {
			v.Sizes = append(v.Sizes, SizeView{UpTo: step, Merchants: s[1]})
		}
	}
	covered := func(threshold int64) (n int64) {
		for _, s := range sizes {
			if s[0] <= threshold {
				n += s[1]
			}
		}
		return n
	}
	n := covered(v.Proposed)
	v.Above, v.Covered = v.Merchants-n, percent(n, v.Merchants)
	v.CoveredNow = percent(covered(threshold), v.Merchants)
	return v
}

// percent is a part in percent, with two digits, rounded down: 99.999 is not all.
func percent(part, of int64) float64 { return math.Floor(float64(part)/float64(of)*10_000) / 100 }

// roundUp keeps the first two digits, as people choose thresholds: 1,958 is 2,000.
func roundUp(n int64) int64 {
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}

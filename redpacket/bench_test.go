package redpacket_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/redpacket"
)

// BenchmarkSplit divides a sum into a million shares, the most there may be.
func BenchmarkSplit(b *testing.B) {
	for _, c := range []struct {
		name  string
		total int64
		split dibs.Split
		max   int64
	}{
		{"double_mean", 1e9, dibs.DoubleMean, 0},
		{"double_mean/max", 1e9, dibs.DoubleMean, 1500},
		{"line_cut", 1e9, dibs.LineCut, 0},
		{"line_cut/dense", 2e6 - 1, dibs.LineCut, 0},
		{"line_cut/max", 1e9, dibs.LineCut, 3000},
		{"equal", 1e9 + 7, dibs.Equal, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			spec := dibs.RedPacketSpec{
				Total: dibs.Money{Amount: c.total, Currency: "CNY"},
				Count: dibs.MaxShares, Split: c.split, Max: c.max,
			}
			seed := rand.NewChaCha8([32]byte{1})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := redpacket.Split(spec, seed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package redpacket

import (
	"math"
	"testing"

	"github.com/dibs-dev/dibs"
)

// doubleMeanSpread is the standard deviation of n double-mean shares of mean
// excess 1: when k shares remain, the square of the mean of what is left has grown
// by 1 + 1/(3j²) for each j from k to n-1, and a draw has 4/3 of it.
func doubleMeanSpread(n int) float64 {
	sum, square := 0.0, 1.0
	for k := n; k > 1; k-- {
		sum += square * 4 / 3
		square *= 1 + 1/(3*float64(k-1)*float64(k-1))
	}
	return math.Sqrt((sum+square)/float64(n) - 1)
}

// Mean and spread are what the documentation says.
func TestSpreadIsAsDocumented(t *testing.T) {
	for _, c := range []struct {
		mean        float64
		count       int64
		split       dibs.Split
		least, most int64
		want        float64
	}{
		{10_001, 10, dibs.DoubleMean, 1, 0, 10_000 * doubleMeanSpread(10)},
		{10_001, 1000, dibs.DoubleMean, 1, 0, 10_000 * doubleMeanSpread(1000)},
		{10_001, 1000, dibs.DoubleMean, 5001, 0, 5000 / math.Sqrt(3)},
		{10_001, 1000, dibs.DoubleMean, 1, 12_001, 2000 / math.Sqrt(3)},
		// One unit above the least for a tenth of the shares.
		{1.1, 1000, dibs.DoubleMean, 1, 0, 0.3},
		// Of n even parts of a whole, each has the variance (n-1)/(n+1) squares of
		// their mean; the second term is for whole minor units.
		{10_001, 10, dibs.LineCut, 1, 0, math.Sqrt(9. / 11 * 10_000 * 10_001)},
		{10_001, 1000, dibs.LineCut, 1, 0, math.Sqrt(999. / 1001 * 10_000 * 10_001)},
		// Bounded at twice the mean, many even parts are spread evenly.
		{10_001, 1000, dibs.LineCut, 1, 20_001, 20_000 / math.Sqrt(12)},
		// Close below the max, what is missing from it is spread like a line cut.
		{10_001, 1000, dibs.LineCut, 1, 10_101, 100},
		{10_001, 1000, dibs.Equal, 1, 0, 0},
	} {
		d := newTest(t, int64(c.mean*float64(c.count)), c.count, c.split, c.least, c.most)
		shares := make([]int64, c.count)
		square, rounds := 0.0, int(1_000_000/c.count)
		for range rounds {
			if err := d.divide(shares); err != nil {
				t.Fatal(err)
			}
			for _, s := range shares {
				square += (float64(s) - c.mean) * (float64(s) - c.mean)
			}
		}
		got := math.Sqrt(square / float64(rounds) / float64(c.count))
		if math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("%s of %d from %d to %d: the spread is %.1f, want %.1f", c.split, c.count, c.least, c.most, got, c.want)
		}
	}
}

// A bound bends the distribution; it does not collect what would be beyond it.
// Line cuts rise towards a bound by up to 5% from one amount to the next here.
func TestNoLumpsAtTheBounds(t *testing.T) {
	for _, c := range []struct {
		split       dibs.Split
		least, most int64
	}{
		{dibs.DoubleMean, 1, 150},
		{dibs.DoubleMean, 50, 120},
		{dibs.DoubleMean, 80, 400},
		{dibs.LineCut, 1, 150},
		{dibs.LineCut, 50, 120},
		{dibs.LineCut, 80, 400},
		{dibs.LineCut, 1, 300},
	} {
		d := newTest(t, 100*1000, 1000, c.split, c.least, c.most)
		shares, counts := make([]int64, 1000), make([]int, c.most+1)
		for range 1000 {
			if err := d.divide(shares); err != nil {
				t.Fatal(err)
			}
			for _, s := range shares {
				counts[s]++
			}
		}
		for _, side := range []struct{ at, in int64 }{{c.least, 1}, {c.most, -1}} {
			at, beside := counts[side.at], (counts[side.at+side.in]+counts[side.at+2*side.in]+counts[side.at+3*side.in])/3
			if slack := 5 * math.Sqrt(float64(beside)+1); float64(at) > float64(beside)*1.15+slack {
				t.Errorf("%s from %d to %d: %d shares of %d, about %d of the next", c.split, c.least, c.most, at, side.at, beside)
			}
		}
	}
}

// The last line of defence fires.
func TestCheck(t *testing.T) {
	spec := dibs.RedPacketSpec{Total: dibs.Money{Amount: 10, Currency: "CNY"}, Count: 3, Min: 2, Max: 5}
	for _, c := range []struct {
		shares []int64
		good   bool
	}{
		{[]int64{2, 3, 5}, true},
		{[]int64{5, 5}, false},
		{[]int64{1, 4, 5}, false},
		{[]int64{2, 2, 6}, false},
		{[]int64{3, 3, 3}, false},
		{[]int64{3, 3, 5}, false},
	} {
		if err := check(&spec, c.shares); (err == nil) != c.good {
			t.Errorf("%v: %v", c.shares, err)
		}
	}
}

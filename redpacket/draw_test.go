package redpacket

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"
)

// The tests here are statistical, under fixed seeds: they give the same answer
// each time. Thresholds are such that a right divider passes with all but one
// seed in some thousands.

func newTest(t *testing.T, total, count int64, split dibs.Split, least, most int64) *divider {
	t.Helper()
	spec := dibs.RedPacketSpec{Total: dibs.Money{Amount: total, Currency: "CNY"}, Count: count, Split: split, Min: least, Max: most}
	d, err := newDivider(spec, rand.NewChaCha8([32]byte{7}))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// chiSquare compares counts with an even distribution, and returns what it may
// reach by chance once in ten thousand times (Wilson and Hilferty).
func chiSquare(counts []int) (got, limit float64) {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	mean := float64(sum) / float64(len(counts))
	for _, n := range counts {
		got += (float64(n) - mean) * (float64(n) - mean) / mean
	}
	df := float64(len(counts) - 1)
	return got, df * math.Pow(1-2/(9*df)+3.72*math.Sqrt(2/(9*df)), 3)
}

// luck counts how often each place has the greatest share and how often the
// least; ties are broken at random.
func luck(d *divider, rounds int, divide func([]int64)) (best, worst []int) {
	shares := make([]int64, d.spec.Count)
	best, worst = make([]int, d.spec.Count), make([]int, d.spec.Count)
	for range rounds {
		divide(shares)
		best[pick(d, shares, slices.Max(shares))]++
		worst[pick(d, shares, slices.Min(shares))]++
	}
	return best, worst
}

func pick(d *divider, shares []int64, v int64) int {
	at, ties := 0, int64(0)
	for i, s := range shares {
		if s == v {
			if ties++; d.rng.below(ties) == 0 {
				at = i
			}
		}
	}
	return at
}

// No place is better than another; and the test sees it when the shuffle is
// left out.
func TestNoPlaceIsFavoured(t *testing.T) {
	const rounds = 40_000
	for _, c := range []struct {
		total, count int64
		split        dibs.Split
		least, most  int64
		// biased: the split by itself favours places.
		biased bool
	}{
		{10_000, 10, dibs.DoubleMean, 1, 0, true},
		{10_000, 10, dibs.DoubleMean, 1, 1800, true},
		{10_000, 10, dibs.DoubleMean, 800, 0, true},
		{14, 10, dibs.DoubleMean, 1, 0, true},
		{10_000, 10, dibs.LineCut, 1, 0, false},
		{10_000, 10, dibs.LineCut, 1, 1500, false},
		{10_003, 10, dibs.Equal, 1, 0, true},
	} {
		name := fmt.Sprintf("%s %d/%d from %d to %d", c.split, c.total, c.count, c.least, c.most)
		d := newTest(t, c.total, c.count, c.split, c.least, c.most)
		best, worst := luck(d, rounds, func(shares []int64) {
			if err := d.divide(shares); err != nil {
				t.Fatal(err)
			}
		})
		for what, counts := range map[string][]int{"best": best, "worst": worst} {
			if got, limit := chiSquare(counts); got > limit {
				t.Errorf("%s: the %s luck is not even, χ² = %.0f > %.0f: %v", name, what, got, limit, counts)
			}
		}
		best, worst = luck(d, rounds, d.draw)
		b, limit := chiSquare(best)
		w, _ := chiSquare(worst)
		if caught := max(b, w) > limit; caught != c.biased {
			t.Errorf("%s, not shuffled: χ² of the best %.0f and the worst luck %.0f, limit %.0f; want it caught: %v", name, b, w, limit, c.biased)
		}
	}
}

// ways returns all ways to divide, as texts.
func ways(excess int64, n int, room int64, before string, into map[string]int) {
	if n == 1 {
		if excess <= room {
			into[before+fmt.Sprint(excess)] = 0
		}
		return
	}
	for v := range min(excess, room) + 1 {
		ways(excess-v, n-1, room, before+fmt.Sprint(v, " "), into)
	}
}

// Each way to cut the line within the bounds is as likely as any other, by
// either road to it.
func TestEveryCutIsEquallyLikely(t *testing.T) {
	for _, c := range []struct{ total, count, most int64 }{
		{9, 4, 0}, {20, 3, 0}, {7, 5, 0}, {10, 4, 4}, {12, 4, 5}, {20, 3, 9}, {10, 5, 3}, {5, 2, 4}, {15, 6, 4},
	} {
		d := newTest(t, c.total, c.count, dibs.LineCut, 1, c.most)
		roads := map[string]func([]int64){"draw": d.draw, "exchanges": d.boundedCut}
		for road, cut := range roads {
			seen := map[string]int{}
			ways(d.excess, int(c.count), d.room, "", seen)
			all := len(seen)
			shares := make([]int64, c.count)
			for range 200 * all {
				cut(shares)
				seen[trim(shares)]++
			}
			if len(seen) != all {
				t.Fatalf("%+v, %s: %d ways, there are %d", c, road, len(seen), all)
			}
			var counts []int
			for _, n := range seen {
				counts = append(counts, n)
			}
			if got, limit := chiSquare(counts); got > limit {
				t.Errorf("%+v, %s: %d ways are not even, χ² = %.0f > %.0f", c, road, all, got, limit)
			}
		}
	}
}

func trim(shares []int64) string {
	text := fmt.Sprint(shares)
	return text[1 : len(text)-1]
}

// Rows of every density yield different positions in order, evenly.
func TestPositionsAreEvenAndInOrder(t *testing.T) {
	d := newTest(t, 1, 1, dibs.LineCut, 1, 0)
	for _, c := range []struct{ count, row int64 }{{0, 0}, {0, 5}, {1, 1}, {1, 2}, {5, 10}, {50, 100}, {50, 120}, {20, 1000}, {1000, dibs.MaxMinor - 1}} {
		counts := make([]int, 10)
		for range 2000 {
			last, n := int64(-1), int64(0)
			d.positions(c.count, c.row, func(nth, at int64) {
				if nth != n || at <= last || at >= c.row {
					t.Fatalf("%+v: position %d is %d, after %d", c, nth, at, last)
				}
				last = at
				n++
				counts[int(float64(at)/float64(c.row)*10)]++
			})
			if n != c.count {
				t.Fatalf("%+v: %d positions", c, n)
			}
		}
		if got, limit := chiSquare(counts); c.row%10 == 0 && c.row > 0 && c.count > 0 && got > limit {
			t.Errorf("%+v: not even, χ² = %.0f > %.0f: %v", c, got, limit, counts)
		}
	}
}

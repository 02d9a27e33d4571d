package room_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/dibs-dev/dibs/gate/room"
)

func seedOf(n int) room.Sum { return sha256.Sum256(fmt.Appendf(nil, "shuffle %d", n)) }

// Wherever one arrives, each place is as likely as any other: a chi-square over
// many seeds. The seeds are fixed, so that it never fails by chance.
func TestShufflesAreFair(t *testing.T) {
	const people, shuffles = 20, 20_000
	var count [people][people]int
	for n := range shuffles {
		for arrival, place := range room.Permutation(seedOf(n), people) {
			count[arrival][place-1]++
		}
	}
	expected, sum := float64(shuffles)/people, 0.0
	for _, row := range count {
		for _, n := range row {
			d := float64(n) - expected
			sum += d * d / expected
		}
	}
	// 361 degrees of freedom: a mean of 361, a deviation of 27.
	if sum > 361+5*27 {
		t.Errorf("chi-square %.0f, 361 is expected", sum)
	}
}

// Each of the six orders of three is as likely as any other.
func TestEveryOrderIsAsLikely(t *testing.T) {
	const shuffles = 60_000
	count := make(map[string]int)
	for n := range shuffles {
		count[fmt.Sprint(room.Permutation(seedOf(n), 3))]++
	}
	sum := 0.0
	for _, n := range count {
		d := float64(n) - shuffles/6
		sum += d * d / (shuffles / 6)
	}
	// Five degrees of freedom: beyond 25, one in ten thousand.
	if len(count) != 6 || sum > 25 {
		t.Errorf("chi-square %.1f of %v", sum, count)
	}
}

func TestAShuffleIsAPermutation(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 1000} {
		seen := make(map[uint32]bool)
		for _, p := range room.Permutation(seedOf(1), n) {
			if p < 1 || int64(p) > n || seen[p] {
				t.Fatalf("of %d: place %d", n, p)
			}
			seen[p] = true
		}
		if int64(len(seen)) != n {
			t.Fatalf("%d of %d have a place", len(seen), n)
		}
	}
	// The order is the same in every release: a node of another one must not put
	// people elsewhere.
	if got := fmt.Sprint(room.Permutation(room.Sum{}, 10)); got != knownOrder {
		t.Errorf("order %s, it has been %s", got, knownOrder)
	}
}

// knownOrder is the order of ten under the seed of zeros.
const knownOrder = "[6 3 7 10 1 2 5 9 4 8]"

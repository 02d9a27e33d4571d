package sqlledger

import (
	"math/rand/v2"
	"testing"
)

// TestLevelled divides random changes over random shards: the parts add up, none goes
// against the whole, no shard falls below nothing, and no other division is more even.
func TestLevelled(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		left, sum := make([]int64, 1+dice.IntN(8)), int64(0)
		for i := range left {
			left[i] = dice.Int64N(10)
			sum += left[i]
		}
		delta := dice.Int64N(30)
		if dice.IntN(2) == 0 {
			delta = -dice.Int64N(sum + 1)
		}
		parts := levelled(delta, left)
		got := int64(0)
		for i, p := range parts {
			got += p
			if p*delta < 0 || left[i]+p < 0 {
				t.Fatalf("%d over %v: %v changes shard %d the wrong way", delta, left, parts, i)
			}
			for j, q := range parts {
				// One more unit moved from i to j would make the two more even.
				if delta > 0 && p > 0 && left[i]+p > left[j]+q+1 || delta < 0 && q < 0 && left[i]+p > left[j]+q+1 {
					t.Fatalf("%d over %v: %v is not even between %d and %d", delta, left, parts, i, j)
				}
			}
		}
		if got != delta {
			t.Fatalf("%d over %v: %v adds up to %d", delta, left, parts, got)
		}
	}
}

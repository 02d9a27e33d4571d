package redisengine

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// The table says what a map would say, round after round, when rounds begin anew
// too.
func TestDuplicatesFindTheFirst(t *testing.T) {
	s := &duplicateIndex{round: math.MaxUint32 - 3}
	for _, buckets := range []uint32{1, 3, 100, 5000, math.MaxUint32, 2, 1 << 20, 7} {
		s.begin()
		firsts := map[uint32]uint16{}
		for i := uint16(1); i <= format.MaxBatch; i++ {
			bucket := rand.Uint32N(buckets)
			if got := s.first(bucket, i); got != firsts[bucket] {
				t.Fatalf("of %d buckets, the first claim of %d is %d for the %dth, want %d", buckets, bucket, got, i, firsts[bucket])
			}
			if firsts[bucket] == 0 {
				firsts[bucket] = i
			}
		}
	}
}

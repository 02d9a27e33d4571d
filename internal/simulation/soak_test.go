//go:build soak

package simulation

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// soaked says that the long campaigns run.
const soaked = true

// seedsARound is how many seeds stand for one round of the soak.
const seedsARound = 1000

// brokenMost is how many seeds may break before the rest is left: one alone says little of the others, and
// many have one cause.
const brokenMost = 5

// TestSoak runs as many seeds as SOAK says.
func TestSoak(t *testing.T) {
	rounds, err := strconv.ParseUint(os.Getenv("SOAK"), 10, 32)
	if err != nil || rounds == 0 {
		t.Fatalf("SOAK=%q: it must be a number of rounds", os.Getenv("SOAK"))
	}
	begun := time.Now()
	stories := 0
	tried, virtual, broken := try(t, Range{Count: rounds * seedsARound}, Planted{}, func(o *Outcome) bool {
		t.Error(o)
		stories++
		return stories == brokenMost
	})
	t.Logf("%d seeds, %d broken, in %s: %s by their own clocks", tried, broken, time.Since(begun).Round(time.Second), virtual.Round(time.Second))
}

package plan

import (
	"math"
	"testing"
)

// TestFirstPresses has users who press four times come early: with a quarter of the
// requests, two thirds of them have pressed once at least.
func TestFirstPresses(t *testing.T) {
	q := Question{Users: 10_000, Presses: 4, Stock: 20_000}.WithDefaults()
	s := newStock(&q)
	for range 10_000 {
		s.decide(0, &parcel{requests: 1}, 0)
	}
	if want := 10_000 * (1 - math.Pow(0.75, 4)); math.Abs(s.holders-want) > 10 {
		t.Errorf("%g users hold a unit, want %g", s.holders, want)
	}
	if s.holders+s.total() != 20_000 {
		t.Errorf("%g units are held and %g left, of 20,000", s.holders, s.total())
	}
}

// TestDivided gives each shard its part.
func TestDivided(t *testing.T) {
	q := Question{Users: 100, Stock: 13, Shards: 5, Engine: Redis, Nodes: 1}.WithDefaults()
	s := newStock(&q)
	if s.total() != 13 || s.left[4] != 2 {
		t.Errorf("13 units in 5 shards: %v", s.left)
	}
	s.decide(4, &parcel{requests: 5}, 1)
	if !s.gone(4) || s.gone(0) || s.soldOut >= 0 {
		t.Errorf("one shard is empty: %v, sold out at %g", s.left, s.soldOut)
	}
}

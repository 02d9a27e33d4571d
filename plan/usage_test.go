package plan

import (
	"math"
	"testing"
)

// TestUsage divides busy time over the parts that it spans.
func TestUsage(t *testing.T) {
	u := &usage{width: 0.1, servers: 2}
	u.add(0.05, 0.25)
	u.add(0.1, 0.2)
	for i, want := range []float64{0.25, 1, 0.25, 0} {
		if got := u.share(i); math.Abs(got-want) > 1e-9 {
			t.Errorf("part %d is busy for %g, want %g", i, got, want)
		}
	}
	if got := u.between(0.05, 0.15); math.Abs(got-0.125) > 1e-9 {
		t.Errorf("busy for %g s", got)
	}
	if got := u.busiest(); got != 1 {
		t.Errorf("at most %g", got)
	}
}

package histogram

import (
	"slices"
	"testing"
)

// TestHistogram counts values at, between and beyond the bounds.
func TestHistogram(t *testing.T) {
	h := NewHistogram(1, 10, 100)
	for _, v := range []int64{0, 1, 2, 10, 11, 100, 101, 1 << 40} {
		h.Observe(v)
	}
	got := h.Tally()
	if !slices.Equal(got.Counts, []int64{2, 2, 2, 2}) || got.Sum != 225+1<<40 {
		t.Errorf("%+v", got)
	}
	if n := testing.AllocsPerRun(100, func() { h.Observe(5) }); n > 0 {
		t.Errorf("a value costs %v allocations", n)
	}
	for _, h := range []*Histogram{NewTimeHistogram(), NewSizeHistogram()} {
		if b := h.Tally().Bounds; !slices.IsSorted(b) || b[0] <= 0 {
			t.Errorf("bounds %v", b)
		}
	}
}

package main

import "testing"

// The rain may miss one frame in twenty.
func TestFramesFaults(t *testing.T) {
	for rate, want := range map[float64]int{60: 0, leastFrames: 0, leastFrames - 0.1: 1, 0: 1} {
		if got := (frames{Rate: rate}).faults(); len(got) != want {
			t.Errorf("%.1f: %v", rate, got)
		}
	}
}

package main

import "testing"

// Under too few grants a screen has not been tried; one that grows or stalls breaks a limit.
func TestWatchedScreenFaults(t *testing.T) {
	good := watchedScreen{rate: 980, before: 4 << 20, grown: maxGrowth, longest: 50}
	for name, c := range map[string]struct {
		change func(*watchedScreen)
		want   int
	}{
		"within all limits": {func(*watchedScreen) {}, 0},
		"smaller than ever": {func(w *watchedScreen) { w.grown = -1 }, 0},
		"too few grants":    {func(w *watchedScreen) { w.rate = 949 }, 1},
		"no heap is told":   {func(w *watchedScreen) { w.before, w.grown = 0, 0 }, 1},
		"it grows":          {func(w *watchedScreen) { w.grown++ }, 1},
		"it stalls":         {func(w *watchedScreen) { w.longest = 51 }, 1},
	} {
		w := good
		c.change(&w)
		if got := w.faults(); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

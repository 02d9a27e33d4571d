package plan

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestClock runs events in the order of their times, and equal times in the order of
// their making.
func TestClock(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	var c clock
	type done struct {
		at    float64
		order int
	}
	var got []done
	for i := range 1000 {
		at := float64(random.IntN(50))
		c.at(at, func() {
			if c.now != at {
				t.Errorf("at %g the clock says %g", at, c.now)
			}
			got = append(got, done{at, i})
		})
	}
	for c.step() {
	}
	if len(got) != 1000 || !slices.IsSortedFunc(got, func(a, b done) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.order - b.order
	}) {
		t.Errorf("%d events, not in order: %v", len(got), got[:10])
	}
}

// TestProcessor has cores that share the work, and work that only one of them can do.
func TestProcessor(t *testing.T) {
	var c clock
	p := &processor{clock: &c, cores: 2, usage: &usage{width: 1, servers: 1}}
	var ends []float64
	note := func() { ends = append(ends, c.now) }
	p.work(1, note)
	p.work(1, note)
	for c.step() {
	}
	if !slices.Equal(ends, []float64{0.5, 1}) {
		t.Errorf("two seconds of work on two cores ended at %v", ends)
	}
	p.workAlone(1, note)
	for c.step() {
	}
	if end := ends[2] - 1; end < 0.999 || end > 1.02 {
		t.Errorf("a second of work that one core does took %g s", end)
	}
	if busy := p.usage.between(1, 2.1); busy < 0.49 || busy > 0.51 {
		t.Errorf("it kept two cores busy for %g s", busy)
	}
}

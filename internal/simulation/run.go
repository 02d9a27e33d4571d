package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Outcome is what came of a run.
type Outcome struct {
	Seed uint64
	// Plan says what the run was like, Story what happened.
	Plan, Story string
	// Broken are the promises that were broken; empty for a good run.
	Broken []string
	// Virtual is how long the run took by its own clock.
	Virtual time.Duration
}

// String shows a broken run.
func (o *Outcome) String() string {
	return fmt.Sprintf("%s\n\n%s\nBroken in the run of seed %d:\n  %s", o.Plan, o.Story, o.Seed, strings.Join(o.Broken, "\n  "))
}

// Run simulates the run of a seed. t fails when the run cannot be made, not when
// a promise is broken.
func Run(t *testing.T, seed uint64, planted Planted) *Outcome {
	dir := t.TempDir()
	out := &Outcome{Seed: seed}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w, err := newWorld(context.Background(), dir, seed, planted)
		if err != nil {
			t.Fatal(err)
		}
		w.run()
		out.Plan, out.Broken, out.Virtual = w.plan.String(), w.failures, time.Since(begun)
		if len(out.Broken) > 0 {
			out.Story = w.story.String()
		}
	})
	return out
}

package simulation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs/internal/sqldb"
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

// Runner simulates runs, one after the other, on one database. It is not safe for
// concurrent use.
type Runner struct {
	t    *testing.T
	base *base
}

// NewRunner makes a runner that lasts as long as a test. t fails when a run cannot be
// made, not when a promise is broken.
func NewRunner(t *testing.T) *Runner {
	b, err := openBase(t)
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{t, b}
}

// Run simulates the run of a seed.
func (r *Runner) Run(seed uint64, planted Planted) *Outcome {
	out := &Outcome{Seed: seed}
	synctest.Test(r.t, func(t *testing.T) {
		begun := time.Now()
		w, err := newWorld(sqldb.Whole(context.Background()), r.base, seed, planted)
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

// run is the run of a seed.
func (w *world) run() {
	for _, s := range w.sites {
		s.begin()
	}
	w.calm.Store(true)
	publish(w)
	j := &judge{world: w}
	for n := range w.plan.rounds {
		if w.isBroken() {
			break
		}
		w.story.tell("round %d", n+1)
		w.round(n)
		w.heal(j.settledWhileFull)
		j.look()
	}
	if !w.isBroken() {
		j.finish()
	}
	w.end()
}

// round lets people act while things go wrong.
// It returns when all have stopped, so that what follows has the world to itself.
func (w *world) round(n int) {
	w.calm.Store(false)
	ctx, cancel := context.WithTimeout(w.ctx, w.plan.round)
	defer cancel()
	var people sync.WaitGroup
	for i := range w.plan.users {
		people.Go(func() { newUser(w, n, i).act(ctx) })
	}
	people.Go(func() { newAdmin(w, n).act(ctx) })
	for _, o := range w.book.offers {
		if len(o.more) > 0 {
			people.Go(func() { newDivider(w, n, o).divide(ctx, o) })
		}
	}
	people.Go(func() { w.replicate(ctx, n) })
	people.Go(func() { harm{w, newDice(w.plan.seed, fmt.Sprint("harm ", n))}.act(ctx) })
	people.Wait()
}

// end stops all that runs.
// The bubble ends only when no goroutine is left in it.
func (w *world) end() {
	w.over.Store(true)
	w.calm.Store(true)
	for _, s := range w.sites {
		s.crash()
	}
	w.running.Wait()
}

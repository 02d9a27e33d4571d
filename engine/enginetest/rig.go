package enginetest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// rig is one check's surroundings: a state, the engine on it, a clock, and the
// failures found.
//
// It needs nothing of the checks. mu guards the clock, the products and the failures, which the
// goroutines of a check (together) share; eng and offers change only in the check's
// own goroutine, between two calls of together. A failed expectation ends the
// goroutine that found it (runtime.Goexit), as testing.T does.
type rig struct {
	ctx     context.Context
	tb      testing.TB
	factory Factory
	state   State
	eng     dibs.Engine
	offers  []*offer

	mu       sync.Mutex
	now      time.Time
	products map[uint32]string // of campaigns with a limit per product
	failures []error
}

// firstMoment is what a settable clock shows at first.
var firstMoment = time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)

// newRig makes the surroundings of a check, on an empty state. The engine is opened by
// start.
func newRig(ctx context.Context, tb testing.TB, f Factory) *rig {
	r := &rig{ctx: ctx, tb: tb, factory: f, now: firstMoment, products: map[uint32]string{}}
	r.state = f.New(tb, r.time)
	return r
}

// start opens an engine on the state, which an earlier engine may have left.
func (r *rig) start() {
	eng, err := r.state.Open(r.ctx)
	if err != nil {
		r.fatalf("open an engine on an empty state: %w", err)
	}
	if set := eng.Abilities().Products; set != nil {
		set(r.productOf)
	}
	r.eng = eng
}

// end closes the engine, when the check has not. A check that stopped its engine has
// set eng to nil.
func (r *rig) end() {
	if r.eng == nil {
		return
	}
	if err := r.eng.Close(r.ctx); err != nil {
		r.failures = append(r.failures, fmt.Errorf("close the engine: %w", err))
	}
}

// time is the clock of the engines.
func (r *rig) time() time.Time {
	if r.factory.OwnClock {
		return time.Now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// setTime sets the clock; only where it can be set.
func (r *rig) setTime(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = t
}

// maxFailures bounds what a check reports when many goroutines fail alike.
const maxFailures = 10

// fatalf records a failure and ends the goroutine that calls it.
func (r *rig) fatalf(format string, args ...any) {
	err := fmt.Errorf("%s: %w", callerOf(), fmt.Errorf(format, args...))
	r.mu.Lock()
	if len(r.failures) < maxFailures {
		r.failures = append(r.failures, err)
	}
	r.mu.Unlock()
	runtime.Goexit()
}

// failed reports whether some goroutine has failed.
func (r *rig) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

// around are the functions that run checks, or parts of them. The last two are closures, whose names
// begin with the function that they were inlined into.
var around = []string{
	"runtime.goexit", "enginetest.Check.Run", "enginetest.(*rig).together", "enginetest.(*load).during",
	".ofProducts.", ".onShards.",
}

// callerOf names the line of the check that failed: the outermost function
// that the check's goroutine runs.
func callerOf() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var last runtime.Frame
	for {
		f, more := frames.Next()
		if slices.ContainsFunc(around, func(name string) bool { return strings.Contains(f.Function, name) }) {
			break
		}
		last = f
		if !more {
			break
		}
	}
	return fmt.Sprintf("%s:%d", filepath.Base(last.File), last.Line)
}

// no fails when err is not nil.
func (r *rig) no(err error, doing string, args ...any) {
	if err != nil {
		r.fatalf("%s: %w", fmt.Sprintf(doing, args...), err)
	}
}

// is fails when err is none of the wanted ones; nil among them stands for no error.
// Several are wanted where the contract leaves a choice.
func (r *rig) is(err error, what string, wanted ...error) {
	for _, w := range wanted {
		if w == nil && err == nil || w != nil && errors.Is(err, w) {
			return
		}
	}
	r.fatalf("%s: error %v, want one of %v", what, err, wanted)
}

// that fails when ok does not hold.
func (r *rig) that(ok bool, format string, args ...any) {
	if !ok {
		r.fatalf(format, args...)
	}
}

// equal fails when got is not want.
func equal[T comparable](r *rig, what string, got, want T) {
	if got != want {
		r.fatalf("%s is %v, want %v", what, got, want)
	}
}

// together runs f in n goroutines at the same moment and waits for them all.
func (r *rig) together(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-gate
			f(i)
		})
	}
	// All goroutines run by now, so that they meet in the engine and not one by one.
	ready.Wait()
	close(gate)
	done.Wait()
	if r.failed() {
		runtime.Goexit()
	}
}

// stop ends the engine: by Close, or as if its process had been killed. eng is nil
// until start.
func (r *rig) stop(kill bool) {
	eng := r.eng
	r.eng = nil
	if kill {
		r.no(r.state.Kill(r.ctx), "kill the engine")
	} else {
		r.no(eng.Close(r.ctx), "close the engine")
	}
}

// restart ends the engine and opens another one on the same state, with every offer
// opened again from the ledger. Nothing is settled in between: what the ledger lacks,
// the engine has to take from its journal.
func (r *rig) restart(kill bool) {
	r.stop(kill)
	r.start()
	for _, o := range r.offers {
		o.open()
	}
}

package simulation

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// everyday is how many seeds an ordinary test run tries. The race detector makes
// each several times as slow: with it, a few look for races. make test runs 1,000
// without it.
func everyday() uint64 {
	if raced {
		return 12
	}
	return 300
}

// TestMain collects garbage less often, unless GOGC says how often: runs make much of
// it and keep little.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

// TestSimulation runs seeds and holds the promises: those of SIM_SEED and
// SIM_SEEDS, which `make sim` sets, or a few hundred.
func TestSimulation(t *testing.T) {
	r, err := ParseRange(os.Getenv("SIM_SEED"), os.Getenv("SIM_SEEDS"), everyday())
	if err != nil {
		t.Fatal(err)
	}
	planted, err := Plant(os.Getenv("SIM_PLANT"))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	tried, virtual, broken := try(t, r, planted, func(o *Outcome) bool {
		t.Errorf("%s\n\nmake sim SEED=%d runs it again", o, o.Seed)
		return true
	})
	t.Logf("%d seeds from %d on, %d broken, in %s: %s by their own clocks",
		tried, r.First, broken, time.Since(begun).Round(time.Millisecond), virtual.Round(time.Second))
}

// workers is how many runs are made at a time: two for each processor, since a run often
// has one goroutine alone that can go on.
func workers() int { return 2 * runtime.GOMAXPROCS(0) }

// progress is after how many seeds a long run says how far it is.
const progress = 5000

// try runs seeds on all processors until one is broken and found says that this is
// enough, or all are done.
func try(t *testing.T, r Range, planted Planted, found func(*Outcome) (enough bool)) (tried uint64, virtual time.Duration, broken int) {
	t.Helper()
	var next atomic.Uint64
	var mu sync.Mutex
	enough := false
	work := func(worker *testing.T) {
		runs := NewRunner(worker)
		for {
			n := next.Add(1) - 1
			mu.Lock()
			stop := enough
			mu.Unlock()
			if stop || n >= r.Count {
				return
			}
			o := runs.Run(r.First+n, planted)
			mu.Lock()
			tried++
			virtual += o.Virtual
			if tried%progress == 0 {
				t.Logf("%d of %d seeds so far, %d broken", tried, r.Count, broken)
			}
			if len(o.Broken) > 0 {
				broken++
				enough = found(o) || enough
			}
			mu.Unlock()
		}
	}
	// They are no parallel tests, of which there are only as many at a time as processors.
	var all sync.WaitGroup
	for range workers() {
		all.Go(func() { t.Run("worker", work) })
	}
	all.Wait()
	return tried, virtual, broken
}

// TestPlanted plants each fault that dibs once had, and finds it.
func TestPlanted(t *testing.T) {
	// Where to begin, so that an ordinary test run finds each within few seeds. The
	// soak begins at 0, and docs/SIMULATION.md has what it says.
	from := map[string]uint64{
		"Unfenced": 737, "LeaseNeedsMemory": 373, "DropsAtOnce": 1480, "LoadsStay": 1220, "ListedOnce": 311, "OneRef": 428,
		"EarlierUnasked": 30, "AnyNumber": 16, "MovesLost": 9, "TakenTwice": 723,
	}
	// A seed fixes every die, but not which goroutine runs first: another run may find
	// a fault some hundred seeds later.
	most := uint64(4000)
	if soaked {
		clear(from)
		most = 1000
	}
	faults := Faults()
	if raced {
		faults = []string{"Unfenced"}
	}
	for _, name := range faults {
		t.Run(name, func(t *testing.T) {
			planted, err := Plant(name)
			if err != nil {
				t.Fatal(err)
			}
			var first *Outcome
			begun := time.Now()
			tried, _, _ := try(t, Range{First: from[name], Count: most}, planted, func(o *Outcome) bool {
				first = o
				return true
			})
			if first == nil {
				t.Fatalf("not found within %d seeds", tried)
			}
			t.Logf("found after %d seeds, in %s, by seed %d: %s", tried, time.Since(begun).Round(time.Millisecond), first.Seed, first.Broken[0])
		})
	}
}

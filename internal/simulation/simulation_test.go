package simulation

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// everyday is how many seeds an ordinary test run tries. The race detector makes
// each several times as slow: with it, a few look for races; make test runs 1,000
// and TestPlanted without it.
func everyday() uint64 {
	if raced {
		return 30
	}
	return 300
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

// try runs seeds on all processors until one is broken and found says that this is
// enough, or all are done.
func try(t *testing.T, r Range, planted Planted, found func(*Outcome) (enough bool)) (tried uint64, virtual time.Duration, broken int) {
	t.Helper()
	var next atomic.Uint64
	var mu sync.Mutex
	enough := false
	t.Run("seeds", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				for {
					n := next.Add(1) - 1
					mu.Lock()
					stop := enough
					mu.Unlock()
					if stop || n >= r.Count {
						return
					}
					o := Run(t, r.First+n, planted)
					mu.Lock()
					tried++
					virtual += o.Virtual
					if len(o.Broken) > 0 {
						broken++
						enough = found(o) || enough
					}
					mu.Unlock()
				}
			})
		}
	})
	return tried, virtual, broken
}

// TestPlanted plants each fault that dibs once had, and finds it.
func TestPlanted(t *testing.T) {
	// Where to begin, so that an ordinary test run finds each within few seeds. The
	// soak begins at 0, and docs/SIMULATION.md has what it says.
	from := map[string]uint64{
		"ForgetfulEnd": 375, "LeaseNeedsMemory": 260, "DropsAtOnce": 105, "LoadsStay": 40, "ListedOnce": 150, "OneRef": 45,
	}
	if soaked {
		clear(from)
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
			tried, _, _ := try(t, Range{First: from[name], Count: 1000}, planted, func(o *Outcome) bool {
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

// TestBadInput refuses what is no seed, no number of seeds, and no fault.
func TestBadInput(t *testing.T) {
	for _, c := range []struct{ seed, seeds, wants string }{
		{"noon", "", `SEED="noon" is no seed`},
		{"-1", "", `SEED="-1" is no seed`},
		{"1.5", "", `SEED="1.5" is no seed`},
		{"18446744073709551616", "", "is no seed"},
		{"0", "0", `SEEDS="0" is no number of seeds`},
		{"", "many", `SEEDS="many" is no number of seeds`},
		{"", "10000001", "is no number of seeds"},
	} {
		if _, err := ParseRange(c.seed, c.seeds, 1); err == nil || !strings.Contains(err.Error(), c.wants) {
			t.Errorf("SEED=%s SEEDS=%s: %v, want %s", c.seed, c.seeds, err, c.wants)
		}
	}
	for _, c := range []struct {
		seed, seeds string
		want        Range
	}{
		{"", "", Range{Count: 7}},
		{"12", "", Range{First: 12, Count: 1, Told: true}},
		{"12", "3", Range{First: 12, Count: 3}},
		{"", "3", Range{Count: 3}},
	} {
		if r, err := ParseRange(c.seed, c.seeds, 7); err != nil || r != c.want {
			t.Errorf("SEED=%s SEEDS=%s: %+v %v, want %+v", c.seed, c.seeds, r, err, c.want)
		}
	}
	if _, err := Plant("Nonsense"); err == nil || !strings.Contains(err.Error(), "Unfenced, ") {
		t.Errorf("a fault that there is not: %v", err)
	}
	if !slices.Contains(Faults(), "Unfenced") {
		t.Errorf("the faults: %v", Faults())
	}
}

package overload

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/memory"

	"github.com/dibs-dev/dibs/api"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// engine is a model of one: so many claims at a time, each of which takes some
// time; the others queue.
type engine struct {
	workers chan struct{}
	mu      sync.Mutex
	each    time.Duration
}

func newEngine(workers int, each time.Duration) *engine {
	return &engine{workers: make(chan struct{}, workers), each: each}
}

func (e *engine) set(each time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.each = each
}

func (e *engine) claim() {
	e.workers <- struct{}{}
	e.mu.Lock()
	each := e.each
	e.mu.Unlock()
	<-time.After(each)
	<-e.workers
}

// crowd is a stream of claims on a guarded engine.
type crowd struct {
	g  *Guard
	e  *engine
	wg sync.WaitGroup

	mu   sync.Mutex
	took []time.Duration
	shed int
}

// run has claims come at a rate for a time, and forgets what was before.
func (c *crowd) run(rate int, during time.Duration) {
	c.mu.Lock()
	c.took, c.shed = nil, 0
	c.mu.Unlock()
	random := rand.New(rand.NewPCG(4, 2))
	begun := time.Now()
	for time.Since(begun) < during {
		// They come as people do, not in step.
		<-time.After(time.Duration(random.ExpFloat64() * float64(time.Second) / float64(rate)))
		c.wg.Go(c.press)
	}
}

func (c *crowd) press() {
	begun := time.Now()
	mark, ok := c.g.Enter()
	if !ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.shed++
		return
	}
	c.e.claim()
	c.g.Leave(mark)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, time.Since(begun))
}

// seen is what was answered, refused, and how long the slowest but one in twenty
// took.
func (c *crowd) seen() (answered, shed int, p95 time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := slices.Sorted(slices.Values(c.took))
	if len(took) == 0 {
		return 0, c.shed, 0
	}
	return len(took), c.shed, took[len(took)*95/100]
}

// guarded runs a test in a bubble with a guard.
func guarded(t *testing.T, cfg Config, test func(t *testing.T, g *Guard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g, err := New(cfg)
		must(t, err)
		defer g.Close()
		test(t, g)
	})
}

// The guard lets in as many claims as the engine can answer in time, and no more. It
// refuses none that the engine could answer. When the engine becomes slower or faster,
// the guard follows.
func TestGuardFollowsTheEngine(t *testing.T) {
	guarded(t, Config{Target: 100 * time.Millisecond, Min: 8}, func(t *testing.T, g *Guard) {
		// Four hundred a second.
		c := &crowd{g: g, e: newEngine(4, 10*time.Millisecond)}
		for _, step := range []struct {
			name     string
			each     time.Duration
			rate     int
			capacity int
		}{
			{"half of what it can", 10 * time.Millisecond, 200, 400},
			{"three times what it can", 10 * time.Millisecond, 1200, 400},
			{"the engine is five times slower", 50 * time.Millisecond, 1200, 80},
			{"it is as fast as before", 10 * time.Millisecond, 1200, 400},
			{"the crowd is gone", 10 * time.Millisecond, 200, 400},
		} {
			c.e.set(step.each)
			c.run(step.rate, 4*time.Second)
			const measured = 8
			c.run(step.rate, measured*time.Second)
			answered, shed, p95 := c.seen()
			want := min(step.rate, step.capacity) * measured
			if answered < want*85/100 {
				t.Errorf("%s: %d answered, want %d: it refuses what it could answer", step.name, answered, want)
			}
			if step.rate <= step.capacity && shed > 0 {
				t.Errorf("%s: %d refused", step.name, shed)
			}
			if step.rate > step.capacity && shed < (step.rate-step.capacity)*measured*8/10 {
				t.Errorf("%s: only %d refused", step.name, shed)
			}
			// An engine that takes 50ms by itself cannot answer half of a queue in less.
			if p95 > 200*time.Millisecond {
				t.Errorf("%s: one in twenty waits %s", step.name, p95)
			}
		}
		c.wg.Wait()
	})
}

// A crowd that comes at once is late once, not for long.
func TestGuardCutsAtOnce(t *testing.T) {
	guarded(t, Config{Target: 100 * time.Millisecond, Max: 1000, Min: 8}, func(t *testing.T, g *Guard) {
		c := &crowd{g: g, e: newEngine(2, 10*time.Millisecond)}
		// Five seconds' work is let in before the first answer shows it.
		c.run(2000, 8*time.Second)
		c.run(2000, 2*time.Second)
		if answered, _, p95 := c.seen(); p95 > 150*time.Millisecond || answered < 340 {
			t.Errorf("eight seconds after they came, %d are answered in two, and one in twenty waits %s", answered, p95)
		}
		c.wg.Wait()
	})
}

// An engine that is slow by itself is not helped by refusing: as many are let in
// as come.
func TestGuardLeavesSlowEnginesAlone(t *testing.T) {
	guarded(t, Config{Target: 100 * time.Millisecond}, func(t *testing.T, g *Guard) {
		c := &crowd{g: g, e: newEngine(10_000, 150*time.Millisecond)}
		c.run(100, 6*time.Second)
		c.run(1000, 6*time.Second)
		if answered, shed, _ := c.seen(); shed > answered/20 {
			t.Errorf("%d refused, %d answered", shed, answered)
		}
		c.wg.Wait()
	})
}

// An engine that answers nothing at all gets no more than the least, and all that
// it has once it answers again.
func TestGuardStalls(t *testing.T) {
	guarded(t, Config{Target: 100 * time.Millisecond, Max: 1000, Min: 50}, func(t *testing.T, g *Guard) {
		c := &crowd{g: g, e: newEngine(10, time.Millisecond)}
		c.run(1000, 5*time.Second)
		c.e.set(time.Minute)
		c.run(1000, 20*time.Second)
		if n := g.View().InFlight; n > 1000 {
			t.Errorf("%d are under way", n)
		}
		if limit := g.View().Limit; limit != 50 {
			t.Errorf("%d are let in", limit)
		}
		c.e.set(time.Millisecond)
		<-time.After(10 * time.Minute)
		c.wg.Wait()
		c.run(1000, 10*time.Second)
		if answered, shed, _ := c.seen(); shed > 0 || answered < 9000 {
			t.Errorf("after the stall %d answered, %d refused", answered, shed)
		}
		c.wg.Wait()
	})
}

// A few that wait for an engine that stands still are no queue: when it goes on,
// and a crowd comes, nobody is refused for it.
func TestGuardForgivesAPause(t *testing.T) {
	guarded(t, Config{}, func(t *testing.T, g *Guard) {
		c := &crowd{g: g, e: newEngine(1000, 3*time.Second)}
		c.wg.Go(c.press)
		c.wg.Wait()
		c.e.set(40 * time.Millisecond)
		c.run(5000, 3*time.Second)
		if answered, shed, _ := c.seen(); shed > 0 {
			t.Errorf("after the pause %d answered, %d refused; %d are let in at a time", answered, shed, g.View().Limit)
		}
		c.wg.Wait()
	})
}

// Readiness falls after some seconds of refusals, and rises after as many without.
func TestReadiness(t *testing.T) {
	guarded(t, Config{Target: 100 * time.Millisecond, Max: 100, After: 5 * time.Second}, func(t *testing.T, g *Guard) {
		c := &crowd{g: g, e: newEngine(10, 10*time.Millisecond)}
		c.run(3000, 3*time.Second)
		if v := g.View(); v.Overloaded {
			t.Errorf("after 3s: %+v", v)
		}
		c.run(3000, 3*time.Second)
		if v := g.View(); !v.Overloaded || !strings.Contains(v.Why, "claims are refused") || v.ShedPerSecond < 1000 || v.LatencyMS == 0 || v.Limit > 100 {
			t.Errorf("after 6s: %+v", v)
		}
		c.run(100, 3*time.Second)
		if v := g.View(); !v.Overloaded {
			t.Error("after 3s without refusals it is ready")
		}
		c.run(100, 4*time.Second)
		if v := g.View(); v.Overloaded || v.Why != "" {
			t.Errorf("after 7s without refusals: %+v", v)
		}
		c.wg.Wait()
	})
}

// Little memory makes a node unready, before there is none.
func TestMemory(t *testing.T) {
	g, err := New(Config{})
	must(t, err)
	// The test looks itself.
	g.Close()
	look := func(part float64) api.OverloadView {
		g.cfg.Memory = int64(float64(memory.Used()) / part)
		return g.judge(time.Second, true)
	}
	for _, step := range []struct {
		part float64
		want bool
	}{{0.5, false}, {0.85, false}, {0.95, true}, {0.85, true}, {0.5, false}, {0.85, false}} {
		if v := look(step.part); v.Overloaded != step.want || v.MemoryFull != step.want || step.want && (!strings.Contains(v.Why, "memory") || v.MemoryBytes == 0) {
			t.Errorf("at %v of the memory: %+v", step.part, v)
		}
	}
}

// The count is exact whatever comes at once, and what was refused leaves nothing
// behind.
func TestPlaces(t *testing.T) {
	g, err := New(Config{Max: 100, Min: 100})
	must(t, err)
	defer g.Close()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 500 {
				mark, ok := g.Enter()
				if under := int64(g.state.Load() & inFlightMask); under > 100+64 {
					t.Errorf("%d under way", under)
				}
				if ok {
					g.Leave(mark)
				}
			}
		})
	}
	all.Wait()
	if under := g.state.Load() & inFlightMask; under != 0 {
		t.Errorf("%d are under way for ever", under)
	}
	var marks []int64
	for !g.Full() {
		mark, ok := g.Enter()
		if !ok {
			t.Fatal("refused before it is full")
		}
		marks = append(marks, mark)
	}
	if _, ok := g.Enter(); ok || len(marks) != 100 {
		t.Errorf("let in beyond %d", len(marks))
	}
	for _, mark := range marks {
		g.Leave(mark)
	}
	if g.Full() {
		t.Error("it is full of nobody")
	}
}

func TestConfigListsEveryFault(t *testing.T) {
	_, err := New(Config{Target: time.Millisecond, Max: maxInFlight + 1, Min: -1, After: time.Millisecond, Memory: -1})
	if !errors.Is(err, dibs.ErrInvalid) {
		t.Fatal(err)
	}
	for _, field := range []string{"Target", "Max", "Min", "After", "Memory"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}

func BenchmarkEnterLeave(b *testing.B) {
	g, err := New(Config{})
	must(b, err)
	defer g.Close()
	b.ReportAllocs()
	for b.Loop() {
		mark, _ := g.Enter()
		g.Leave(mark)
	}
}

package simulation

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs/internal/wait"
)

// world is one run: nodes, servers, a database, and what goes wrong on the way between
// them. People, what harms them, and the judge are made of it, and act on it.
//
// mu guards what stands below it and is never held while anything waits. A goroutine
// that the run does not wait for otherwise is one of running, which the end waits for.
type world struct {
	*scene
	plan  *plan
	fates *chances
	base  *base
	sites []*site
	ctx   context.Context

	mu sync.Mutex
	// master is the server that clients are sent to; replica is a copy of its
	// memory, some time old.
	master  *server
	servers []*server
	replica *memory
	// waking are the requests that lie in the buffers of frozen servers.
	waking map[*server][]func()
	// restored says that the ledger has gone back to a dump, and nobody has decided to
	// go on from there yet.
	restored bool
	failures []string

	// calm is set while nothing goes wrong on the wires, over once the run ends.
	calm, over atomic.Bool
	noLedger   atomic.Bool
	// slow is how long the ledger takes at most, in ns.
	slow atomic.Int64
	// inFlight counts the calls that are carried out after their caller gave up.
	inFlight atomic.Int64
	running  sync.WaitGroup
}

// newWorld makes the surroundings of a run, whose ledger is in b. It has to be called
// in the bubble.
func newWorld(ctx context.Context, b *base, seed uint64, planted Planted) (*world, error) {
	w := &world{
		scene: newScene(planted), plan: newPlan(seed), fates: newChances(seed), base: b, ctx: ctx, waking: map[*server][]func(){},
	}
	if err := b.renew(w.now); err != nil {
		return nil, err
	}
	w.master = w.newServer(newMemory())
	w.replica = newMemory()
	for i, skew := range w.plan.skews {
		w.sites = append(w.sites, &site{w: w, name: fmt.Sprintf("node%d", i+1), skew: skew, at: w.master})
	}
	return w, nil
}

// newServer starts a server with a memory and a clock of its own.
func (w *world) newServer(mem *memory) *server {
	d := newDice(w.plan.seed, fmt.Sprint("server ", len(w.servers)))
	v := &server{scene: w.scene, name: fmt.Sprintf("redis%d", len(w.servers)+1), skew: d.between(0, 3*time.Second) - 1500*time.Millisecond, mem: mem}
	v.run = w.newRun(v.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers = append(w.servers, v)
	return v
}

// broken notes that a promise is broken, or that the run itself is.
func (w *world) broken(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	w.story.tell("BROKEN: %s", what)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, what)
}

// isBroken reports whether anything is.
func (w *world) isBroken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failures) > 0
}

// slowLedger is how long the ledger takes now.
func (w *world) slowLedger() time.Duration {
	most := time.Duration(w.slow.Load())
	if most == 0 {
		return 0
	}
	w.fates.Lock()
	defer w.fates.Unlock()
	return w.fates.of("slow").upTo(most)
}

// onWaking keeps a request for when a frozen server wakes up.
// They run in the order in which they were sent.
func (w *world) onWaking(v *server, run func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waking[v] = append(w.waking[v], run)
}

// wake wakes a frozen server, which carries out what it was sent.
func (w *world) wake(v *server) {
	w.mu.Lock()
	waiting := w.waking[v]
	delete(w.waking, v)
	w.mu.Unlock()
	v.set(&v.frozen, false)
	for _, run := range waiting {
		run()
	}
}

// current returns the master.
func (w *world) current() *server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.master
}

// spend lets virtual time pass.
func (w *world) spend(d time.Duration) { <-time.After(d) }

// idle waits; false when ctx ended first.
func (w *world) idle(ctx context.Context, d time.Duration) bool { return wait.Sleep(ctx, d) }

// after does something later, unless everything has been healed by then.
func (w *world) after(d time.Duration, do func()) {
	w.running.Go(func() {
		<-time.After(d)
		if !w.calm.Load() {
			do()
		}
	})
}

// later runs something after a while, whatever became of the node that wanted it.
func (w *world) later(after time.Duration, run func()) {
	w.inFlight.Add(1)
	w.running.Go(func() {
		defer w.inFlight.Add(-1)
		<-time.After(after)
		run()
	})
}

// wentBack reports whether the ledger has gone back to a dump since somebody decided to
// go on from one.
func (w *world) wentBack() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.restored
}

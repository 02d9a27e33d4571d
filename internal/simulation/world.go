package simulation

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/idgen"
)

// world is one run: nodes, servers, a database, people, and what goes wrong.
type world struct {
	plan    *plan
	planted Planted
	story   *story
	book    *book
	fates   struct{ chances }
	base    *base
	ids     dibs.ClaimIDs
	sites   []*site
	ctx     context.Context

	mu sync.Mutex
	// master is the server that clients are sent to; replica is a copy of its
	// memory, some time old.
	master  *server
	servers []*server
	replica *memory
	runs    int
	leap    time.Duration
	// waking are the requests that lie in the buffers of frozen servers.
	waking map[*server][]func()
	// restored is when the ledger went back to a dump, and dumped when that was made.
	restored, dumped time.Time
	failures         []string

	// calm is set while nothing goes wrong on the wires, over once the run ends.
	calm, over atomic.Bool
	noLedger   atomic.Bool
	// slow is how long the ledger takes at most, in ns.
	slow     atomic.Int64
	slowDice chances
	inFlight atomic.Int64
	running  sync.WaitGroup
}

// newWorld makes the surroundings of a run in a folder. It has to be called in
// the bubble.
func newWorld(ctx context.Context, dir string, seed uint64, planted Planted) (*world, error) {
	w := &world{
		plan: newPlan(seed), planted: planted, story: newStory(), book: newBook(), ctx: ctx, waking: map[*server][]func(){},
		slowDice: chances{seed: seed, dice: map[string]*dice{}},
	}
	w.fates.seed, w.fates.dice = seed, map[string]*dice{}
	var err error
	if w.base, err = openBase(ctx, dir, w.now); err != nil {
		return nil, err
	}
	if w.ids, err = idgen.ForClaims(ctx, w.base.ledger); err != nil {
		return nil, err
	}
	w.master = w.newServer(newMemory())
	w.replica = newMemory()
	for i, skew := range w.plan.skews {
		w.sites = append(w.sites, &site{w: w, name: fmt.Sprintf("node%d", i+1), skew: skew, at: w.master})
	}
	return w, nil
}

// now is the true time.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.leap)
}

// newRun names a run of a server.
func (w *world) newRun(server string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs++
	return fmt.Sprintf("%s/%d", server, w.runs)
}

// newServer starts a server with a memory and a clock of its own.
func (w *world) newServer(mem *memory) *server {
	d := newDice(w.plan.seed, fmt.Sprint("server ", len(w.servers)))
	v := &server{w: w, name: fmt.Sprintf("redis%d", len(w.servers)+1), skew: d.between(0, 3*time.Second) - 1500*time.Millisecond, mem: mem}
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
	w.slowDice.Lock()
	defer w.slowDice.Unlock()
	return w.slowDice.of("slow").upTo(most)
}

// onWaking keeps a request for when a frozen server wakes up.
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

// spend lets virtual time pass, or less when the run is broken.
func (w *world) spend(d time.Duration) { <-time.After(d) }

// run is the run of a seed.
func (w *world) run() {
	for _, s := range w.sites {
		s.begin()
	}
	w.calm.Store(true)
	w.publish()
	for n := range w.plan.rounds {
		if w.isBroken() {
			break
		}
		w.story.tell("round %d", n+1)
		w.round(n)
		w.heal()
		w.judge()
	}
	if !w.isBroken() {
		w.finish()
	}
	w.end()
}

// round lets people act while things go wrong.
func (w *world) round(n int) {
	w.calm.Store(false)
	ctx, cancel := context.WithTimeout(w.ctx, w.plan.round)
	defer cancel()
	var people sync.WaitGroup
	for i := range w.plan.users {
		people.Go(func() { w.newUser(n, i).act(ctx) })
	}
	people.Go(func() { w.newAdmin(n).act(ctx) })
	people.Go(func() { w.replicate(ctx, n) })
	people.Go(func() { w.harm(ctx, n) })
	people.Wait()
}

// end stops all that runs.
func (w *world) end() {
	w.over.Store(true)
	w.calm.Store(true)
	for _, s := range w.sites {
		s.crash()
	}
	w.running.Wait()
	if err := w.base.ledger.Close(); err != nil {
		w.broken("the ledger cannot be closed: %v", err)
	}
}

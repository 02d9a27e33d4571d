package room

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// gatherMost is the most calls that are carried out together, and gatherQueue
	// the most that wait.
	gatherMost  = 1024
	gatherQueue = 1 << 17
	// gatherTime is how long one of them may take.
	gatherTime = 5 * time.Second
)

// errRoomBusy refuses callers beyond gatherQueue at once, with no effect: a longer
// queue would not be answered within their patience.
var errRoomBusy = &dibs.Error{
	Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: time.Second,
	Detail: dibs.Text{EN: "too many people ask at once", ZH: "请求人数过多"},
}

// gather collects the calls that come while one is under way, and carries them
// out together by the next. Alone, a call waits for nothing.
//
// mu guards what stands below it and is not held while calls are carried out. flying
// is at most flights. A call is in the queue or in one batch, and its done is closed
// once.
type gather[I, O any] struct {
	// do carries calls out, in order; its error is everybody's.
	do func(ctx context.Context, in []I) ([]O, error)
	// flights is how many may be under way at once.
	flights int

	mu      sync.Mutex
	queue   []*asked[I, O]
	flying  int
	running *sync.WaitGroup
}

// asked is one call.
type asked[I, O any] struct {
	in   I
	out  O
	err  error
	done chan struct{}
}

// call is carried out with others. When ctx ends first, it may be all the same.
func (g *gather[I, O]) call(ctx context.Context, in I) (out O, err error) {
	a := &asked[I, O]{in: in, done: make(chan struct{})}
	g.mu.Lock()
	if len(g.queue) >= gatherQueue {
		g.mu.Unlock()
		return out, errRoomBusy
	}
	g.queue = append(g.queue, a)
	if g.flying < g.flights {
		g.flying++
		g.running.Go(g.fly)
	}
	g.mu.Unlock()
	select {
	case <-a.done:
		return a.out, a.err
	case <-ctx.Done():
		return out, dibs.Unavail(dibs.EffectUnknown, ctx.Err())
	}
}

// fly carries calls out until none waits.
func (g *gather[I, O]) fly() {
	for {
		// Those who are ready now come along: no timer, and nothing to wait for when
		// there are none.
		runtime.Gosched()
		g.mu.Lock()
		n := min(len(g.queue), gatherMost)
		if n == 0 {
			g.flying--
			g.mu.Unlock()
			return
		}
		calls := g.queue[:n:n]
		g.queue = g.queue[n:]
		g.mu.Unlock()
		g.carryOut(calls)
	}
}

// The context is not a caller's: one caller who leaves must not fail the others.
func (g *gather[I, O]) carryOut(calls []*asked[I, O]) {
	ctx, cancel := context.WithTimeout(context.Background(), gatherTime)
	defer cancel()
	in := make([]I, len(calls))
	for i, a := range calls {
		in[i] = a.in
	}
	out, err := g.do(ctx, in)
	for i, a := range calls {
		if a.err = err; err == nil {
			a.out = out[i]
		}
		close(a.done)
	}
}

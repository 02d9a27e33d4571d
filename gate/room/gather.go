package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/batch"
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

// gather carries the calls that come while one is under way out together.
type gather[I, O any] struct {
	// do carries calls out, in order; its error is everybody's.
	do    func(ctx context.Context, in []I) ([]O, error)
	calls batch.Batcher[*asked[I, O]]
}

// asked is one call.
type asked[I, O any] struct {
	in  I
	out O
	err error
}

// begin sets what carries calls out, and who waits for its end.
func (g *gather[I, O]) begin(running *sync.WaitGroup, do func(ctx context.Context, in []I) ([]O, error)) {
	g.do, g.calls.Queue, g.calls.Running = do, gatherQueue, running
}

// call is carried out with others. When ctx ends first, it may be all the same.
func (g *gather[I, O]) call(ctx context.Context, in I) (out O, err error) {
	a := &asked[I, O]{in: in}
	switch err := g.calls.Do(ctx, a, gatherMost, g.carryOut); {
	case errors.Is(err, batch.ErrFull):
		return out, errRoomBusy
	case err != nil:
		return out, dibs.Unavail(dibs.EffectUnknown, err)
	}
	return a.out, a.err
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
	}
}

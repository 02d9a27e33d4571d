package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/batch"
	"github.com/dibs-dev/dibs/internal/faults"
)

const (
	// batchMost is the most calls that are carried out together, and batchQueue
	// the most that wait.
	batchMost  = 1024
	batchQueue = 1 << 17
	// batchTime is how long one of them may take.
	batchTime = 5 * time.Second
)

// errRoomBusy refuses callers beyond batchQueue at once, with no effect: a longer
// queue would not be answered within their patience.
var errRoomBusy = faults.Busy(time.Second, dibs.Text{EN: "too many people ask at once", ZH: "请求人数过多"})

// batcher carries the calls that come while one is under way out together.
type batcher[I, O any] struct {
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
func (g *batcher[I, O]) begin(running *sync.WaitGroup, do func(ctx context.Context, in []I) ([]O, error)) {
	g.do, g.calls.Queue, g.calls.Running = do, batchQueue, running
}

// call is carried out with others. When ctx ends first, it may be all the same.
func (g *batcher[I, O]) call(ctx context.Context, in I) (out O, err error) {
	a := &asked[I, O]{in: in}
	switch err := g.calls.Do(ctx, a, batchMost, g.carryOut); {
	case errors.Is(err, batch.ErrFull):
		return out, errRoomBusy
	case err != nil:
		return out, dibs.Unavail(dibs.EffectUnknown, err)
	}
	return a.out, a.err
}

// The context is not a caller's: one caller who leaves must not fail the others.
func (g *batcher[I, O]) carryOut(calls []*asked[I, O]) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTime)
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

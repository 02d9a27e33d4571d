// Package batch does together what is asked for one by one: a ledger does much in
// one transaction for little more than the price of one piece.
package batch

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// Patience bounds one transaction that several callers wait for.
const Patience = 30 * time.Second

// ErrFull refuses a call that would have waited behind Batcher.Queue others.
var ErrFull = errors.New("batch: too many calls wait")

// Batcher collects the calls that arrive while a batch is running and runs them as
// the next batch; alone, a call waits for nothing. Its zero value is ready; it is safe
// for concurrent use.
//
// mu guards what stands below it, and is not held while a batch runs. A call is in
// waiting or in one batch, and its done is closed once.
type Batcher[T any] struct {
	// Queue bounds the calls that wait for a batch to end; 0 sets no bound.
	Queue int
	// Running counts the goroutine that runs batches, for owners that wait for its end;
	// nil for nobody. Both are set before the first call.
	Running *sync.WaitGroup

	mu      sync.Mutex
	waiting []call[T]
	// running says that a goroutine runs batches, and takes what waits next.
	running bool
}

// call is one caller's work. done is closed after it was done.
type call[T any] struct {
	work T
	done chan struct{}
}

// Do returns after run has done work, in a batch of at most size pieces, in the
// order of the calls. When ctx ends first, Do returns its error, and the work may be
// done all the same. ErrFull has no effect. Every caller passes the same run.
func (b *Batcher[T]) Do(ctx context.Context, work T, size int, run func([]T)) error {
	c := call[T]{work, make(chan struct{})}
	b.mu.Lock()
	if b.Queue > 0 && len(b.waiting) >= b.Queue {
		b.mu.Unlock()
		return ErrFull
	}
	b.waiting = append(b.waiting, c)
	if first := !b.running; first && b.Running != nil {
		b.Running.Go(func() { b.runAll(size, run) })
	} else if first {
		go b.runAll(size, run)
	}
	b.running = true
	b.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runAll runs batches until no call waits.
func (b *Batcher[T]) runAll(size int, run func([]T)) {
	for {
		// Those who are ready now come along: no timer, and nothing to wait for when there
		// are none.
		runtime.Gosched()
		b.mu.Lock()
		n := min(len(b.waiting), size)
		next := b.waiting[:n:n]
		b.waiting = b.waiting[n:]
		if n == 0 {
			b.waiting, b.running = nil, false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		works := make([]T, n)
		for i := range next {
			works[i] = next[i].work
		}
		run(works)
		for i := range next {
			close(next[i].done)
		}
	}
}

// Package batch does together what is asked for one by one: a ledger does much in
// one transaction for little more than the price of one piece.
package batch

import (
	"context"
	"sync"
	"time"
)

// Patience bounds one transaction that several callers wait for.
const Patience = 30 * time.Second

// Batcher collects the calls that arrive while a batch is running and runs them as
// the next batch. Its zero value is ready; it is safe for concurrent use.
type Batcher[T any] struct {
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
// done all the same. Every caller passes the same run.
func (b *Batcher[T]) Do(ctx context.Context, work T, size int, run func([]T)) error {
	c := call[T]{work, make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	first := !b.running
	b.running = true
	b.mu.Unlock()
	if first {
		go b.runAll(size, run)
	}
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

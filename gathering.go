package dibs

import (
	"context"
	"sync"
)

// gathering has work done together that is asked for while other work is being
// done: the ledger does much in one transaction for little more than the price of
// one piece. Its zero value is ready.
type gathering[T any] struct {
	mu      sync.Mutex
	waiting []gathered[T]
	// busy says that somebody does work and takes what waits next.
	busy bool
}

// gathered is a piece of work, and what is closed when it is done.
type gathered[T any] struct {
	work T
	done chan struct{}
}

// do returns when a piece of work is done, beside others and at most so many
// together, or the context's error, when it may be done all the same. Everybody
// passes the same together.
func (g *gathering[T]) do(ctx context.Context, work T, most int, together func([]T)) error {
	w := gathered[T]{work, make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	first := !g.busy
	g.busy = true
	g.mu.Unlock()
	if first {
		go g.work(most, together)
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work does what waits until nothing does.
func (g *gathering[T]) work(most int, together func([]T)) {
	for {
		g.mu.Lock()
		n := min(len(g.waiting), most)
		batch := g.waiting[:n:n]
		g.waiting = g.waiting[n:]
		if n == 0 {
			g.waiting, g.busy = nil, false
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		works := make([]T, n)
		for i := range batch {
			works[i] = batch[i].work
		}
		together(works)
		for i := range batch {
			close(batch[i].done)
		}
	}
}

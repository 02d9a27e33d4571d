package lock

import "sync"

// calls are what goes on behind whoever does not wait for it.
//
// mu guards ended. Nothing starts after end has begun, so that end waits for a number
// that only falls.
type calls struct {
	mu    sync.Mutex
	ended bool
	all   sync.WaitGroup
}

// start runs do, unless it is too late.
func (c *calls) start(do func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.all.Go(do)
	return true
}

// end lets nothing begin any more, and waits for what has begun.
func (c *calls) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.all.Wait()
}

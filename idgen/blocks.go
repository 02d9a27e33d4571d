package idgen

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// block is a run of numbers that one process has for itself.
type block struct {
	// next is the number that was given last; end is the last of the block.
	next atomic.Int64
	end  int64
	// name is the counter that it was taken from, and until when, in seconds, it
	// may be used.
	name  string
	from  int64
	until int64
}

// give returns the next number, or 0 at the end. Calls beyond the end cannot make the
// number run over: a new block is there long before.
func (b *block) give() int64 {
	if n := b.next.Add(1); n <= b.end {
		return n
	}
	return 0
}

// Sequence gives numbers that rise within a process and are unique among all
// (the database's sequence): it takes them from a Counter in blocks,
// so that a number costs no round trip. Numbers that a process has not used when it
// ends are a gap. Safe for concurrent use.
//
// Numbers are taken from the block in now without a lock. mu is held to put a new block
// there, also while the Counter is asked, so that a used block is replaced once.
type Sequence struct {
	counter Counter
	name    string
	size    int64
	mu      sync.Mutex
	now     atomic.Pointer[block]
}

// maxBlock is the most that is taken at once.
const maxBlock = 1 << 24

// NewSequence counts under a name, size numbers a block; 1 makes every number
// a round trip, and leaves no gaps.
func NewSequence(c Counter, name string, size int64) (*Sequence, error) {
	if size < 1 || size > maxBlock {
		return nil, fmt.Errorf("idgen: a block has 1 to %d numbers, not %d", maxBlock, size)
	}
	s := &Sequence{counter: c, name: name, size: size}
	s.now.Store(&block{})
	return s, nil
}

// Next returns a number above 0.
func (s *Sequence) Next(ctx context.Context) (int64, error) {
	for {
		b := s.now.Load()
		if n := b.give(); n > 0 {
			return n, nil
		}
		if err := s.lease(ctx, b); err != nil {
			return 0, err
		}
	}
}

// lease takes a block in place of a used one, once for all who wait.
func (s *Sequence) lease(ctx context.Context, used *block) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Load() != used {
		return nil
	}
	last, err := s.counter.Take(ctx, s.name, s.size)
	if err != nil {
		return err
	}
	b := &block{end: last}
	b.next.Store(last - s.size)
	s.now.Store(b)
	return nil
}

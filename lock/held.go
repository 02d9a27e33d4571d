package lock

import (
	"context"
	"errors"
	"sync"
)

// held is the part of Held that all lockers share.
//
// ctx ends once, with the first cause: ErrLost by whoever keeps the lock, ErrReleased
// by Unlock. once makes the lock be given back one time, and all callers of Unlock
// get its error. giveBack is set before anybody else has the held.
type held struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	fence  uint64
	once   sync.Once
	err    error
	// giveBack gives the lock back.
	giveBack func(ctx context.Context) error
}

func newHeld(ctx context.Context, fence uint64) *held {
	h := &held{fence: fence}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	return h
}

// Context implements Held.
func (h *held) Context() context.Context { return h.ctx }

// Fence implements Held.
func (h *held) Fence() uint64 { return h.fence }

// lost ends the context.
func (h *held) lost(why error) { h.cancel(errors.Join(ErrLost, why)) }

// Unlock implements Held.
func (h *held) Unlock(ctx context.Context) error {
	h.once.Do(func() {
		lost := errors.Is(context.Cause(h.ctx), ErrLost)
		h.cancel(ErrReleased)
		// A context that ended is no reason to keep the lock.
		h.err = h.giveBack(context.WithoutCancel(ctx))
		if lost {
			h.err = ErrLost
		}
	})
	return h.err
}

// owners makes a locker reentrant: it counts what each owner holds.
//
// mu guards the map and every count in it, and is not held while a lock is taken. An
// entry is in the map from the first Lock of an owner until the last share was given
// back or the taking failed.
type owners struct {
	mu   sync.Mutex
	held map[ownedName]*owned
}

type ownedName struct {
	name, owner string
	shared      bool
}

// owned is a lock of a named owner.
type owned struct {
	Held
	count int
	// ready is closed when the first Lock has come back; err is how.
	ready chan struct{}
	err   error
}

// lock takes a lock for an owner by take, unless the owner has it.
func (o *owners) lock(ctx context.Context, name string, opt Options, take func() (Held, error)) (Held, error) {
	key := ownedName{name, opt.Owner, opt.Shared}
	o.mu.Lock()
	if o.held == nil {
		o.held = map[ownedName]*owned{}
	}
	if h := o.held[key]; h != nil {
		h.count++
		o.mu.Unlock()
		return o.join(ctx, key, h)
	}
	h := &owned{count: 1, ready: make(chan struct{})}
	o.held[key] = h
	o.mu.Unlock()
	h.Held, h.err = take()
	close(h.ready)
	if h.err != nil {
		o.leave(key, h)
		return nil, h.err
	}
	return &share{owned: h, all: o, key: key}, nil
}

// join waits for the first Lock of the owner.
func (o *owners) join(ctx context.Context, key ownedName, h *owned) (Held, error) {
	select {
	case <-h.ready:
	case <-ctx.Done():
		if o.leave(key, h) {
			// The first one gave its share back meanwhile.
			<-h.ready
			if h.err == nil {
				return nil, errors.Join(ctx.Err(), h.Unlock(ctx))
			}
		}
		return nil, ctx.Err()
	}
	if h.err != nil {
		o.leave(key, h)
		return nil, h.err
	}
	return &share{owned: h, all: o, key: key}, nil
}

// leave takes one from the count, and says whether it was the last.
// A later Lock of the same owner may have made another entry by then.
func (o *owners) leave(key ownedName, h *owned) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	h.count--
	if h.count > 0 {
		return false
	}
	if o.held[key] == h {
		delete(o.held, key)
	}
	return true
}

// share is one of the times that an owner has a lock.
type share struct {
	*owned
	all  *owners
	key  ownedName
	once sync.Once
	err  error
}

// Unlock implements Held.
func (s *share) Unlock(ctx context.Context) error {
	s.once.Do(func() {
		if s.all.leave(s.key, s.owned) {
			s.err = s.owned.Unlock(ctx)
		} else if errors.Is(context.Cause(s.Context()), ErrLost) {
			s.err = ErrLost
		}
	})
	return s.err
}

package lock

import (
	"context"
	"errors"
	"sync"
	"time"
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

// taker takes a lock from its store, without a look at owners.
type taker func(ctx context.Context, name string, o Options) (Held, error)

// lock checks what is asked and takes the lock by take. An owner that has it already gets one
// call more of it. While the owner's first call waits, later ones wait for it, for as long as their own Options say. When it comes
// back without the lock, the next of them calls take.
func (o *owners) lock(ctx context.Context, name string, opt Options, take taker) (Held, error) {
	if err := check(name, &opt); err != nil {
		return nil, err
	}
	if opt.Owner == "" {
		return take(ctx, name, opt)
	}
	key := ownedName{name, opt.Owner, opt.Shared}
	begun := time.Now()
	bounded, cancel, busy := waiting(ctx, &opt)
	defer cancel()
	for {
		h, first := o.enter(key)
		if first {
			left := opt
			if left.Wait > 0 {
				left.Wait = max(1, opt.Wait-time.Since(begun))
			}
			h.Held, h.err = take(ctx, name, left)
			if h.err != nil {
				o.leave(key, h)
				o.forget(key, h)
			}
			close(h.ready)
			if h.err != nil {
				return nil, h.err
			}
			return &share{owned: h, all: o, key: key}, nil
		}
		held, err := o.join(bounded, key, h, opt.Wait == NoWait)
		if held != nil || err != nil {
			return held, busy(err)
		}
	}
}

// enter counts one more of an owner, and says whether it is the first.
func (o *owners) enter(key ownedName) (h *owned, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h = o.held[key]; h != nil {
		h.count++
		return h, false
	}
	if o.held == nil {
		o.held = map[ownedName]*owned{}
	}
	h = &owned{count: 1, ready: make(chan struct{})}
	o.held[key] = h
	return h, true
}

// forget drops an entry whose Lock came back without the lock, so that the next one begins anew.
func (o *owners) forget(key ownedName, h *owned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held[key] == h {
		delete(o.held, key)
	}
}

// join waits for the first Lock of the owner, or, once, only looks whether it has come
// back. Neither a lock nor an error means that it came back without the lock.
func (o *owners) join(ctx context.Context, key ownedName, h *owned, once bool) (Held, error) {
	var err error
	select {
	case <-h.ready:
	default:
		if once {
			err = ErrBusy
			break
		}
		select {
		case <-h.ready:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		if o.leave(key, h) {
			// The first one gave its share back meanwhile.
			<-h.ready
			if h.err == nil {
				return nil, errors.Join(err, h.Unlock(ctx))
			}
		}
		return nil, err
	}
	if h.err != nil {
		o.leave(key, h)
		return nil, nil //nolint:nilnil // the caller asks by itself
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

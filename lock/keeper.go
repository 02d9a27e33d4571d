package lock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// keeper renews a lock while it is held, and ends its context when that cannot
// be done before the lifetime is over.
//
// mu guards what stands below it and is not held during a renewal. expires only moves
// forward. After stopped is set, no timer does anything.
type keeper struct {
	h     *held
	life  time.Duration
	renew func(ctx context.Context) (still bool, err error)

	mu      sync.Mutex
	expires time.Time
	next    *time.Timer
	end     *time.Timer
	stopped bool
}

// drift is the part of a lifetime that is not trusted: clocks do not run alike.
// A fiftieth is 2 %, far more than the clocks of two machines differ in their speed.
const drift = 50

// newKeeper begins to keep a lock that was taken at a time, measured before it
// was asked for.
// The lifetime counts from before the request: the server cannot have begun it
// earlier.
func newKeeper(h *held, life time.Duration, begun time.Time, renew func(ctx context.Context) (bool, error)) *keeper {
	k := &keeper{h: h, life: life, renew: renew}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expires = begun.Add(life - life/drift)
	k.end = time.AfterFunc(time.Until(k.expires), k.over)
	// One renewal may fail, and another one still comes in time.
	k.next = time.AfterFunc(life/3, k.again)
	return k
}

// over ends the context: the lifetime is over, and no renewal has come back.
func (k *keeper) over() {
	k.mu.Lock()
	late := !k.stopped && !time.Now().Before(k.expires)
	k.mu.Unlock()
	if late {
		k.h.lost(errors.New("lock: it could not be renewed in time"))
		k.stop()
	}
}

// again renews, and plans the next time: sooner when this one failed.
func (k *keeper) again() {
	k.mu.Lock()
	stopped, expires := k.stopped, k.expires
	k.mu.Unlock()
	if stopped {
		return
	}
	begun := time.Now()
	ctx, cancel := context.WithDeadline(k.h.ctx, expires)
	still, err := k.renew(ctx)
	cancel()
	if err == nil && !still {
		k.mu.Lock()
		stopped = k.stopped
		k.mu.Unlock()
		if !stopped {
			k.h.lost(errors.New("lock: somebody else has it"))
			k.stop()
		}
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	after := k.life / 10
	if err == nil {
		k.expires = begun.Add(k.life - k.life/drift)
		k.end.Reset(time.Until(k.expires))
		after = k.life / 3
	}
	k.next.Reset(after)
}

// stop ends the keeping.
// It may be called twice. A renewal under way goes on, and its answer changes
// nothing.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	k.next.Stop()
	k.end.Stop()
}

// openLocks are what a locker holds, to be given up at its end. mu guards held.
type openLocks struct {
	mu   sync.Mutex
	held map[*held]struct{}
}

// keep renews a lock that was taken, until it is given back.
func (o *openLocks) keep(
	h *held, life time.Duration, begun time.Time,
	renew func(context.Context) (bool, error), giveBack func(context.Context) error,
) *held {
	k := newKeeper(h, life, begun, renew)
	o.add(h)
	h.giveBack = func(ctx context.Context) error {
		o.remove(h)
		k.stop()
		return giveBack(ctx)
	}
	return h
}

func (o *openLocks) add(h *held) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held == nil {
		o.held = map[*held]struct{}{}
	}
	o.held[h] = struct{}{}
}

func (o *openLocks) remove(h *held) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.held, h)
}

// loseAll tells the holders of all locks that they are lost.
func (o *openLocks) loseAll(why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for h := range o.held {
		h.lost(why)
	}
}

// closeAll gives everything back, all at once: a server that does not answer
// takes its time for one lock and not for each.
func (o *openLocks) closeAll() error {
	o.mu.Lock()
	var all []*held
	for h := range o.held {
		all = append(all, h)
	}
	o.mu.Unlock()
	errs := make([]error, len(all))
	var ends sync.WaitGroup
	for i, h := range all {
		ends.Go(func() {
			if err := h.Unlock(context.Background()); !errors.Is(err, ErrLost) {
				errs[i] = err
			}
		})
	}
	ends.Wait()
	return errors.Join(errs...)
}

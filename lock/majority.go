package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Majority gives locks that are held on more than half of several Redis servers
// that know nothing of each other (row 000.12): it goes on while a minority of
// them is lost. It has the order of arrival on none of them: who fails to get
// most of them gives back what he got, and tries again after a random pause.
type Majority struct {
	all    []*Redis
	owners owners
	open   openLocks
}

var _ Locker = (*Majority)(nil)

// OpenMajority connects to all servers, which have to answer then; later, those
// that are lost are tried again at each lock. An odd number is best, three at
// least.
func OpenMajority(cfg RedisConfig, urls ...string) (*Majority, error) {
	if len(urls) < 3 {
		return nil, fmt.Errorf("lock: a majority needs three servers or more, not %d", len(urls))
	}
	m := &Majority{}
	for _, u := range urls {
		cfg.URL = u
		r, err := OpenRedis(cfg)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock: opening a majority: %w", err), m.Close())
		}
		m.all = append(m.all, r)
	}
	return m, nil
}

// Close implements Locker.
func (m *Majority) Close() error {
	errs := []error{m.open.closeAll()}
	for _, r := range m.all {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Lock implements Locker.
func (m *Majority) Lock(ctx context.Context, name string, o Options) (Held, error) {
	if err := check(name, &o); err != nil {
		return nil, err
	}
	take := func() (Held, error) { return m.take(ctx, name, o) }
	if o.Owner != "" {
		return m.owners.lock(ctx, name, o, take)
	}
	return take()
}

// most is how many servers decide.
func (m *Majority) most() int { return len(m.all)/2 + 1 }

// The pauses between two tries.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = 40 * time.Millisecond
)

func (m *Majority) take(ctx context.Context, name string, o Options) (Held, error) {
	bounded, cancel, busy := waiting(ctx, &o)
	defer cancel()
	for {
		h, err := m.try(ctx, bounded, name, o.Shared)
		if h != nil {
			return h, nil
		}
		if o.Wait == NoWait {
			if err == nil {
				err = ErrBusy
			}
			return nil, err
		}
		select {
		case <-time.After(leastPause + rand.N(mostPause-leastPause)):
		case <-bounded.Done():
			return nil, busy(errors.Join(bounded.Err(), err))
		}
	}
}

// try takes the lock on most servers, or on none; h is nil without an error
// when somebody else has it.
func (m *Majority) try(ctx, bounded context.Context, name string, shared bool) (h Held, err error) {
	life := m.all[0].cfg.Lifetime
	begun := time.Now()
	attempts := make([]*attempt, len(m.all))
	for i, r := range m.all {
		attempts[i] = r.attempt(name, shared)
	}
	// A server that does not answer must not use the lifetime up.
	short, cancel := context.WithTimeout(bounded, life/4)
	fence := uint64(0)
	var mu sync.Mutex
	got, asked := m.each(attempts, func(a *attempt) (bool, error) {
		f, _, err := a.acquire(short, false)
		mu.Lock()
		defer mu.Unlock()
		fence = max(fence, f)
		return f > 0, err
	})
	cancel()
	if got >= m.most() {
		// Every later holder meets one of these servers: raised there, its fence
		// is higher than the highest of now.
		renew := m.renewAll(attempts, fence)
		keep, cancel := context.WithDeadline(context.WithoutCancel(ctx), begun.Add(life/2))
		still, err := renew(keep)
		cancel()
		if err == nil && still {
			return m.hold(ctx, attempts, fence, begun, life, renew), nil
		}
	}
	back, cancelBack := context.WithTimeout(context.Background(), life/4)
	defer cancelBack()
	// What cannot be given back ends with its lifetime.
	m.each(attempts, func(a *attempt) (bool, error) { return a.release(back, true) })
	if len(m.all)-asked >= m.most() {
		return nil, fmt.Errorf("lock: %d of %d servers do not answer", len(m.all)-asked, len(m.all))
	}
	return nil, nil
}

// each does something on all servers at once, and counts where it was so, and
// where there was an answer.
func (m *Majority) each(attempts []*attempt, do func(a *attempt) (bool, error)) (yes, answered int) {
	type result struct {
		yes bool
		err error
	}
	results := make(chan result, len(attempts))
	for _, a := range attempts {
		go func() {
			ok, err := do(a)
			results <- result{ok, err}
		}()
	}
	for range attempts {
		r := <-results
		if r.err == nil {
			answered++
			if r.yes {
				yes++
			}
		}
	}
	return yes, answered
}

// renewAll renews on all servers: it is still held when most say so, and lost
// when so many say no that most cannot.
func (m *Majority) renewAll(attempts []*attempt, fence uint64) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		yes, answered := m.each(attempts, func(a *attempt) (bool, error) { return a.renew(ctx, fence) })
		switch {
		case yes >= m.most():
			return true, nil
		case answered-yes > len(m.all)-m.most():
			return false, nil
		}
		return false, fmt.Errorf("lock: %d of %d servers renewed it", yes, len(m.all))
	}
}

func (m *Majority) hold(ctx context.Context, attempts []*attempt, fence uint64, begun time.Time, life time.Duration, renew func(context.Context) (bool, error)) Held {
	h := newHeld(ctx, fence)
	k := newKeeper(h, life, begun, renew)
	m.open.add(h)
	h.giveBack = func(ctx context.Context) error {
		m.open.remove(h)
		k.stop()
		ctx, cancel := context.WithTimeout(ctx, life)
		defer cancel()
		if was, _ := m.each(attempts, func(a *attempt) (bool, error) { return a.release(ctx, true) }); was < m.most() {
			return ErrLost
		}
		return nil
	}
	return h
}

package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Majority gives locks that are held on more than half of several Redis servers
// that know nothing of each other: it goes on while a minority of
// them is lost, or hangs. It has the order of arrival on none of them: a caller
// that fails to get most of them gives back what it got, and tries again after a
// random pause. A server that comes back having forgotten its locks counts as a new
// voice: let it stay away for a lifetime.
//
// It has no lock of its own: members, owners, open and calls lock themselves.
type Majority struct {
	life   time.Duration
	all    []*member
	owners owners
	open   openLocks
	// calls are answers that nobody waits for any longer.
	calls calls
}

var _ Locker = (*Majority)(nil)

// OpenMajority connects. Most of the servers have to answer; the others, and
// those that are lost later, are tried again at each lock. An odd number is
// best, three at least.
func OpenMajority(cfg RedisConfig, urls ...string) (*Majority, error) {
	if len(urls) < 3 {
		return nil, fmt.Errorf("lock: a majority needs three servers or more, not %d", len(urls))
	}
	if err := cfg.prepare(); err != nil {
		return nil, err
	}
	m := &Majority{life: cfg.Lifetime}
	var err error
	if m.all, err = openMembers(cfg, &m.calls, urls); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Close implements Locker.
func (m *Majority) Close() error {
	errs := []error{m.open.closeAll()}
	for _, s := range m.all {
		errs = append(errs, s.close())
	}
	m.calls.end()
	for _, s := range m.all {
		// One may have been reached meanwhile.
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Lock implements Locker.
func (m *Majority) Lock(ctx context.Context, name string, o Options) (Held, error) {
	return m.owners.lock(ctx, name, o, m.take)
}

// most is how many servers decide.
func (m *Majority) most() int { return len(m.all)/2 + 1 }

// The pauses between two tries.
// Random pauses keep two who fail together from failing together again.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = 40 * time.Millisecond
)

func (m *Majority) take(ctx context.Context, name string, o Options) (Held, error) {
	bounded, cancel, _ := waiting(ctx, &o)
	defer cancel()
	var why error
	for first := true; ; first = false {
		begun := time.Now()
		h, err := m.try(ctx, bounded, name, o.Shared)
		if h != nil {
			return h, nil
		}
		// A try that the context cut short says nothing, unless it is all there is.
		if first || ended(ctx) == nil || time.Since(begun) >= answerTime {
			why = err
		}
		if o.Wait == NoWait {
			return nil, refused(ctx, why)
		}
		select {
		case <-time.After(leastPause + rand.N(mostPause-leastPause)):
		case <-bounded.Done():
			return nil, refused(ctx, why)
		}
	}
}

// refused is the error of Lock after the last try; why is nil when somebody else
// has the lock.
func refused(ctx context.Context, why error) error {
	switch end := ended(ctx); {
	case end != nil && why != nil:
		return fmt.Errorf("%w: %w", end, why)
	case end != nil:
		return end
	case why != nil:
		return why
	}
	return ErrBusy
}

// answerTime is what servers have at least to answer a try, even when the wait of
// Options is over before: else a wait of a millisecond would find no server there.
const answerTime = 500 * time.Millisecond

// answering bounds a try.
func answering(ctx, bounded context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := bounded.Deadline()
	if !ok {
		return ctx, func() {}
	}
	if least := time.Now().Add(answerTime); deadline.Before(least) {
		deadline = least
	}
	return context.WithDeadline(ctx, deadline)
}

// ballot is one who takes a lock on all servers.
// It is used by one try, and by the holder that came of it; asked of each vote orders
// its giving back after its taking.
type ballot struct {
	m     *Majority
	votes []*vote
}

// vote is a ballot's part at one server.
type vote struct {
	// attempt is nil when the server could not be reached; err is why.
	*attempt
	err error
	// asked is closed when the server has answered, or will not.
	asked chan struct{}
}

func (m *Majority) ballot(name string, shared bool) *ballot {
	b := &ballot{m: m}
	for _, s := range m.all {
		v := &vote{asked: make(chan struct{})}
		var r *Redis
		if r, v.err = s.get(); r != nil {
			v.attempt = r.attempt(name, shared)
		}
		b.votes = append(b.votes, v)
	}
	return b
}

// count does something on all servers at once. It comes back when most said yes,
// or so many no, or so many failed, that most cannot any more: one that hangs is
// not waited for then. Where some said no and some failed, the others tell which
// it was; heard is how many have to have answered before a no counts.
func (b *ballot) count(heard int, do func(v *vote) (bool, error)) (yes, no, failed int) {
	type result struct {
		yes bool
		err error
	}
	results := make(chan result, len(b.votes))
	for _, v := range b.votes {
		one := func() {
			if v.err != nil {
				results <- result{err: v.err}
				return
			}
			ok, err := do(v)
			results <- result{ok, err}
		}
		if !b.m.calls.start(one) {
			results <- result{err: errClosed}
		}
	}
	spare := len(b.votes) - b.m.most()
	for left := len(b.votes); left > 0 && yes < b.m.most() && (no <= spare || yes+no < heard) && failed <= spare; left-- {
		switch r := <-results; {
		case r.err != nil:
			failed++
		case r.yes:
			yes++
		default:
			no++
		}
	}
	return yes, no, failed
}

// try takes the lock on most servers, or on none; h is nil without an error
// when somebody else has it.
func (m *Majority) try(ctx, bounded context.Context, name string, shared bool) (h Held, err error) {
	begun := time.Now()
	b := m.ballot(name, shared)
	// A server that answers after most have said yes gives its vote too: without it
	// the loss of any other would be the loss of the lock.
	voting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answer, cancelAnswer := answering(ctx, bounded)
	defer cancelAnswer()
	endVoting := context.AfterFunc(answer, cancel)
	defer func() {
		if endVoting() && h == nil {
			cancel()
		}
	}()
	got, failed, fence := b.acquire(voting)
	if got >= m.most() {
		// Every later holder meets one of these servers: raised there, its fence
		// is higher than the highest of now.
		keep, cancel := context.WithDeadline(context.WithoutCancel(ctx), begun.Add(m.life/2))
		defer cancel()
		still, err := b.renew(keep, fence)
		if err == nil && still {
			return m.hold(ctx, b, fence, begun), nil
		}
		if errors.Is(err, ErrNoMajority) {
			failed = len(m.all)
		}
	}
	// A lock that cannot be given back ends with its lifetime. The next try waits until
	// it is given back, but nobody waits for servers that do not answer.
	released := make(chan struct{})
	started := m.calls.start(func() {
		defer close(released)
		b.release(m.life / 4)
	})
	if failed > len(m.all)-m.most() || !started {
		return nil, ErrNoMajority
	}
	select {
	case <-released:
		return nil, nil
	case <-answer.Done():
		return nil, ErrNoMajority
	}
}

// acquire asks all, and returns the highest fence of those who answered in time.
func (b *ballot) acquire(ctx context.Context) (yes, failed int, fence uint64) {
	// Servers that answer late go on to write here.
	var highest atomic.Uint64
	yes, _, failed = b.count(b.m.most(), func(v *vote) (bool, error) {
		defer close(v.asked)
		// A server that does not answer must not use the lifetime up.
		short, cancel := context.WithTimeout(ctx, b.m.life/4)
		defer cancel()
		var f uint64
		err := twice(short, func() (err error) {
			f, _, err = v.acquire(short, false)
			return err
		})
		for before := highest.Load(); f > before && !highest.CompareAndSwap(before, f); {
			before = highest.Load()
		}
		return f > 0, err
	})
	return yes, failed, highest.Load()
}

// renew renews on all servers: it is still held when most say so, and lost when
// so many say no that most cannot.
func (b *ballot) renew(ctx context.Context, fence uint64) (bool, error) {
	yes, no, failed := b.count(0, func(v *vote) (bool, error) { return v.renew(ctx, fence) })
	switch {
	case yes >= b.m.most():
		return true, nil
	case no > len(b.votes)-b.m.most():
		return false, nil
	case failed > len(b.votes)-b.m.most():
		return false, fmt.Errorf("%w: %d of %d renewed it", ErrNoMajority, yes, len(b.votes))
	}
	return false, fmt.Errorf("lock: %d of %d servers renewed it", yes, len(b.votes))
}

// release gives back what was got, at each server after its answer: one that
// hangs may give it yet. It says on how many it was held.
func (b *ballot) release(patience time.Duration) (was int) {
	was, _, _ = b.count(0, func(v *vote) (bool, error) {
		<-v.asked
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var held bool
		err := twice(ctx, func() (err error) {
			held, err = v.release(ctx, true)
			return err
		})
		return held, err
	})
	return was
}

// twice calls once more after an error: a connection that broke while nothing used
// it is noticed by its first call.
func twice(ctx context.Context, call func() error) error {
	err := call()
	if err != nil && ctx.Err() == nil {
		err = call()
	}
	return err
}

func (m *Majority) hold(ctx context.Context, b *ballot, fence uint64, begun time.Time) Held {
	renew := func(ctx context.Context) (bool, error) { return b.renew(ctx, fence) }
	return m.open.keep(newHeld(ctx, fence), m.life, begun, renew, func(context.Context) error {
		if b.release(m.life) < m.most() {
			return ErrLost
		}
		return nil
	})
}

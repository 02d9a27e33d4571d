// Package lock holds locks that many processes share, on Redis, on several
// independent servers of it, on MySQL, PostgreSQL and ZooKeeper, behind one
// interface.
//
// # Basics
//
// Open a Locker, and Lock by name. Waiters are woken in the order of
// arrival. While a lock is held it is renewed; the context of what
// is Held ends when it is lost, or given back. Work that must not go on without
// the lock runs under that context.
//
//	held, err := locker.Lock(ctx, "stock", lock.Options{})
//	…
//	defer held.Unlock(ctx)
//	work(held.Context(), held.Fence())
//
// # Caveats
//
// No lock with a lifetime keeps a holder that is paused (by the system, by a
// collector, by its virtual machine) from going on for a moment after it has
// lost the lock: what it writes then must be refused by what it writes to. Send
// the Fence along, and let the store refuse a fence that is below the highest
// it has seen. dibs itself hangs nothing that must be right on a lock.
package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors of all lockers.
var (
	// ErrBusy: somebody else had the lock for as long as was waited.
	ErrBusy = errors.New("lock: it is held by somebody else")
	// ErrNoMajority: most of the servers of a Majority did not answer, so that nobody
	// can tell whether the lock is free.
	ErrNoMajority = errors.New("lock: most of the servers do not answer")
	// ErrLost is the cause of the end of Held.Context when the lock was lost, and
	// what Unlock returns then.
	ErrLost = errors.New("lock: it was lost")
	// ErrReleased is the cause of the end of Held.Context after Unlock.
	ErrReleased = errors.New("lock: it was given back")
	// ErrUnsupported: this locker has no shared locks.
	ErrUnsupported = errors.New("lock: not supported here")
)

// NoWait is a Wait that tries once.
const NoWait = time.Duration(-1)

// Options say how a lock is taken. The zero value waits for an exclusive lock
// until the context ends.
type Options struct {
	// Wait is the longest to wait; 0 waits until the context ends, NoWait tries
	// once.
	Wait time.Duration
	// Shared takes it as a reader: readers share it, writers do not.
	Shared bool
	// Owner makes it reentrant: whoever gives the name of the present owner, at
	// the same Locker, has it at once, once more, and it is free when each has
	// given it back. Goroutines have no identity, so that it is explicit.
	Owner string
}

// Locker gives locks by name. Safe for concurrent use.
type Locker interface {
	// Lock takes a lock. ErrBusy after Options.Wait, or ErrNoMajority; the context's
	// error when it ends first, with ErrNoMajority where that is why.
	Lock(ctx context.Context, name string, o Options) (Held, error)
	// Close ends the locker and gives up what it holds.
	Close() error
}

// Held is a lock that is held.
type Held interface {
	// Context ends when the lock is lost (its cause is ErrLost), given back, or
	// when the context of Lock was cancelled.
	Context() context.Context
	// Fence is a number that is higher for each later holder of the name.
	Fence() uint64
	// Unlock gives it back. ErrLost when it was lost before: then somebody else
	// may have worked meanwhile. The second call does nothing.
	Unlock(ctx context.Context) error
}

// maxName is the longest name in bytes.
// It is the length of a name in the table of fences.
const maxName = 200

// check refuses what no locker takes.
func check(name string, o *Options) error {
	// Braces mark the hash tag of the keys in Redis.
	if name == "" || len(name) > maxName || strings.ContainsAny(name, "{}\x00") {
		return fmt.Errorf("lock: a name has 1 to %d bytes, and neither braces nor zero bytes: %q", maxName, name)
	}
	if o.Wait < NoWait {
		return fmt.Errorf("lock: Options.Wait is %s", o.Wait)
	}
	return nil
}

// waiting bounds a context by Options.Wait; busy says whether an error means
// that the wait, and not the caller's context, was over.
func waiting(ctx context.Context, o *Options) (bounded context.Context, cancel func(), busy func(error) error) {
	bounded, cancel = ctx, func() {}
	if o.Wait > 0 {
		bounded, cancel = context.WithTimeout(ctx, o.Wait)
	}
	return bounded, cancel, func(err error) error {
		switch {
		case err == nil:
			return nil
		case ended(ctx) != nil:
			return ended(ctx)
		case ended(bounded) != nil:
			return ErrBusy
		default:
			return err
		}
	}
}

// ended is a context's error, also when its time is over and its timer has not
// told: a connection goes by the deadline itself, and may be first.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

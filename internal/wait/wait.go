// Package wait has the ways in which background loops and their callers wait: all of
// them end with a context.
package wait

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/dibs-dev/dibs"
)

// Sleep waits for d; false when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool { return SleepOr(ctx, d, nil) }

// SleepOr waits for d or a signal; false when ctx ends first.
func SleepOr(ctx context.Context, d time.Duration, signal <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-signal:
		return true
	case <-ctx.Done():
		return false
	}
}

// Every is to be ranged over: once for each d, however long the body takes, until ctx ends. A body
// that takes longer than d is followed by the next at once.
func Every(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				if !yield(now) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// Kick signals a loop without waiting. c has room for one signal: one that the loop
// has not seen yet says as much as two.
func Kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Lock is a lock whose holder may wait for an engine or a ledger, for seconds, so
// that others wait for it no longer than their context lasts. Use NewLock. It is a
// channel and no sync.Mutex also because time passes in a bubble of
// testing/synctest while a goroutine waits for a channel.
type Lock chan struct{}

// NewLock returns a lock that is free.
func NewLock() Lock { return make(Lock, 1) }

// Lock takes the lock, however long that lasts.
func (l Lock) Lock() { l <- struct{}{} }

// Try takes the lock where nobody has it; false where somebody has.
func (l Lock) Try() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock gives the lock back.
func (l Lock) Unlock() { <-l }

// Take takes the lock. *dibs.Error of Unavailable without an effect when ctx ends
// first.
func (l Lock) Take(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return dibs.Unavail(dibs.EffectNone, errors.Join(errTaken, ctx.Err()))
	}
}

var errTaken = errors.New("dibs: another change of a campaign is not done yet")

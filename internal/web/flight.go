package web

import (
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// Flight is one piece of work that many callers wait for, such as reading from the
// ledger what they all show. One caller does it at a time. When it fails since the
// ledger is unavailable, the callers that waited for it fail with it: while the
// ledger hangs, they do not call it one after the other. The zero value is idle.
type Flight struct {
	// mu is held while the work is done.
	mu sync.Mutex
	// failed is why the last attempt failed, and ended when; nil after a success,
	// and after a failure that only its own caller is to blame for. mu guards both.
	failed error
	ended  time.Time
}

// TryBegin begins the work unless another caller is at it.
func (f *Flight) TryBegin() bool { return f.mu.TryLock() }

// Begin waits until no other caller is at the work, then begins it. It returns why
// the last attempt failed instead, when that attempt ended after since.
func (f *Flight) Begin(since time.Time) error {
	f.mu.Lock()
	if f.failed == nil || f.ended.Before(since) {
		return nil
	}
	defer f.mu.Unlock()
	return f.failed
}

// End ends what TryBegin or Begin has begun, with the error that it ended in.
func (f *Flight) End(err error) {
	f.failed, f.ended = nil, time.Now()
	if errors.Is(err, dibs.ErrUnavailable) {
		f.failed = err
	}
	f.mu.Unlock()
}

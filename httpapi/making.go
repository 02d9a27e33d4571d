package httpapi

import (
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// making is held while something is made for everybody, which may ask the ledger. When
// that fails, those who waited fail with it: while the ledger hangs, they do not ask it
// one after the other. The zero value is free.
type making struct {
	mu sync.Mutex
	// failed is why the last attempt failed, at the time when it ended; nil when it did
	// not, or when only its own caller was to blame. mu guards both.
	failed error
	ended  time.Time
}

// try begins unless somebody else has begun.
func (m *making) try() bool { return m.mu.TryLock() }

// wait begins for somebody who came at a time when nobody else makes it any more, or
// returns why the last attempt that ended since then failed.
func (m *making) wait(came time.Time) error {
	m.mu.Lock()
	if m.failed == nil || m.ended.Before(came) {
		return nil
	}
	defer m.mu.Unlock()
	return m.failed
}

// end ends what try or wait has begun.
func (m *making) end(err error) {
	m.failed, m.ended = nil, time.Now()
	if errors.Is(err, dibs.ErrUnavailable) {
		m.failed = err
	}
	m.mu.Unlock()
}

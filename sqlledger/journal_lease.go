package sqlledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/dibs-dev/dibs"
)

// Acquire implements dibs.JournalStore. The lock says who is alive: the system
// ends a file's with its process, a server its own with the connection. The
// generation in the lease says who was last: it fences a process that lost the
// lock without noticing. Calling it again takes a new generation and fences the
// one before.
func (t *JournalTable) Acquire(ctx context.Context, owner string) (generation int64, err error) {
	if _, err := t.own(ctx); err != nil {
		return 0, t.d.explain("acquire the journal", err)
	}
	err = t.writers.transact(ctx, t.d.begin, func(s *session) error {
		if _, err := s.exec(ctx, `UPDATE lease SET owner = ?, generation = generation + 1, acquired_at = ? WHERE id = 1`,
			owner, t.opts.Now().UnixMilli()); err != nil {
			return err
		}
		return s.row(ctx, `SELECT generation FROM lease WHERE id = 1`, nil, &generation)
	})
	if err == nil {
		t.generation.Store(generation)
	}
	return generation, t.d.explain("acquire the journal", err)
}

// own takes the lock. mine says that it was not held by this value before.
// ErrOwned says who has it.
func (t *JournalTable) own(ctx context.Context) (mine bool, err error) {
	mine, err = t.lock.take(ctx)
	if errors.Is(err, dibs.ErrOwned) {
		err = fmt.Errorf("%w (%s)", err, t.owner(ctx))
	}
	return mine, err
}

// fenced reports whether another process has taken the lease since Acquire.
func (t *JournalTable) fenced(ctx context.Context, s *session) (bool, error) {
	generation, err := number(ctx, s.conn, `SELECT generation FROM lease WHERE id = 1`)
	return generation != t.generation.Load(), err
}

// owner says, for people, who took the lease last.
func (t *JournalTable) owner(ctx context.Context) string {
	var owner string
	s, err := t.readers.take(ctx)
	if err == nil {
		err = errors.Join(s.row(ctx, `SELECT owner FROM lease WHERE id = 1`, nil, &owner), t.readers.give(s))
	}
	if err != nil {
		return "its owner could not be read: " + err.Error()
	}
	return owner
}

// fileLock is a lock that the operating system ends with the process.
type fileLock struct {
	path string
	mu   sync.Mutex
	file *os.File
}

// take implements owning.
func (l *fileLock) take(context.Context) (taken bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		return false, nil
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = dibs.ErrOwned
		}
		return false, errors.Join(err, f.Close())
	}
	l.file = f
	return true, nil
}

// release implements owning.
func (l *fileLock) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	// Closing the only descriptor ends the lock.
	return f.Close()
}

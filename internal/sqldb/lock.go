package sqldb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ErrHeld: another process holds the lock of the schema.
var ErrHeld = errors.New("the lock is held by another process")

// lock keeps a second process from an Owned schema. It ends with the process
// that took it.
type lock interface {
	// take takes it; taken says that this value did not hold it before.
	// ErrHeld.
	take(ctx context.Context) (taken bool, err error)
	// release gives it back; it does nothing when this value does not hold it.
	release() error
}

const (
	// holdPatience is how long a lock may outlive its process: the server has
	// to notice that a connection is gone.
	holdPatience = 2 * time.Second
	// formerPatience is how long this process's own former connection may take
	// to end once it is told to.
	formerPatience = 3 * time.Second
	// touchEvery is how often the holder uses its connection, which the server
	// ends after idlePatience.
	touchEvery = 10 * time.Second
)

// serverLock is a lock of a server. It belongs to the one connection that
// writes: when that is lost, the lock is taken again on the next connection
// before anything is written there, or the attempt shows that another process
// has it.
//
// mu guards held, stop and touched against a take beside a release. held says
// that each new connection has to take the lock; greet reads it without mu,
// since release holds mu while it waits for the writer. connection is used by
// the goroutine that has the writer's session.
type serverLock struct {
	writers *pool
	locks   *sessionLocks
	name    string
	fenced  func(ctx context.Context, s *Session) error
	// every is the time between two uses of the connection.
	every time.Duration

	mu   sync.Mutex
	held atomic.Bool
	// connection is the number of the connection that took the lock last.
	connection int64
	// stop ends touch, which closes touched when it has ended.
	stop, touched chan struct{}
}

func (l *serverLock) take(ctx context.Context) (taken bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held.Load() {
		return false, nil
	}
	s, err := l.writers.take(ctx)
	if err != nil {
		return false, err
	}
	err = s.call.late(l.takeOn(s.within(ctx), s, holdPatience))
	if err == nil {
		l.held.Store(true)
		l.stop, l.touched = make(chan struct{}), make(chan struct{})
		go l.touch(l.stop, l.touched)
	}
	return err == nil, errors.Join(err, l.writers.give(s))
}

// touch uses the connection every now and then. The server ends connections
// that are idle, so that it soon releases the lock of a process whose machine
// is gone; this one is not idle. And when the connection was lost, touch
// replaces it and takes the lock again, even if nothing is written meanwhile.
func (l *serverLock) touch(stop, touched chan struct{}) {
	defer close(touched)
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), connectPatience)
		if s, err := l.writers.take(ctx); err == nil {
			_, err = number(ctx, s.conn, "SELECT 1")
			s.broken = err != nil
			// The next use of the connection, here or for a write, finds out
			// what is wrong.
			_ = l.writers.give(s)
		}
		cancel()
	}
}

// takeOn takes the lock on a connection.
func (l *serverLock) takeOn(ctx context.Context, s *Session, patience time.Duration) error {
	got, err := l.locks.tryFor(ctx, s.conn, l.name, patience)
	if err != nil {
		return err
	}
	if !got {
		holder, err := l.locks.holderOf(ctx, s.conn, l.name)
		if err != nil {
			return err
		}
		return fmt.Errorf("%w, on connection %d of the database", ErrHeld, holder)
	}
	l.connection, err = number(ctx, s.conn, l.locks.self)
	return err
}

// greet takes the lock on a new connection of the process that holds it.
// Whatever the former connection was doing is over then: its commit cannot come
// later than what is read from now on.
func (l *serverLock) greet(ctx context.Context, s *Session) error {
	if !l.held.Load() {
		return nil
	}
	// A server that was restarted counts its connections anew: the former
	// connection's number may by now be that of another owner, which has fenced
	// this process.
	if err := l.fenced(ctx, s); err != nil {
		return err
	}
	holder, err := l.locks.holderOf(ctx, s.conn, l.name)
	if err != nil {
		return err
	}
	if holder != 0 && holder == l.connection {
		// The server may not have noticed yet that the connection is gone, or
		// it has ended since this was read.
		if _, err := s.conn.ExecContext(ctx, fmt.Sprintf(l.locks.end, holder)); err != nil && lost(err) {
			return err
		}
	}
	if err = l.takeOn(ctx, s, formerPatience); errors.Is(err, ErrHeld) {
		return errLockTaken
	}
	return err
}

func (l *serverLock) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held.Swap(false) {
		return nil
	}
	close(l.stop)
	<-l.touched
	ctx, cancel := context.WithTimeout(context.Background(), connectPatience)
	defer cancel()
	s, err := l.writers.take(ctx)
	if errors.Is(err, errClosed) {
		// The lock went with the connection.
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(l.locks.releaseFrom(ctx, s.conn, l.name), l.writers.give(s))
}

// fileLock is a lock on a file, which the operating system ends with the
// process. mu guards file, which is nil while this value does not hold the
// lock.
type fileLock struct {
	path string
	mu   sync.Mutex
	file *os.File
}

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
	if err := lockNow(f); err != nil {
		return false, errors.Join(err, f.Close())
	}
	l.file = f
	return true, nil
}

// aloneIn runs f while no other process runs one in the same folder, waiting up to
// migratePatience for its turn.
func aloneIn(ctx context.Context, folder string, f func() error) error {
	dir, err := openToLock(folder)
	if err != nil {
		return err
	}
	err = lockNow(dir)
	for began := time.Now(); errors.Is(err, ErrHeld) && time.Since(began) < migratePatience; err = lockNow(dir) {
		select {
		case <-time.After(tryPause):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), dir.Close())
		}
	}
	if errors.Is(err, ErrHeld) {
		err = errMigrating
	}
	if err == nil {
		err = f()
	}
	return errors.Join(err, dir.Close())
}

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

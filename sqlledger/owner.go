package sqlledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// ownedPatience is how long a lock may outlive its owner: the server has to
	// notice that a connection is gone.
	ownedPatience = 2 * time.Second
	// formerPatience is how long this process's own former connection may take
	// to end once it is told to.
	formerPatience = 3 * time.Second
	// idlePatience is after how much silence a server ends a connection, and
	// beatEvery how often the owner of a journal breaks it.
	idlePatience = time.Minute
	beatEvery    = 10 * time.Second
)

// ownerLock is the lock on a journal in a server's table. It lives on the one
// connection that appends: who lost that connection takes the lock anew before
// anything is appended on the next, or finds out that it is someone else's.
type ownerLock struct {
	writers *pool
	// fenced reports whether the lease is of another generation than this
	// process's.
	fenced func(ctx context.Context, s *session) (bool, error)
	// every is the time between two beats.
	every time.Duration

	mu sync.Mutex
	// held says that each new connection has to take the lock.
	held atomic.Bool
	// connection is the number of the one that took it last; who holds the
	// session uses it.
	connection int64
	// stop ends the beating, which says by closing beaten that it has.
	stop, beaten chan struct{}
}

// take implements the journal's lock.
func (l *ownerLock) take(ctx context.Context) (taken bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held.Load() {
		return false, nil
	}
	s, err := l.writers.take(ctx)
	if err != nil {
		return false, err
	}
	err = s.call.late(l.on(s.within(ctx), s, ownedPatience))
	if err == nil {
		l.held.Store(true)
		l.stop, l.beaten = make(chan struct{}), make(chan struct{})
		go l.beat(l.stop, l.beaten)
	}
	return err == nil, errors.Join(err, l.writers.give(s))
}

// beat keeps the connection from looking idle to the server, which ends those
// that are: so it lets go soon of an owner whose machine is gone. A connection
// that was lost is replaced by it, and the lock with it, even if nobody
// appends.
func (l *ownerLock) beat(stop, beaten chan struct{}) {
	defer close(beaten)
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
			// The next beat, or the next append, finds out what is wrong.
			_ = l.writers.give(s)
		}
		cancel()
	}
}

// on takes the lock on a connection.
func (l *ownerLock) on(ctx context.Context, s *session, patience time.Duration) error {
	locks := &s.d.server.locks
	got, err := locks.tryFor(ctx, s.conn, journalLock, patience)
	if err != nil {
		return err
	}
	if !got {
		holder, err := number(ctx, s.conn, fmt.Sprintf(locks.holder, journalLock))
		if err != nil {
			return err
		}
		return fmt.Errorf("%w, on connection %d of the database", dibs.ErrOwned, holder)
	}
	l.connection, err = number(ctx, s.conn, locks.self)
	return err
}

// greet takes the lock on a new connection of a process that has it. Whatever
// the former connection was doing is over then: its commit cannot come later
// than what is read from now on.
func (l *ownerLock) greet(ctx context.Context, s *session) error {
	if !l.held.Load() {
		return nil
	}
	locks := &s.d.server.locks
	// A server that was started anew counts its connections anew: the number of
	// the former one may be another owner's by now, who has fenced this one.
	fenced, err := l.fenced(ctx, s)
	if err == nil && fenced {
		err = fmt.Errorf("%w: another process took it", dibs.ErrFenced)
	}
	if err != nil {
		return err
	}
	holder, err := number(ctx, s.conn, fmt.Sprintf(locks.holder, journalLock))
	if err != nil {
		return err
	}
	if holder != 0 && holder == l.connection {
		// The server may not have noticed yet that it is gone, or it has ended
		// since this was read.
		if _, err := s.conn.ExecContext(ctx, fmt.Sprintf(locks.end, holder)); err != nil && lost(err) {
			return err
		}
	}
	err = l.on(ctx, s, formerPatience)
	if !errors.Is(err, dibs.ErrOwned) {
		return err
	}
	// Its new owner raises the generation next, and then this one knows.
	return dibs.Unavail(dibs.EffectNone, errors.New("sqlledger: the journal's lock is held by another connection"))
}

// release implements the journal's lock.
func (l *ownerLock) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held.Swap(false) {
		return nil
	}
	close(l.stop)
	<-l.beaten
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
	return errors.Join(s.d.server.locks.releaseFrom(ctx, s.conn, journalLock), l.writers.give(s))
}

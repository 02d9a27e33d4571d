package sqldb

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// attempts bounds how often a transaction runs that the database keeps
	// ending in favour of others.
	attempts = 8
	// attemptPause is the longest wait before the second attempt. It doubles
	// with each attempt.
	attemptPause = 4 * time.Millisecond
)

// transactRetry is transact, repeated when the database ends the transaction in
// favour of another one. f starts afresh each time.
func (p *pool) transactRetry(ctx context.Context, begin string, f func(*Session) error) error {
	c, end := beginCall(ctx, p.timeout)
	defer end()
	ctx = c.ctx
	for n, pause := 1, attemptPause; ; n, pause = n+1, 2*pause {
		err := p.transact(ctx, begin, f)
		var unknown *unknownEffect
		if err == nil || n == attempts || errors.As(err, &unknown) || p.classify(err) != FaultConflict {
			return err
		}
		// A random pause keeps two that collided from colliding again.
		wait := time.NewTimer(rand.N(pause))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return c.late(errors.Join(ctx.Err(), err))
		}
	}
}

// transact runs f in a transaction that begins with the given statement. The
// error of a failed commit is an *unknownEffect, unless the database certainly
// did not commit. After any other error nothing was changed.
func (p *pool) transact(ctx context.Context, begin string, f func(*Session) error) error {
	s, err := p.take(ctx)
	if err != nil {
		return err
	}
	c := s.call
	if err = p.begin(c.ctx, s, begin); err == nil {
		err = s.transact(ctx, f)
	}
	return errors.Join(c.late(err), p.give(s))
}

// begin begins a transaction. A connection to a server may have ended while it
// was idle, and the server's last words may only be read now. Nothing has
// happened then, so another connection does it.
func (p *pool) begin(ctx context.Context, s *Session, begin string) error {
	err := s.start(ctx, begin)
	if err != nil && p.server != nil && p.classify(err) == FaultIO && ctx.Err() == nil {
		// A connection that is gone is closed already: nothing can fail.
		_ = s.drop()
		if err = p.connect(ctx, s); err == nil {
			err = s.start(ctx, begin)
		}
	}
	s.broken = err != nil
	return err
}

// transact runs f in the transaction that has begun, and ends it.
func (s *Session) transact(ctx context.Context, f func(*Session) error) error {
	err := f(s)
	// Ending the transaction must not be cut short. It has its own time,
	// however long f took.
	whole, cancel := s.ending(ctx)
	defer cancel()
	if err != nil {
		// If the transaction had ended before f did, f may have read what is
		// not so, and its error means nothing.
		if gone := s.stillWhole(whole); gone != nil && s.classify(gone) == FaultConflict {
			err = gone
		}
		if undo := s.control(whole, "ROLLBACK"); undo != nil {
			// The database may have rolled back by itself; closing the
			// connection does it in any case.
			s.broken = true
		}
		return err
	}
	err = s.commit(whole)
	if err == nil {
		return nil
	}
	s.broken = true
	if errors.Is(err, errRolledBack) {
		return err
	}
	switch s.classify(err) {
	case FaultFull, FaultConflict:
		// There was no room for the transaction's last page, without which it
		// does not exist, now or after a crash. Or the database ended it in
		// favour of another: a Galera cluster finds that out at the commit.
		return err
	}
	return &unknownEffect{err}
}

// commit ends the transaction, unless it is no longer the one that began.
func (s *Session) commit(ctx context.Context) error {
	if err := s.stillWhole(ctx); err != nil {
		return err
	}
	if s.server == nil || s.server.commit == nil {
		return s.control(ctx, "COMMIT")
	}
	return s.server.commit(ctx, s.conn)
}

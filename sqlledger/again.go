package sqlledger

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
	// attemptPause is the longest wait before the second attempt; it doubles.
	attemptPause = 4 * time.Millisecond
)

// transactAgain is transact, again and again when the database ends the
// transaction in favour of another one. f starts afresh each time.
func (p *pool) transactAgain(ctx context.Context, begin string, f func(*session) error) error {
	c, end := p.d.call(ctx)
	defer end()
	ctx = c.ctx
	for n, pause := 1, attemptPause; ; n, pause = n+1, 2*pause {
		err := p.transact(ctx, begin, f)
		var unknown *unknownEffect
		if err == nil || n == attempts || errors.As(err, &unknown) || p.d.classify(err) != faultConflict {
			return err
		}
		// Chance keeps two that collided from colliding again.
		wait := time.NewTimer(rand.N(pause))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return c.late(errors.Join(ctx.Err(), err))
		}
	}
}

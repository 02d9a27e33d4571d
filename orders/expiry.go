package orders

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// sweepMost is the most claims that expire in one transaction.
	sweepMost = 2000
	// sweepRest is the pause after a sweep that failed.
	sweepRest = time.Second
)

// Loop releases claims that nobody paid in time, until ctx ends. Every node does it: which
// one a claim falls to is the ledger's choice, and it falls to one.
func (s *Orders) Loop(ctx context.Context) {
	pause := s.sweepEvery
	for wait.Sleep(ctx, pause) {
		pause = s.sweepEvery
		for again := true; again && ctx.Err() == nil; {
			n, err := s.ledger.Expire(ctx, s.now(), sweepMost)
			switch {
			case err == nil:
				s.trouble.Over("unpaid", "unpaid claims are released again")
			case ctx.Err() == nil:
				s.trouble.Is("unpaid", "releasing unpaid claims failed", err)
				pause = max(pause, sweepRest)
			}
			if n > 0 {
				s.expired.Add(int64(n))
				wait.Kick(s.outbox.OutboxKick)
			}
			again = err == nil && n == sweepMost
		}
	}
}

package dibs

import (
	"context"
	"errors"
	"time"
)

// moveGroup is moves that are made as a whole or not at all.
type moveGroup struct {
	moves []Move
	moved []Moved
	err   error
}

const (
	// maxMoves is the most groups in one transaction.
	maxMoves = 256
	// movePatience bounds one transaction of moves.
	movePatience = 30 * time.Second
)

// move makes a group of moves. Its error, or that of a move that was refused,
// is an *Error or ErrLatePayment.
func (s *Service) move(ctx context.Context, moves ...Move) ([]Moved, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.LedgerTimeout)
	defer cancel()
	g := &moveGroup{moves: moves}
	if err := s.moves.do(ctx, g, maxMoves, s.makeGroups); err != nil {
		return nil, Unavail(EffectUnknown, err)
	}
	if g.err != nil {
		return nil, asUnavailable(g.err, EffectUnknown)
	}
	for i := range g.moved {
		if err := g.moved[i].Err; err != nil && !errors.Is(err, ErrConflict) {
			return g.moved, err
		}
	}
	return g.moved, nil
}

// makeGroups makes groups in one transaction. When it fails for what one of
// them says, each is made on its own.
func (s *Service) makeGroups(groups []*moveGroup) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), movePatience)
	defer cancel()
	all := make([][]Move, len(groups))
	for i, g := range groups {
		all[i] = g.moves
	}
	moved, err := s.ledger.Move(ctx, all)
	if err != nil && len(groups) > 1 && !errors.Is(err, ErrUnavailable) {
		for i := range groups {
			s.makeGroups(groups[i : i+1])
		}
		return
	}
	released := false
	for i, g := range groups {
		if g.err = err; err != nil {
			continue
		}
		g.moved = moved[i]
		for j := range g.moved {
			m := &g.moved[j]
			released = released || m.Err == nil && !m.Replayed && (m.Claim.Status == Released || m.Claim.Restocked)
		}
	}
	if released {
		// What is sold out opens again at once.
		kick(s.outboxKick)
	}
}

const (
	// sweepMost is the most claims that expire in one transaction.
	sweepMost = 2000
	// sweepRest is the pause after a sweep that failed.
	sweepRest = time.Second
)

// sweepLoop releases claims that nobody paid in time. Every node does it: which
// one a claim falls to is the ledger's choice, and it falls to one.
func (s *Service) sweepLoop(ctx context.Context) {
	pause := s.cfg.SweepEvery
	for sleep(ctx, pause) {
		pause = s.cfg.SweepEvery
		for again := true; again && ctx.Err() == nil; {
			n, err := s.ledger.Expire(ctx, s.cfg.Now(), sweepMost)
			if err != nil && ctx.Err() == nil {
				s.log.Error("releasing unpaid claims failed", "err", err)
				pause = max(pause, sweepRest)
			}
			if n > 0 {
				s.counters.expired.Add(int64(n))
				kick(s.outboxKick)
			}
			again = err == nil && n == sweepMost
		}
	}
}

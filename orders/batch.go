package orders

import (
	"context"
	"errors"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/batch"
	"github.com/dibs-dev/dibs/internal/wait"
)

// maxMoves is the most groups in one transaction.
const maxMoves = 256

// moveGroup is moves that are made as a whole or not at all.
type moveGroup struct {
	moves []dibs.Move
	moved []dibs.Moved
	err   error
}

// move makes a group of moves. Its error, or that of a move that was refused,
// is an *Error or ErrLatePayment.
func (s *Orders) move(ctx context.Context, moves ...dibs.Move) ([]dibs.Moved, error) {
	ctx, cancel := context.WithTimeout(ctx, s.ledgerTimeout)
	defer cancel()
	g := &moveGroup{moves: moves}
	if err := s.moves.Do(ctx, g, maxMoves, s.makeGroups); err != nil {
		return nil, dibs.Unavail(dibs.EffectUnknown, err)
	}
	if g.err != nil {
		return nil, dibs.AsUnavailable(g.err, dibs.EffectUnknown)
	}
	for i := range g.moved {
		if err := g.moved[i].Err; err != nil && !errors.Is(err, dibs.ErrConflict) {
			return g.moved, err
		}
	}
	return g.moved, nil
}

// makeGroups makes groups in one transaction. When it fails for what one of
// them says, each is made on its own.
func (s *Orders) makeGroups(groups []*moveGroup) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), batch.Patience)
	defer cancel()
	all := make([][]dibs.Move, len(groups))
	for i, g := range groups {
		all[i] = g.moves
	}
	moved, err := s.ledger.Move(ctx, all)
	if err != nil && len(groups) > 1 && !errors.Is(err, dibs.ErrUnavailable) {
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
			released = released || m.Err == nil && !m.Replayed && (m.Claim.Status == dibs.Released || m.Claim.Restocked)
		}
	}
	if released {
		// A campaign that is sold out opens again at once.
		wait.Kick(s.outbox.OutboxKick)
	}
}

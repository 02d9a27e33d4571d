package live

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// takeLease takes or renews a shard's lease, and tells the engine how far the
// ledger is.
func (s *Settler) takeLease(ctx context.Context, t *Shard, settled dibs.Cursor) (bool, error) {
	asked := time.Now()
	held, err := s.engine.Lease(ctx, t.ID, settled)
	if err == nil && held {
		t.lease.taken(asked)
	}
	return held, err
}

// setSettles notes whether this node settles a shard.
func (s *Settler) setSettles(t *Shard, held bool) {
	if held != t.lease.settles.Swap(held) && held {
		wait.Kick(s.settleKick)
	}
}

// tellSettled tells the engine, and by it the other nodes, how far a shard is
// settled.
func (s *Settler) tellSettled(ctx context.Context, t *Shard) {
	if !s.engine.Shared() {
		return
	}
	held, err := s.takeLease(ctx, t, t.At())
	if err != nil {
		s.log.Warn("the engine could not be told how far a shard is settled", "shard", t.ID.String(), "err", err)
		return
	}
	s.setSettles(t, held)
}

package live

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs/internal/wait"
)

// A rush is over sooner when the processors answer claims instead of settling
// them. One that brings 1/rushBatch of a batch at once has firstRest before
// settling begins; most are over by then. While less than 1/littleBacklog of the
// room for a backlog is taken, settling rests for longRest times of what its last
// batch took, from there on for shortRest times: the backlog of a rush that lasts
// must not grow without need.
const (
	rushBatch           = 8
	longRest, shortRest = 4, 1
	littleBacklog       = 8 // a divisor
	firstRest           = 2 * time.Second
)

// movingBatch is the part of a batch that is settled at once while units move between
// shards, or claims wait for some: the transactions that bring them wait for the one that is
// under way.
const movingBatch = 16

// atOnce is the most entries of the next transaction.
func (s *Settler) atOnce() int {
	most := s.batch
	s.registry.eachSettling(func(t *Shard) bool {
		if t.l.moving.Load() || t.l.dry.Load() {
			most = max(1, s.batch/movingBatch)
		}
		return most == s.batch
	})
	return most
}

// settleRest is how long settling rests during a rush, after a batch that took so
// long.
func (s *Settler) settleRest(took time.Duration) time.Duration {
	if s.backlogAbove(s.maxBacklog / littleBacklog) {
		return took * shortRest
	}
	return took * longRest
}

// restInRush waits for so long, but no longer than claims queue; false when ctx
// ended first.
func (s *Settler) restInRush(ctx context.Context, d time.Duration) bool {
	for d > 0 && s.ClaimsRush(ctx) {
		nap, began := min(d, pollEvery), time.Now()
		if !wait.SleepOr(ctx, nap, s.settleKick) {
			return false
		}
		if time.Since(began) < nap {
			// A caller wants it to go on.
			return true
		}
		d -= nap
	}
	return true
}

// ClaimsRush reports whether claims queue, to be decided or for their commit,
// while the backlog has room and no caller waits for a claim to be settled, nor a
// shard for items that are on their way to it: units need not wait for their turn.
func (s *Settler) ClaimsRush(ctx context.Context) bool {
	if s.backlogAbove(s.maxBacklog / 2) {
		return false
	}
	rush, wanted := false, false
	s.registry.eachSettling(func(t *Shard) bool {
		if wanted = t.progress.isWanted() || t.l.moving.Load() && t.l.Def().HasItems(); wanted {
			return false
		}
		st, err := s.registry.glance(ctx, t)
		if err != nil {
			return true
		}
		rush = rush || st.Queued > 0 || st.Waiting > 0
		return true
	})
	return rush && !wanted
}

// backlogAbove reports whether more entries than that wait of any campaign that
// this node settles. A full backlog has a campaign refuse claims, not a shard.
func (s *Settler) backlogAbove(most int64) bool {
	sums, above := map[*Campaign]int64{}, false
	s.registry.eachSettling(func(t *Shard) bool {
		sums[t.l] += t.seen.backlog.Load()
		above = sums[t.l] > most
		return !above
	})
	return above
}

// enoughWait reports whether so many entries are there already.
func (s *Settler) enoughWait(ctx context.Context, entries int) bool {
	n := int64(0)
	s.registry.eachSettling(func(t *Shard) bool {
		if st, err := s.registry.glance(ctx, t); err == nil {
			n += backlogOf(t.At(), st.Head)
		}
		return n < int64(entries)
	})
	return n >= int64(entries)
}

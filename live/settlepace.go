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
	for t := range s.registry.eachSettling {
		if t.l.moving.Load() || t.l.dry.Load() {
			return max(1, s.batch/movingBatch)
		}
	}
	return s.batch
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
	rush := false
	for t := range s.registry.eachSettling {
		if t.progress.isWanted() || t.l.moving.Load() && t.l.Def().HasItems() {
			return false
		}
		st, err := s.registry.glance(ctx, t)
		rush = rush || err == nil && (st.Queued > 0 || st.Waiting > 0)
	}
	return rush
}

// backlogAbove reports whether more entries than that wait of any campaign that
// this node settles. A full backlog has a campaign refuse claims, not a shard.
func (s *Settler) backlogAbove(most int64) bool {
	sums := map[*Campaign]int64{}
	for t := range s.registry.eachSettling {
		if sums[t.l] += t.seen.backlog.Load(); sums[t.l] > most {
			return true
		}
	}
	return false
}

// enoughWait reports whether so many entries are there already.
func (s *Settler) enoughWait(ctx context.Context, entries int) bool {
	n := int64(0)
	for t := range s.registry.eachSettling {
		if st, err := s.registry.glance(ctx, t); err == nil {
			n += backlogOf(t.At(), st.Head)
		}
		if n >= int64(entries) {
			return true
		}
	}
	return false
}

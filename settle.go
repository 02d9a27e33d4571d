package dibs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// settlePause bounds the wait after a failed attempt to settle.
const (
	settlePauseMin = 20 * time.Millisecond
	settlePauseMax = 2 * time.Second
	settleTick     = time.Second
)

// settleLoop moves journal entries into the ledger until ctx ends.
func (s *Service) settleLoop(ctx context.Context) {
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.engine.Appended():
			// Entries wait a moment for company: by count or by time.
			if !s.enoughWait(ctx, s.cfg.SettleBatch) && !sleepOr(ctx, s.cfg.SettleEvery, s.settleKick) {
				return
			}
			if s.enoughWait(ctx, s.cfg.SettleBatch/rushBatch) && !s.restInRush(ctx, firstRest) {
				return
			}
		case <-s.settleKick:
		case <-tick.C:
		}
		if !s.settleWaiting(ctx) {
			return
		}
	}
}

// settleWaiting settles until nothing waits; false when ctx ended first.
func (s *Service) settleWaiting(ctx context.Context) bool {
	pause := settlePauseMin
	for {
		started := time.Now()
		n, err := s.settleOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			s.counters.settleErrors.Add(1)
			s.log.Error("settling failed", "err", err)
			// One shard's trouble does not slow the others down.
			if n == 0 && !sleepOr(ctx, pause, s.settleKick) {
				return false
			}
			pause = min(2*pause, settlePauseMax)
		case n < s.cfg.SettleBatch:
			// What came meanwhile waits for company again: a steady stream of claims
			// would else be settled in transactions of a few rows, without an end.
			return true
		default:
			pause = settlePauseMin
			// The rush comes first: the processors that settling leaves alone
			// answer claims. Someone who waits for a claim to be settled wakes it.
			if !s.restInRush(ctx, s.settleRest(time.Since(started))) {
				return false
			}
		}
	}
}

// A rush is over sooner when the processors answer claims instead of settling
// them. One that brings 1/rushBatch of a batch at once has firstRest before
// settling begins; most are over by then. While little waits, settling rests for
// longRest times of what its last batch took. From 1/littleBacklog of the room
// for it on, so that the backlog of a rush that lasts does not grow without
// need, it rests for shortRest times.
const (
	rushBatch           = 8
	longRest, shortRest = 4, 1
	littleBacklog       = 8
	firstRest           = 2 * time.Second
)

// settleRest is how long settling rests during a rush, after a batch that took so
// long.
func (s *Service) settleRest(took time.Duration) time.Duration {
	if s.backlogAbove(s.cfg.MaxBacklog / littleBacklog) {
		return took * shortRest
	}
	return took * longRest
}

// restInRush waits for so long, but no longer than claims queue; false when ctx
// ended first.
func (s *Service) restInRush(ctx context.Context, d time.Duration) bool {
	for d > 0 && s.claimsRush(ctx) {
		nap, began := min(d, watchEvery), time.Now()
		if !sleepOr(ctx, nap, s.settleKick) {
			return false
		}
		if time.Since(began) < nap {
			// Somebody wants it to go on.
			return true
		}
		d -= nap
	}
	return true
}

// claimsRush reports whether claims queue, to be decided or for their commit,
// while the backlog has room and nobody waits for a claim to be settled.
func (s *Service) claimsRush(ctx context.Context) bool {
	if s.backlogAbove(s.cfg.MaxBacklog / 2) {
		return false
	}
	rush, wanted := false, false
	s.eachHeld(func(t *settling) bool {
		if wanted = t.isWanted(); wanted {
			return false
		}
		st, err := s.glance(ctx, t)
		if err != nil {
			return true
		}
		rush = rush || st.Queued > 0 || st.Waiting > 0
		return true
	})
	return rush && !wanted
}

// backlogAbove reports whether more entries than that wait of any campaign that
// this node settles. What is refused is refused by a campaign, not by a shard.
func (s *Service) backlogAbove(most int64) bool {
	sums, above := map[*live]int64{}, false
	s.eachHeld(func(t *settling) bool {
		sums[t.l] += t.backlog.Load()
		above = sums[t.l] > most
		return !above
	})
	return above
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool { return sleepOr(ctx, d, nil) }

// eachHeld calls f for every shard that this node settles.
func (s *Service) eachHeld(f func(*settling) bool) {
	s.eachShard(func(t *settling) bool { return !t.held.Load() || f(t) })
}

// eachShard calls f for every shard of the campaigns that are live here.
func (s *Service) eachShard(f func(*settling) bool) {
	s.lives.Range(func(_, v any) bool {
		for _, t := range v.(*live).shards {
			if !f(t) {
				return false
			}
		}
		return true
	})
}

// enoughWait reports whether so many entries are there already.
func (s *Service) enoughWait(ctx context.Context, entries int) bool {
	n := int64(0)
	s.eachHeld(func(t *settling) bool {
		if st, err := s.glance(ctx, t); err == nil {
			n += backlogOf(t.at(), st.Head)
		}
		return n < int64(entries)
	})
	return n >= int64(entries)
}

// backlogOf counts entries between two places. Across epochs it counts the
// newest epoch's only, which is a lower bound.
func backlogOf(position, head Cursor) int64 {
	switch {
	case !position.Before(head):
		return 0
	case position.Epoch == head.Epoch:
		return int64(head.Seq) - int64(position.Seq)
	}
	return int64(head.Seq)
}

// settleOnce settles up to one batch from all shards in one transaction and
// returns how many entries it settled.
func (s *Service) settleOnce(ctx context.Context) (int, error) {
	s.settling.Lock()
	defer s.settling.Unlock()
	var batches []Batch
	var shards []*settling
	total := 0
	var readErr error
	for _, t := range s.heldInTurn() {
		if total >= s.cfg.SettleBatch {
			break
		}
		b, err := s.readBatch(ctx, t, s.cfg.SettleBatch-total, false)
		if err != nil {
			t.failed(err)
			readErr = errors.Join(readErr, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if len(b.Entries) == 0 {
			t.failed(nil)
		} else {
			batches, shards = append(batches, b), append(shards, t)
			total += len(b.Entries)
		}
	}
	if total == 0 {
		return 0, readErr
	}
	err := s.settleBatches(ctx, batches, shards)
	if err == nil {
		return total, readErr
	}
	// One shard's trouble must not hold the others up: each on its own.
	settled := 0
	for i := range batches {
		if len(batches) > 1 {
			err = s.settleBatches(ctx, batches[i:i+1], shards[i:i+1])
		}
		n := len(batches[i].Entries)
		if errors.Is(err, ErrPoison) {
			n, err = s.isolate(ctx, batches[i], shards[i])
		}
		if err != nil {
			readErr = errors.Join(readErr, err)
			continue
		}
		settled += n
	}
	return settled, readErr
}

// heldInTurn returns the shards that this node settles, each time from another
// one on: one that fills every batch must not keep the others waiting.
func (s *Service) heldInTurn() []*settling {
	var held []*settling
	s.eachHeld(func(t *settling) bool {
		held = append(held, t)
		return true
	})
	if len(held) == 0 {
		return nil
	}
	s.turn++
	first := s.turn % len(held)
	return slices.Concat(held[first:], held[:first])
}

// settleBatches writes batches in one transaction and moves their positions.
func (s *Service) settleBatches(ctx context.Context, batches []Batch, shards []*settling) (err error) {
	n := 0
	for i := range batches {
		n += len(batches[i].Entries)
	}
	ctx, end := s.begin(ctx, "settle", slog.Int("dibs.entries", n), slog.Int("dibs.shards", len(batches)))
	defer func() { end(err) }()
	started := time.Now()
	if err := s.ledger.Settle(ctx, batches); err != nil {
		return s.settleFailed(ctx, batches, shards, err)
	}
	for i, t := range shards {
		t.moveTo(batches[i].Fence, batches[i].To)
		s.tellSettled(ctx, t)
		s.heedLow(ctx, t.l)
	}
	s.counters.settled.Add(int64(n))
	s.counters.settleBatches.Add(1)
	took := int64(time.Since(started))
	s.counters.settleNanos.Add(took)
	s.counters.settleTimes.Observe(took)
	s.counters.settleSizes.Observe(int64(n))
	return nil
}

// readBatch reads what a shard's journal has after its position. Nothing is read
// while the journal is of another epoch than the one that this node has joined,
// unless tail says that this node has raised the epoch to settle what is left.
func (s *Service) readBatch(ctx context.Context, t *settling, limit int, tail bool) (Batch, error) {
	fence, from := t.place()
	if limit <= 0 || fence == 0 {
		return Batch{}, nil
	}
	st, err := s.glance(ctx, t)
	switch {
	case err == nil && (!from.Before(st.Head) && !from.Before(t.want()) || st.Head.Epoch != fence && !tail):
		return Batch{}, nil
	case errors.Is(err, ErrNotOpen) && !tail:
		end, err := s.engine.JournalEnd(ctx, t.id)
		if err != nil || end.Epoch != fence {
			return Batch{}, err
		}
	case err != nil && !errors.Is(err, ErrNotOpen):
		return Batch{}, err
	}
	entries, err := s.engine.ReadJournal(ctx, t.id, from, limit)
	if err != nil {
		return Batch{}, fmt.Errorf("dibs: reading the journal of shard %s: %w", t.id, err)
	}
	if len(entries) == 0 || !Continues(from, &entries[0]) {
		// While this node stood still another one may have settled what follows, and
		// trimmed it.
		if same, err := s.askPosition(ctx, t); err != nil || !same || len(entries) == 0 {
			return Batch{}, err
		}
	}
	return Batch{
		Campaign: t.l.campaign.Load(), Shard: t.id, Fence: fence, From: from,
		To: entries[len(entries)-1].Cursor, Entries: entries,
	}, nil
}

// settleFailed notes the error. When another settler has moved a position, this
// node goes on from there; when the epoch was raised, it joins the shard again.
func (s *Service) settleFailed(ctx context.Context, batches []Batch, shards []*settling, cause error) error {
	for i, t := range shards {
		if len(shards) == 1 {
			// Among several, it is not known yet whose fault it is.
			t.failed(cause)
			if errors.Is(cause, ErrGap) {
				s.halt(t.l.campaign.Load(), cause)
			}
			if errors.Is(cause, ErrFenced) {
				s.fencedOff(ctx, t, batches[i].Fence)
			}
		}
		if !errors.Is(cause, ErrPositionMoved) {
			continue
		}
		if _, err := s.askPosition(ctx, t); err != nil {
			return errors.Join(cause, err)
		}
	}
	return cause
}

// settlePatience is how long someone waits for a claim to be settled while
// nothing is being settled at all.
const settlePatience = 10 * time.Second

// settleTo returns when a shard is settled up to a place. It gives up when ctx
// ends, or when nothing was settled for the ledger's timeout.
func (s *Service) settleTo(ctx context.Context, t *settling, place Cursor) error {
	for before := -1; ; {
		t.mu.Lock()
		if before < 0 {
			before = t.failures
		}
		position, moved, lastErr := t.position, t.moved, t.lastErr
		if !position.Before(place) {
			t.mu.Unlock()
			return nil
		}
		if hopeless(lastErr) && t.failures > before {
			// It was tried again since.
			t.mu.Unlock()
			return Unavail(EffectNone, errors.Join(errStill, lastErr))
		}
		if t.wanted.Before(place) {
			t.wanted = place
		}
		follow := !t.held.Load() && !t.follower
		t.follower = t.follower || follow
		t.mu.Unlock()
		if follow {
			// Another node settles the shard: the ledger tells how far it is.
			go s.followPosition(t)
		}
		t.rouse()
		kick(s.settleKick)
		still := time.NewTimer(s.cfg.LedgerTimeout)
		select {
		case <-moved:
			still.Stop()
		case <-still.C:
			return Unavail(EffectNone, errors.Join(errStill, lastErr))
		case <-ctx.Done():
			still.Stop()
			return Unavail(EffectNone, errors.Join(ctx.Err(), lastErr))
		}
	}
}

var errStill = errors.New("dibs: settling stands still")

// followEvery is how often the ledger is asked how far another node's settling
// is, while somebody waits for it.
const followEvery = 20 * time.Millisecond

// followPosition asks the ledger for a shard's position until it is where it
// was wanted, or for as long as anyone would wait.
func (s *Service) followPosition(t *settling) {
	ctx, cancel := context.WithTimeout(s.life, s.cfg.LedgerTimeout)
	defer cancel()
	for again := true; again; {
		s.readPosition(ctx, t)
		over := !sleep(ctx, followEvery)
		t.mu.Lock()
		again = !over && t.position.Before(t.wanted) && !t.held.Load()
		t.follower = again
		t.mu.Unlock()
	}
}

// readPosition takes a shard's position from the ledger.
func (s *Service) readPosition(ctx context.Context, t *settling) {
	same, err := s.askPosition(ctx, t)
	if err != nil || same {
		t.failed(err)
	}
}

// settleAll settles what the live shards of a campaign have granted so far.
func (s *Service) settleAll(ctx context.Context, c *Campaign) error {
	l, err := s.liveOf(ctx, c)
	if err != nil || l == nil {
		return err
	}
	for _, t := range l.shards {
		st, err := s.engine.Stats(ctx, t.id)
		if errors.Is(err, ErrNotOpen) {
			continue
		}
		if err != nil {
			return asUnavailable(err, EffectNone)
		}
		if err := s.settleTo(ctx, t, st.Head); err != nil {
			return err
		}
	}
	return nil
}

// kick signals a loop without waiting.
func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

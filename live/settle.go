package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// loop moves journal entries into the ledger until ctx ends.
func (s *Settler) loop(ctx context.Context) {
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.engine.Appended():
			// Entries wait a moment for company: by count or by time.
			if !s.enoughWait(ctx, s.batch) && !wait.SleepOr(ctx, s.every, s.settleKick) {
				return
			}
			if s.enoughWait(ctx, s.batch/rushBatch) && !s.restInRush(ctx, firstRest) {
				return
			}
		case <-s.settleKick:
		case <-tick.C:
		}
		if !s.waiting(ctx) {
			return
		}
	}
}

// waiting settles until nothing waits; false when ctx ended first.
func (s *Settler) waiting(ctx context.Context) bool {
	pause := settlePauseMin
	for {
		started, most := time.Now(), s.atOnce()
		n, err := s.once(ctx, most)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			s.settleErrors.Add(1)
			s.trouble.Is("settling", "settling failed", err)
			// One shard's trouble does not slow the others down.
			if n == 0 && !wait.SleepOr(ctx, pause, s.settleKick) {
				return false
			}
			pause = min(2*pause, settlePauseMax)
		case n < most:
			s.trouble.Over("settling", "settling works again")
			// Entries that came meanwhile wait for company again: a steady stream of claims
			// would else be settled in transactions of a few rows, without an end.
			return true
		default:
			pause = settlePauseMin
			// The rush comes first: the processors that settling leaves alone
			// answer claims. A caller that waits for a claim to be settled wakes it.
			if !s.restInRush(ctx, s.settleRest(time.Since(started))) {
				return false
			}
		}
	}
}

// once settles up to so many entries from all shards in one transaction and
// returns how many it settled.
func (s *Settler) once(ctx context.Context, most int) (int, error) {
	s.alone.Lock()
	defer s.alone.Unlock()
	var batches []Batch
	var shards []*Shard
	total := 0
	var readErr error
	for _, t := range s.inTurn() {
		if total >= most {
			break
		}
		b, err := s.readBatch(ctx, t, most-total, false)
		if err != nil {
			t.progress.noteAttempt(err)
			readErr = errors.Join(readErr, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if len(b.Entries) == 0 {
			t.progress.noteAttempt(nil)
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
		if refusesEntry(err) {
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

// inTurn returns the shards that this node settles, in the order of this round. Each second round begins with
// another shard, so that one which fills every batch does not keep the others waiting. In the rounds between, shards
// that a caller waits for come first: units on their way to another shard wait until what was granted before is settled.
func (s *Settler) inTurn() []*Shard {
	var held, wanted []*Shard
	s.turn++
	favour := s.turn%2 == 0
	for t := range s.registry.eachSettling {
		if favour && t.progress.isWanted() {
			wanted = append(wanted, t)
		} else {
			held = append(held, t)
		}
	}
	return slices.Concat(rotated(wanted, s.turn/2), rotated(held, s.turn/2))
}

// rotated is the list with another element first for each n.
func rotated(list []*Shard, n int) []*Shard {
	if len(list) == 0 {
		return nil
	}
	first := n % len(list)
	return slices.Concat(list[first:], list[:first])
}

// readBatch reads what a shard's journal has after its position. Nothing is read
// while the journal is of another epoch than the one that this node has opened,
// unless tail says that this node has raised the epoch to settle what is left.
func (s *Settler) readBatch(ctx context.Context, t *Shard, limit int, tail bool) (Batch, error) {
	fence, from := t.progress.fenced()
	if limit <= 0 || fence == 0 {
		return Batch{}, nil
	}
	st, err := s.registry.glance(ctx, t)
	switch {
	case err == nil && !tail && (!from.Before(st.Head) && !from.Before(t.progress.want()) || st.Head.Epoch != fence):
		return Batch{}, nil
	case errors.Is(err, dibs.ErrNotOpen) && !tail:
		end, err := s.engine.JournalEnd(ctx, t.ID)
		if err != nil || end.Epoch != fence {
			return Batch{}, err
		}
	case err != nil && !errors.Is(err, dibs.ErrNotOpen):
		return Batch{}, err
	}
	entries, err := s.engine.ReadJournal(ctx, t.ID, from, limit)
	if err != nil {
		return Batch{}, fmt.Errorf("dibs: reading the journal of shard %s: %w", t.ID, err)
	}
	if len(entries) == 0 || !dibs.Continues(from, &entries[0]) {
		// While this node stood still another one may have settled what follows, and
		// trimmed it.
		if same, err := s.askPosition(ctx, t); err != nil || !same || len(entries) == 0 {
			return Batch{}, err
		}
	}
	return Batch{
		Campaign: t.l.Def(), Shard: t.ID, Fence: fence, From: from,
		To: entries[len(entries)-1].Cursor, Entries: entries, UnknownTransfers: t.progress.waitedTooLong(),
	}, nil
}

// settleBatches writes batches in one transaction and moves their positions.
func (s *Settler) settleBatches(ctx context.Context, batches []Batch, shards []*Shard) (err error) {
	n := 0
	for i := range batches {
		n += len(batches[i].Entries)
	}
	ctx, end := begin(ctx, s.tracer, "settle", slog.Int("dibs.entries", n), slog.Int("dibs.shards", len(batches)))
	defer func() { end(err) }()
	started := time.Now()
	if err := s.ledger.Settle(ctx, batches); err != nil {
		return s.settleFailed(ctx, batches, shards, err)
	}
	for i, t := range shards {
		t.progress.moveTo(batches[i].Fence, &batches[i].Entries[len(batches[i].Entries)-1])
		s.tellSettled(ctx, t)
		s.noticeLowStock(ctx, t.l)
		if len(t.l.Shards) > 1 && hasTransfer(batches[i].Entries) {
			wait.Kick(s.outboxKick)
		}
	}
	s.settled.Add(int64(n))
	s.settleBatchCount.Add(1)
	took := int64(time.Since(started))
	s.settleNanos.Add(took)
	s.settleTimes.Observe(took)
	s.settleSizes.Observe(int64(n))
	return nil
}

// hasTransfer reports whether units leave for another shard by one of the entries.
func hasTransfer(entries []dibs.Entry) bool {
	for i := range entries {
		if e := &entries[i]; e.Kind == dibs.EntryAdjust && e.Quantity < 0 {
			if _, ok := dibs.TransferOf(e.Ref); ok {
				return true
			}
		}
	}
	return false
}

// settleFailed notes the error. When another settler has moved a position, this
// node goes on from there; when the epoch was raised, it opens the shard again.
func (s *Settler) settleFailed(ctx context.Context, batches []Batch, shards []*Shard, cause error) error {
	for i, t := range shards {
		if len(shards) == 1 {
			// Among several, it is not known yet whose fault it is.
			t.progress.noteAttempt(cause)
			if errors.Is(cause, dibs.ErrGap) {
				s.loader.halt(t.l.Def(), cause)
			}
			if errors.Is(cause, dibs.ErrFenced) {
				s.loader.fencedOff(t, batches[i].Fence)
			}
		}
		if !errors.Is(cause, dibs.ErrPositionMoved) {
			continue
		}
		if _, err := s.askPosition(ctx, t); err != nil {
			return errors.Join(cause, err)
		}
	}
	return cause
}

// settleTail settles what a shard's journal has now. Unless units of unknown transfers are taken too, that ends with
// ErrNotLeft where units have arrived that have not left another shard as far as the ledger
// knows.
func (s *Settler) settleTail(ctx context.Context, t *Shard, unknownTransfers bool) error {
	s.alone.Lock()
	defer s.alone.Unlock()
	// A shard that is open may go on for as long as a rush lasts.
	end, err := s.engine.JournalEnd(ctx, t.ID)
	if err != nil {
		return fmt.Errorf("dibs: reading the journal of shard %s: %w", t.ID, err)
	}
	for t.At().Before(end) {
		b, err := s.readBatch(ctx, t, s.batch, true)
		if err != nil || len(b.Entries) == 0 {
			return err
		}
		b.UnknownTransfers = unknownTransfers
		err = s.settleBatches(ctx, []Batch{b}, []*Shard{t})
		if refusesEntry(err) {
			_, err = s.isolate(ctx, b, t)
		}
		// Another node settles it too: it goes on from where that one is.
		if err != nil && !(errors.Is(err, dibs.ErrPositionMoved) && s.engine.Shared()) {
			return err
		}
	}
	return nil
}

// settlePauseMin and settlePauseMax bound the wait after a failed attempt to settle.
const (
	settlePauseMin = 20 * time.Millisecond
	settlePauseMax = 2 * time.Second
)

// settleTick is how often settling looks for entries that no engine has told it of.
const settleTick = time.Second

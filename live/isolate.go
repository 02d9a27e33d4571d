package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// refusesEntry reports whether a batch was refused for one of its entries alone.
func refusesEntry(err error) bool {
	return errors.Is(err, dibs.ErrPoison) || errors.Is(err, ErrNotLeft)
}

// isolate settles a batch that the ledger refused up to the entry that is to
// blame, and sets that one aside, unless it has to wait: ErrNotLeft. It returns how many
// entries that were; the rest is settled as usual.
func (s *Settler) isolate(ctx context.Context, b Batch, t *Shard) (int, error) {
	done := 0
	for len(b.Entries) > 1 {
		half := b.UpTo(len(b.Entries) / 2)
		switch err := s.settleBatches(ctx, []Batch{half}, []*Shard{t}); {
		case err == nil:
			done += len(half.Entries)
			b.From, b.Entries = half.To, b.Entries[len(half.Entries):]
		case refusesEntry(err):
			b = half
		default:
			return done, err
		}
	}
	// It was refused in company; alone it may be another matter.
	err := s.settleBatches(ctx, []Batch{b}, []*Shard{t})
	if errors.Is(err, dibs.ErrPoison) {
		err = s.setAside(ctx, b, t, err)
	}
	if err != nil {
		return done, err
	}
	return done + 1, nil
}

// setAside puts a batch's only entry into quarantine.
func (s *Settler) setAside(ctx context.Context, b Batch, t *Shard, cause error) error {
	before, err := s.ledger.CountQuarantined(ctx)
	if err != nil {
		return err
	}
	if before[t.ID] >= maxQuarantined {
		t.progress.noteAttempt(errTooMany)
		return fmt.Errorf("shard %s: %w: %w", t.ID, errTooMany, cause)
	}
	if err := s.ledger.Quarantine(ctx, b, cause.Error()); err != nil {
		return s.settleFailed(ctx, []Batch{b}, []*Shard{t}, errors.Join(err, cause))
	}
	e := &b.Entries[0]
	// Once, by the node that set it aside: readiness and metrics go on saying it.
	s.log.Error("a journal entry is in quarantine: the ledger cannot take it", "campaign", b.Campaign.ID,
		"position", dibs.Position{ShardID: t.ID, Cursor: e.Cursor}.String(), "user", e.UserID, "quantity", e.Quantity, "items", e.Items, "err", cause)
	s.quarantine.ReadQuarantine(ctx)
	t.progress.moveTo(b.Fence, e)
	s.tellSettled(ctx, t)
	// The entries behind it have waited long enough.
	wait.Kick(s.settleKick)
	return nil
}

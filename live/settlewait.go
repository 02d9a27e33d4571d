package live

import (
	"context"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// ErrStill says that nothing was settled for as long as a caller waits.
var ErrStill = errors.New("dibs: settling stands still")

// settlePatience is how long someone waits for a claim to be settled while
// nothing is being settled at all.
const settlePatience = 10 * time.Second

// SettleTo returns when a shard is settled up to a place. It gives up when ctx
// ends, or when nothing was settled for the ledger's timeout.
func (s *Settler) SettleTo(ctx context.Context, t *Shard, place dibs.Cursor) error {
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
			return dibs.Unavail(dibs.EffectNone, errors.Join(ErrStill, lastErr))
		}
		if t.wanted.Before(place) {
			t.wanted = place
		}
		follow := !t.Held.Load() && !t.follower
		t.follower = t.follower || follow
		t.mu.Unlock()
		if follow {
			// Another node settles the shard: the ledger tells how far it is.
			go s.followPosition(t)
		}
		t.Rouse()
		wait.Kick(s.settleKick)
		still := time.NewTimer(s.ledgerTimeout)
		select {
		case <-moved:
			still.Stop()
		case <-still.C:
			return dibs.Unavail(dibs.EffectNone, errors.Join(ErrStill, lastErr))
		case <-ctx.Done():
			still.Stop()
			return dibs.Unavail(dibs.EffectNone, errors.Join(ctx.Err(), lastErr))
		}
	}
}

// SettleAll settles what the live shards of a campaign have granted so far.
func (s *Settler) SettleAll(ctx context.Context, c *dibs.Campaign) error {
	l, err := s.loader.LiveOf(ctx, c)
	if err != nil || l == nil {
		return err
	}
	for _, t := range l.Shards {
		st, err := s.engine.Stats(ctx, t.Id)
		if errors.Is(err, dibs.ErrNotOpen) {
			continue
		}
		if err != nil {
			return dibs.AsUnavailable(err, dibs.EffectNone)
		}
		if err := s.SettleTo(ctx, t, st.Head); err != nil {
			return err
		}
	}
	return nil
}

// followEvery is how often the ledger is asked how far another node's settling
// is, while somebody waits for it.
const FollowEvery = 20 * time.Millisecond

// followPosition asks the ledger for a shard's position until it is where it
// was wanted, or for as long as anyone would wait.
func (s *Settler) followPosition(t *Shard) {
	ctx, cancel := context.WithTimeout(s.life, s.ledgerTimeout)
	defer cancel()
	for again := true; again; {
		s.readPosition(ctx, t)
		over := !wait.Sleep(ctx, FollowEvery)
		t.mu.Lock()
		again = !over && t.position.Before(t.wanted) && !t.Held.Load()
		t.follower = again
		t.mu.Unlock()
	}
}

// readPosition takes a shard's position from the ledger.
func (s *Settler) readPosition(ctx context.Context, t *Shard) {
	same, err := s.askPosition(ctx, t)
	if err != nil || same {
		t.failed(err)
	}
}

// askPosition takes a shard's position from the ledger's row, and reports whether
// this node had it right. An answer that comes after this node has settled on says
// nothing any more: the journal may have been trimmed behind its back.
func (s *Settler) askPosition(ctx context.Context, t *Shard) (same bool, err error) {
	fence, position := t.place()
	totals, err := s.ledger.Totals(ctx, t.Id)
	switch {
	case err != nil:
		return false, err
	case fence != totals.Epoch:
		s.loader.fencedOff(ctx, t, fence)
	case position != totals.Position:
		t.moveFrom(fence, position, totals.Position)
	}
	return position == totals.Position, nil
}

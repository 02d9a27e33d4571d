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

// SettleTo returns when a shard is settled up to a place. It gives up when ctx
// ends, or when nothing was settled for the ledger's timeout.
func (s *Settler) SettleTo(ctx context.Context, t *Shard, place dibs.Cursor) error {
	before, _ := t.progress.failure()
	for {
		w := t.progress.wait(place, before)
		if w.reached {
			return nil
		}
		if w.halted {
			return dibs.Unavail(dibs.EffectNone, errors.Join(ErrStill, w.err))
		}
		if !t.Settles() && t.progress.follow() {
			// Another node settles the shard: the ledger tells how far it is.
			go s.followPosition(t)
		}
		t.Wake()
		wait.Kick(s.settleKick)
		still := time.NewTimer(s.ledgerTimeout)
		select {
		case <-w.moved:
			still.Stop()
		case <-still.C:
			return dibs.Unavail(dibs.EffectNone, errors.Join(ErrStill, w.err))
		case <-ctx.Done():
			still.Stop()
			return dibs.Unavail(dibs.EffectNone, errors.Join(ctx.Err(), w.err))
		}
	}
}

// SettleAll settles what the live shards of a campaign have granted so far.
func (s *Settler) SettleAll(ctx context.Context, c *dibs.Campaign) error {
	l, err := s.loader.EnsureLive(ctx, c)
	if err != nil || l == nil {
		return err
	}
	for _, t := range l.Shards {
		if err := s.SettleShard(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// SettleShard settles what a shard has granted so far; nothing of one that is not
// open.
func (s *Settler) SettleShard(ctx context.Context, t *Shard) error {
	st, err := s.engine.Stats(ctx, t.ID)
	if errors.Is(err, dibs.ErrNotOpen) {
		return nil
	}
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectNone)
	}
	return s.SettleTo(ctx, t, st.Head)
}

// SettleTransfer brings the units of a transfer to the ledger, which the donor's engine has
// decided, for certain when decided is set. The ledger takes units at once: in their turn
// they would wait for all that the donor granted before. Items have numbers that the journal
// alone knows: they wait for their turn, as does what the ledger does not take ahead.
func (s *Settler) SettleTransfer(ctx context.Context, from *Shard, a *dibs.Adjustment, decided bool) error {
	var ahead error
	if t, ok := dibs.TransferOf(a.Ref); ok && decided && a.Epoch != 0 && !from.l.Def().HasItems() {
		if ahead = s.ledger.SettleTransfer(ctx, from.ID, a.Epoch, t, -a.Delta); ahead == nil {
			wait.Kick(s.outboxKick)
			return nil
		}
	}
	if err := s.SettleShard(ctx, from); err != nil {
		return errors.Join(ahead, err)
	}
	return nil
}

// FollowEvery is how often the ledger is asked how far another node's settling
// is, while a caller waits for it.
const FollowEvery = 20 * time.Millisecond

// followPosition asks the ledger for a shard's position until it is where it
// was wanted, or for as long as anyone would wait.
func (s *Settler) followPosition(t *Shard) {
	ctx, cancel := context.WithTimeout(s.life, s.ledgerTimeout)
	defer cancel()
	for again := true; again; {
		s.readPosition(ctx, t)
		over := !wait.Sleep(ctx, FollowEvery)
		again = t.progress.followOn(!over && !t.Settles())
	}
}

// followOthers has the callers that wait for shards of a campaign told by the ledger, since
// another node, or a newer Campaign here, settles them from now on. nil does nothing.
func (s *Settler) followOthers(l *Campaign) {
	if l == nil {
		return
	}
	for _, t := range l.Shards {
		s.setSettles(t, false)
		if t.progress.follow() {
			go s.followPosition(t)
		}
	}
}

// readPosition takes a shard's position from the ledger.
func (s *Settler) readPosition(ctx context.Context, t *Shard) {
	same, err := s.askPosition(ctx, t)
	if err != nil || same {
		t.progress.noteAttempt(err)
	}
}

// Compare takes a shard's position from the ledger, and waits with patience while the shard
// is loaded again from a ledger that went back in time. Nothing else tells of that on a
// shard on which nothing happens, before it is trimmed.
func (s *Settler) Compare(ctx context.Context, t *Shard, p *Patience) error {
	if same, err := s.askPosition(ctx, t); err != nil || same {
		return err
	}
	for {
		if fence, _ := t.progress.fenced(); fence != 0 || !p.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// Patience is how long a caller waits for shards that are being opened, all of them
// together: OpenPatience in sum, since shards are opened side by side. The zero Patience
// has not waited yet. It is for one goroutine.
type Patience struct{ waited time.Duration }

// Wait waits a moment for a shard; false, at once, when the patience has ended, or ctx has.
func (p *Patience) Wait(ctx context.Context) bool {
	if p.waited >= OpenPatience {
		return false
	}
	begun := time.Now()
	defer func() { p.waited += time.Since(begun) }()
	return wait.Sleep(ctx, JoinEvery)
}

// askPosition takes a shard's position from the ledger's row, and reports whether
// this node had it right. An answer that comes after this node has settled on says
// nothing any more: the journal may have been trimmed behind its back.
func (s *Settler) askPosition(ctx context.Context, t *Shard) (same bool, err error) {
	fence, position := t.progress.fenced()
	totals, err := s.ledger.Totals(ctx, t.ID)
	switch {
	case err != nil:
		return false, err
	case fence != totals.Epoch, s.engine.Shared() && totals.Position.Before(position):
		// Another node has loaded the shard, or the ledger went back in time: what it has
		// forgotten, such as the items of a restock, the engine must not go on with.
		s.loader.fencedOff(t, fence)
	case position != totals.Position:
		t.progress.moveFrom(fence, position, totals.Position)
	}
	return position == totals.Position, nil
}

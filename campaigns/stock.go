package campaigns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// ChangeStock restocks a campaign or withdraws from it. ref makes the change
// happen once, however often it is sent; empty means this call is no repeat.
// A ref that was used for a change by another number is an *Error of KeyReused.
// A restock enters the ledger first and the engine by command; a withdrawal
// leaves the engine first and the ledger by settling.
func (s *Campaigns) ChangeStock(ctx context.Context, id string, ch dibs.StockChange, ref string) (*dibs.Campaign, error) {
	if ref == "" {
		ref = dibs.NewID("s-")
	}
	c, err := s.registry.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if c.Kind == dibs.RedPacket {
		return nil, dibs.FixedShares
	}
	if fs := ch.Faults(c); len(fs) > 0 {
		return nil, dibs.Invalid(fs...)
	}
	if made, err := s.stockChanged(ctx, c, ch.Delta, ref); err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	} else if made {
		return s.ledger.Campaign(ctx, id)
	}
	if c.State == dibs.EndedState || c.State != dibs.Draft && !s.now().Before(c.EndsAt) {
		return nil, dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign has ended", ZH: "活动已经结束"})
	}
	if ch.Delta < 0 && c.State != dibs.Draft {
		err = s.withdraw(ctx, c, ch, ref)
	} else {
		err = s.restockNow(ctx, id, ch, ref)
	}
	if err != nil {
		return nil, err
	}
	// Another call with this ref may have been quicker, with another number.
	if _, err := s.stockChanged(ctx, c, ch.Delta, ref); err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	return s.registry.Fresh(ctx, id)
}

// stockRef is how engine and ledger keep a caller's ref: it says the sign. A
// restock and a withdrawal by one ref are two changes to them: if they were one,
// the engine would take the second for a repeat, after the ledger has counted it.
// No idempotency key has a space in it.
func stockRef(ref string, delta int64) string {
	if delta < 0 {
		return ref + " -"
	}
	return ref
}

// stockChanged reports whether a change by a ref is in the ledger; KeyReused when
// the ref was used for another change only.
func (s *Campaigns) stockChanged(ctx context.Context, c *dibs.Campaign, delta int64, ref string) (bool, error) {
	// Earlier versions kept withdrawals under the ref alone.
	made, err := s.ledger.StockChanges(ctx, c.Number, ref, stockRef(ref, -1))
	if err != nil || len(made) == 0 || slices.Contains(made, delta) {
		return len(made) > 0, err
	}
	return false, refReused(made[0])
}

// refReused refuses a ref that was used for a change of the stock by another
// number.
func refReused(delta int64) error {
	return dibs.Fail(dibs.KeyReused, dibs.Textf("this key was used to change the stock by %+d", "该幂等键已用于另一次库存变更（%+d）", delta))
}

// restockNow changes the ledger's stock while nobody else changes the
// campaign: a draft must not be published in between.
func (s *Campaigns) restockNow(ctx context.Context, id string, ch dibs.StockChange, ref string) error {
	c, unlock, err := s.registry.Lock(ctx, id)
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectNone)
	}
	defer unlock()
	if ch.Delta < 0 && c.State != dibs.Draft {
		return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign was published meanwhile: send it again", ZH: "活动刚刚发布，请重新提交"})
	}
	return s.restock(ctx, c, ch, ref)
}

// restock adds stock, or changes a draft's either way.
func (s *Campaigns) restock(ctx context.Context, c *dibs.Campaign, ch dibs.StockChange, ref string) error {
	r := dibs.Restock{Shard: dibs.ShardID{Campaign: c.Number}, Ref: stockRef(ref, ch.Delta), Delta: ch.Delta, Items: ch.Items, Why: ch.Why}
	if ch.Delta > 0 && c.Stock.Kind == dibs.Codes {
		r.Items = dibs.GenerateCodes(c.Stock.Pattern, ch.Delta, nil)
	}
	if err := s.ledger.Restock(ctx, r); err != nil {
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	// The command is in the outbox: it reaches the engine whatever happens. It
	// is sent at once, so that the answer finds the stock there.
	sending, cancel := context.WithTimeout(ctx, s.ledgerTimeout)
	defer cancel()
	if err := s.outbox.Send(sending); err != nil {
		s.log.Warn("a restock waits in the outbox", "campaign", c.ID, "err", err)
		wait.Kick(s.outbox.OutboxKick)
	}
	return nil
}

// withdraw takes stock from the engine and waits until the ledger followed.
func (s *Campaigns) withdraw(ctx context.Context, c *dibs.Campaign, ch dibs.StockChange, ref string) error {
	if l, err := s.loader.LiveOf(ctx, c); err != nil || l == nil {
		return dibs.Unavail(dibs.EffectNone, cmp.Or(err, dibs.ErrNotOpen))
	}
	err := s.engine.Adjust(ctx, dibs.Adjustment{Shard: dibs.ShardID{Campaign: c.Number}, Ref: stockRef(ref, ch.Delta), Delta: ch.Delta})
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	if err := s.settler.SettleAll(ctx, c); err != nil {
		// The engine has withdrawn it, and the journal has it: a repeat with the
		// same key finds that out.
		return &dibs.Error{Reason: dibs.Unavailable, Effect: dibs.EffectUnknown, RetryAfter: time.Second, Cause: err}
	}
	// An engine that has lost it goes on in a later epoch, which is settled without it.
	made, err := s.stockChanged(ctx, c, ch.Delta, ref)
	if err == nil && !made {
		err = errWithdrawalLost
	}
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	return nil
}

var errWithdrawalLost = errors.New("dibs: the engine has lost a withdrawal before it was settled")

package dibs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// ChangeStock restocks a campaign or withdraws from it. ref makes the change
// happen once, however often it is sent; empty means this call is no repeat.
// A ref that was used for a change by another number is an *Error of KeyReused.
// A restock enters the ledger first and the engine by command; a withdrawal
// leaves the engine first and the ledger by settling.
func (s *Service) ChangeStock(ctx context.Context, id string, ch StockChange, ref string) (*Campaign, error) {
	if ref == "" {
		ref = newID("s-")
	}
	c, err := s.Campaign(ctx, id)
	if err != nil {
		return nil, err
	}
	if c.Kind == RedPacket {
		return nil, fixedShares
	}
	if fs := ch.faults(c); len(fs) > 0 {
		return nil, Invalid(fs...)
	}
	if made, err := s.stockChanged(ctx, c, ch.Delta, ref); err != nil {
		return nil, asUnavailable(err, EffectNone)
	} else if made {
		return s.ledger.Campaign(ctx, id)
	}
	if c.State == EndedState || c.State != Draft && !s.cfg.Now().Before(c.EndsAt) {
		return nil, Fail(InvalidState, Text{"the campaign has ended", "活动已经结束"})
	}
	if ch.Delta < 0 && c.State != Draft {
		err = s.withdraw(ctx, c, ch, ref)
	} else {
		err = s.restockNow(ctx, id, ch, ref)
	}
	if err != nil {
		return nil, err
	}
	// Another call with this ref may have been quicker, with another number.
	if _, err := s.stockChanged(ctx, c, ch.Delta, ref); err != nil {
		return nil, asUnavailable(err, EffectUnknown)
	}
	return s.freshCampaign(ctx, id)
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
func (s *Service) stockChanged(ctx context.Context, c *Campaign, delta int64, ref string) (bool, error) {
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
	return Fail(KeyReused, Textf("this key was used to change the stock by %+d", "该幂等键已用于另一次库存变更（%+d）", delta))
}

// restockNow changes the ledger's stock while nobody else changes the
// campaign: a draft must not be published in between.
func (s *Service) restockNow(ctx context.Context, id string, ch StockChange, ref string) error {
	c, unlock, err := s.lockCampaign(ctx, id)
	if err != nil {
		return asUnavailable(err, EffectNone)
	}
	defer unlock()
	if ch.Delta < 0 && c.State != Draft {
		return Fail(InvalidState, Text{"the campaign was published meanwhile: send it again", "活动刚刚发布，请重新提交"})
	}
	return s.restock(ctx, c, ch, ref)
}

// freshCampaign reads a campaign whose stock changed and shows it to this
// node's readers.
func (s *Service) freshCampaign(ctx context.Context, id string) (*Campaign, error) {
	c, err := s.ledger.Campaign(ctx, id)
	if err != nil {
		return nil, asUnavailable(err, EffectUnknown)
	}
	if v, ok := s.lives.Load(id); ok {
		v.(*live).renew(c)
	}
	s.catalog.Add(1)
	return c, nil
}

// faults checks a stock change against the campaign's kind of stock.
func (ch *StockChange) faults(c *Campaign) []Fault {
	fs := textFault("/why", ch.Why, false, MaxCommentLen)
	if len(ch.Items) > 0 {
		if c.Stock.Kind != Items {
			fs = append(fs, Fault{"/items", Text{"belongs to a campaign of items", "仅用于 items 类库存"}})
		} else if ch.Delta != 0 && ch.Delta != int64(len(ch.Items)) {
			fs = append(fs, Fault{"/delta", Text{"must be the number of items, or absent", "必须等于 items 的数量，或省略"}})
		}
		ch.Delta = int64(len(ch.Items))
		return append(fs, itemFaults("/items", ch.Items)...)
	}
	most := int64(MaxStock)
	if c.HasItems() {
		most = MaxItems
	}
	switch {
	case ch.Delta == 0:
		fs = append(fs, Fault{"/delta", Text{"is required and not 0", "必填且不能为 0"}})
	case ch.Delta > 0 && c.Stock.Kind == Items:
		fs = append(fs, Fault{"/items", Text{"is required to add to a campaign of items", "增加 items 类库存时必填"}})
	case ch.Delta < -most || ch.Delta > most-c.Stock.Total:
		fs = append(fs, Fault{"/delta", Textf("would leave the range of 0 to %d", "将超出 0 到 %d 的范围", most)})
	}
	return fs
}

// restock adds stock, or changes a draft's either way.
func (s *Service) restock(ctx context.Context, c *Campaign, ch StockChange, ref string) error {
	r := Restock{Shard: ShardID{Campaign: c.Number}, Ref: stockRef(ref, ch.Delta), Delta: ch.Delta, Items: ch.Items, Why: ch.Why}
	if ch.Delta > 0 && c.Stock.Kind == Codes {
		r.Items = generateCodes(c.Stock.Pattern, ch.Delta, nil)
	}
	if err := s.ledger.Restock(ctx, r); err != nil {
		return asUnavailable(err, EffectUnknown)
	}
	// The command is in the outbox: it reaches the engine whatever happens. It
	// is sent at once, so that the answer finds the stock there.
	sending, cancel := context.WithTimeout(ctx, s.cfg.LedgerTimeout)
	defer cancel()
	if err := s.sendCommands(sending); err != nil {
		s.log.Warn("a restock waits in the outbox", "campaign", c.ID, "err", err)
		kick(s.outboxKick)
	}
	return nil
}

// withdraw takes stock from the engine and waits until the ledger followed.
func (s *Service) withdraw(ctx context.Context, c *Campaign, ch StockChange, ref string) error {
	if l, err := s.liveOf(ctx, c); err != nil || l == nil {
		return Unavail(EffectNone, cmp.Or(err, ErrNotOpen))
	}
	err := s.engine.Adjust(ctx, Adjustment{Shard: ShardID{Campaign: c.Number}, Ref: stockRef(ref, ch.Delta), Delta: ch.Delta})
	if err != nil {
		return asUnavailable(err, EffectUnknown)
	}
	if err := s.settleAll(ctx, c); err != nil {
		// The engine has withdrawn it, and the journal has it: a repeat with the
		// same key finds that out.
		return &Error{Reason: Unavailable, Effect: EffectUnknown, RetryAfter: time.Second, Cause: err}
	}
	// An engine that has lost it goes on in a later epoch, which is settled without it.
	made, err := s.stockChanged(ctx, c, ch.Delta, ref)
	if err == nil && !made {
		err = errWithdrawalLost
	}
	if err != nil {
		return asUnavailable(err, EffectUnknown)
	}
	return nil
}

var errWithdrawalLost = errors.New("dibs: the engine has lost a withdrawal before it was settled")

// outboxPage is how many commands are read at a time.
const outboxPage = 100

// outboxLoop carries the ledger's commands to the engine.
func (s *Service) outboxLoop(ctx context.Context) {
	for {
		if err := s.sendCommands(ctx); err != nil && ctx.Err() == nil {
			s.counters.outboxErrors.Add(1)
			s.log.Error("sending commands to the engine failed", "err", err)
		}
		if !sleepOr(ctx, settleTick, s.outboxKick) {
			return
		}
	}
}

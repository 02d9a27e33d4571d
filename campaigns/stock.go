package campaigns

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// ChangeStock restocks a campaign or withdraws from it. ref makes the change
// happen once, however often it is sent; empty means this call is no repeat.
// It has 246 visible ASCII characters at most, and no spaces.
// A ref that was used for a change by another number is an *Error of KeyReused.
// A restock enters the ledger first and the engine by command; a withdrawal
// leaves the engine first and the ledger by settling.
func (s *Campaigns) ChangeStock(ctx context.Context, id string, ch dibs.StockChange, ref string) (*dibs.Campaign, error) {
	return s.changeStock(ctx, id, ch, ref, nil)
}

var errPublishedMeanwhile = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign was published meanwhile: send it again", ZH: "活动刚刚发布，请重新提交"})

// changeStock is ChangeStock. With of it refuses a campaign that is no draft: the
// caller may change drafts, and perhaps not restock one that was published meanwhile. Its error wraps
// ErrConflict when the draft's stock is another than of.
func (s *Campaigns) changeStock(ctx context.Context, id string, ch dibs.StockChange, ref string, of *int64) (*dibs.Campaign, error) {
	ref, err := newRef(ref, "s-")
	if err != nil {
		return nil, err
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
		// A change of before, by the same ref, may have been made.
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	} else if made {
		return s.cfg.Ledger.Campaign(ctx, id)
	}
	if c.State != dibs.Draft && c.Ended(s.cfg.Now()) {
		return nil, dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign has ended", ZH: "活动已经结束"})
	}
	if ch.Delta < 0 && c.State != dibs.Draft && of == nil {
		err = s.withdraw(ctx, c, ch, ref)
	} else if err = s.mayNumber(ctx, c); err == nil {
		err = s.restockNow(ctx, id, ch, ref, of)
	}
	if err != nil {
		return nil, err
	}
	// Another call with this ref may have been quicker, with another number.
	if _, err := s.stockChanged(ctx, c, ch.Delta, ref); err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	return s.registry.Reread(ctx, id)
}

// newRef is a caller's ref, or a new one that begins with a prefix.
func newRef(ref, prefix string) (string, error) {
	switch {
	case ref == "":
		return dibs.NewID(prefix), nil
	case !dibs.IsVisibleASCII(ref) || len(ref) > maxRef:
		return "", dibs.Invalid(dibs.Fault{Field: "/ref", Problem: dibs.Textf("must be 1-%d visible ASCII characters", "必须是 1-%d 个可见 ASCII 字符", maxRef)})
	}
	return ref, nil
}

// maxRef bounds a caller's ref, so that engines take it as a key with the most that is put
// behind it: see CommandRef.
var maxRef = dibs.MaxKeyLen - len(CommandRef("", dibs.MaxItems))

// stockRef is how engine and ledger keep a caller's ref: it says the sign. A
// restock and a withdrawal by one ref are two changes to them: if they were one,
// the engine would take the second for a repeat, after the ledger has counted it.
// No caller's ref has a space in it (newRef): all that one stands for is found by it.
func stockRef(ref string, delta int64) string {
	if delta < 0 {
		return ref + " -"
	}
	return ref
}

// PartRef is the ref of the n-th part, from 0, of a change that was divided over
// the shards of a campaign.
func PartRef(ref string, n int) string {
	if n == 0 {
		return ref
	}
	return ref + " " + strconv.Itoa(n)
}

// CommandRef is the ref of the n-th command, from 1, that tells engines of the items of an
// import. No change of the stock has the same, nor a part of one.
func CommandRef(ref string, n int) string { return ref + " /" + strconv.Itoa(n) }

// stockChanged reports whether a change by a ref is in the ledger; KeyReused when
// the ref was used for another change only.
func (s *Campaigns) stockChanged(ctx context.Context, c *dibs.Campaign, delta int64, ref string) (bool, error) {
	// Earlier versions kept withdrawals under the ref alone.
	made, err := s.cfg.Ledger.StockChanges(ctx, c.Number, ref)
	if err != nil || len(made) == 0 {
		return false, err
	}
	var added, taken int64
	for _, part := range made {
		added += max(part, 0)
		taken += min(part, 0)
	}
	if delta == added || delta == taken {
		return true, nil
	}
	return false, refReused(cmp.Or(added, taken))
}

// refReused refuses a ref that was used for a change of the stock by another
// number.
func refReused(delta int64) error {
	return dibs.Fail(dibs.KeyReused, dibs.Textf("this key was used to change the stock by %+d", "该幂等键已用于另一次库存变更（%+d）", delta))
}

// mayNumber returns nil when the ledger may number new items of a campaign. A ledger that was
// restored from an older backup lacks items that the engine has given, and would give their
// numbers again. Once entries are in quarantine it has been noticed, and the items that are
// missing have to be added again.
func (s *Campaigns) mayNumber(ctx context.Context, c *dibs.Campaign) error {
	if !c.HasItems() || c.State == dibs.Draft || s.quarantine.CountOf(c.Number) > 0 {
		return nil
	}
	return s.loader.Follows(ctx, c)
}

// restockNow changes the ledger's stock while nobody else changes the
// campaign: a draft must not be published in between.
func (s *Campaigns) restockNow(ctx context.Context, id string, ch dibs.StockChange, ref string, of *int64) error {
	c, unlock, err := s.registry.Lock(ctx, id)
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectNone)
	}
	defer unlock()
	if c.State != dibs.Draft && (ch.Delta < 0 || of != nil) {
		return errPublishedMeanwhile
	}
	return s.restock(ctx, c, ch, ref, of)
}

// restock adds stock, or changes a draft's either way.
func (s *Campaigns) restock(ctx context.Context, c *dibs.Campaign, ch dibs.StockChange, ref string, of *int64) error {
	r := Restock{Shard: dibs.ShardID{Campaign: c.Number}, Spread: c.Shards > 1, Ref: stockRef(ref, ch.Delta), Delta: ch.Delta, Items: ch.Items, Why: ch.Why, Of: of}
	if ch.Delta > 0 && c.Stock.Kind == dibs.Codes {
		r.Items = dibs.GenerateCodes(c.Stock.Pattern, ch.Delta, nil)
	}
	if err := s.cfg.Ledger.Restock(ctx, r); err != nil {
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	// The command is in the outbox: it reaches the engine whatever happens. It
	// is sent at once, so that the answer finds the stock there.
	sending, cancel := context.WithTimeout(ctx, s.cfg.LedgerTimeout)
	defer cancel()
	if err := s.outbox.Send(sending); err != nil {
		s.cfg.Logger.Warn("a restock waits in the outbox", "campaign", c.ID, "err", err)
		wait.Kick(s.outbox.OutboxKick)
	}
	return nil
}

// withdraw takes stock from the engine and waits until the ledger followed. Of a
// campaign with several shards it takes it from one, the same for each repeat, which
// knows the ref then; the others send it what is missing there.
func (s *Campaigns) withdraw(ctx context.Context, c *dibs.Campaign, ch dibs.StockChange, ref string) error {
	l, err := s.loader.EnsureLive(ctx, c)
	if err != nil || l == nil {
		return dibs.Unavail(dibs.EffectNone, cmp.Or(err, dibs.ErrNotOpen))
	}
	a := dibs.Adjustment{Shard: withdrawnFrom(c, ref), Ref: stockRef(ref, ch.Delta), Delta: ch.Delta}
	err = s.cfg.Engine.Adjust(ctx, a)
	for tries := 0; c.Shards > 1 && errors.Is(err, dibs.ErrInvalidState) && tries < gatherTries; tries++ {
		if err := s.cfg.Moving.Gather(ctx, c, a.Shard.Shard, -ch.Delta); err != nil {
			return err
		}
		// Users may have been faster.
		err = s.cfg.Engine.Adjust(ctx, a)
	}
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	if err := s.settler.SettleShard(ctx, l.Shard(a.Shard.Shard)); err != nil {
		// The engine has withdrawn it, and the journal has it: a repeat with the
		// same key finds that out.
		return &dibs.Error{Reason: dibs.Unavailable, Effect: dibs.EffectUnknown, RetryAfter: time.Second, Cause: err}
	}
	// An engine that has lost it goes on in a later epoch, which is settled without it.
	made, err := s.stockChanged(ctx, c, ch.Delta, ref)
	if err == nil && !made {
		err = errWithdrawalLost
	}
	return dibs.AsUnavailable(err, dibs.EffectUnknown)
}

// withdrawnFrom is the shard that a withdrawal is taken from: by the shards that the
// campaign began with, since a repeat may come when it has more.
func withdrawnFrom(c *dibs.Campaign, ref string) dibs.ShardID {
	first := dibs.Campaign{Number: c.Number, Shards: c.FirstShards()}
	return first.ShardOf(ref)
}

// gatherTries is how often what is to be withdrawn is brought together again, after
// users were faster.
const gatherTries = 3

var errWithdrawalLost = errors.New("dibs: the engine has lost a withdrawal before it was settled")

// Restock is a change of a campaign's stock.
type Restock struct {
	Shard dibs.ShardID
	// Spread divides the change over all shards of the campaign, so that they have
	// as much left as each other; the parts have refs of their own, see PartRef.
	Spread bool
	// Ref makes the change happen once.
	Ref string
	// Delta is positive; with items, their count. It may be negative while the
	// engine has never opened the shard.
	Delta int64
	Items []string
	Why   string
	// Of is the campaign's stock that Delta was counted from; nil for any.
	Of *int64
}

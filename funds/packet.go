package funds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// creditsAtOnce is the most claims credited in one transaction.
	creditsAtOnce = 2000
	// packetGrace is how long after its end a red packet is closed: longer than
	// clocks differ that are kept in step.
	packetGrace = 2 * time.Second
	// withdrawnAtOnce is the most shares that leave the engine in one step.
	withdrawnAtOnce = 5000
)

// creditClaims credits what was settled. While claims queue it rests as long as
// it works.
func (s *Funds) creditClaims(ctx context.Context, c *dibs.Campaign) error {
	for {
		started := time.Now()
		n, err := s.ledger.CreditClaims(ctx, c, dibs.Ms(s.now()), creditsAtOnce)
		if err != nil {
			return err
		}
		s.credited.Add(int64(n))
		if n < creditsAtOnce {
			return nil
		}
		if s.settler.ClaimsRush(ctx) && !wait.Sleep(ctx, time.Since(started)) {
			return ctx.Err()
		}
	}
}

// returnRemainder ends a red packet for good, takes what is left of it out of the
// engine, and returns the money to its sender. Each step may be made again, by
// any node, and after any crash: the shares that the engine gave out and those
// that were taken out of it are told apart by its journal's order.
//
// It returns true when it is too early for the last step.
func (s *Funds) returnRemainder(ctx context.Context, p *OpenPacket) (early bool, err error) {
	c, err := s.endPacket(ctx, p.Campaign)
	if err != nil || c.State != dibs.EndedState {
		return err == nil, err
	}
	if p.Left > 0 {
		if err := s.takeOut(ctx, c); err != nil {
			return false, err
		}
		if err := s.creditClaims(ctx, c); err != nil {
			return false, err
		}
	}
	home, err := s.ledger.ReturnRemainder(ctx, c, dibs.Ms(s.now()))
	if err == nil && home {
		s.log.Info("a red packet is closed: what was left of it is with its sender", "campaign", c.ID)
	}
	return err == nil && !home, err
}

// endPacket makes the end of a window one for good, so that nobody extends it
// while the remainder is on its way.
func (s *Funds) endPacket(ctx context.Context, c *dibs.Campaign) (*dibs.Campaign, error) {
	if c.State == dibs.EndedState {
		return c, nil
	}
	// Money that goes home cannot be called back: where the engine has the red packet,
	// it is over by the engine's clock, since this node's may be wrong. Shards may be on
	// servers with clocks of their own.
	for _, shard := range shardsOf(c) {
		st, err := s.engine.Stats(ctx, shard)
		switch {
		case errors.Is(err, dibs.ErrNotOpen):
		case err != nil:
			return nil, dibs.AsUnavailable(err, dibs.EffectNone)
		case st.Now < c.EndsAt.Add(packetGrace).UnixMilli():
			return c, nil
		}
	}
	return s.campaigns.Change(ctx, c.ID, func(c *dibs.Campaign) error {
		if c.Live() && !s.now().Before(c.EndsAt.Add(packetGrace)) {
			c.State = dibs.EndedState
		}
		return nil
	})
}

// shardsOf lists the shards of a campaign.
func shardsOf(c *dibs.Campaign) []dibs.ShardID {
	shards := make([]dibs.ShardID, c.Shards)
	for i := range shards {
		shards[i] = dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}
	}
	return shards
}

// takeOut withdraws all that the engine could still give, and waits until the
// ledger knows. Shares on their way from one shard to another are withdrawn when they
// have arrived: until then the ledger has them free, and the remainder waits.
func (s *Funds) takeOut(ctx context.Context, c *dibs.Campaign) error {
	if l := s.registry.Live(c.ID); l == nil || len(l.Shards) < c.Shards {
		if err := s.loader.Recall(ctx, c); err != nil {
			return dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
	}
	for _, shard := range shardsOf(c) {
		if err := s.takeOutOf(ctx, c, shard); err != nil {
			return err
		}
	}
	return nil
}

// takeOutOf is takeOut for one shard.
func (s *Funds) takeOutOf(ctx context.Context, c *dibs.Campaign, shard dibs.ShardID) error {
	if err := s.withdrawAll(ctx, c, shard); err != nil {
		return err
	}
	t := s.registry.Shard(shard)
	if t == nil {
		return dibs.Unavail(dibs.EffectUnknown, dibs.ErrNotOpen)
	}
	st, err := s.engine.Stats(ctx, shard)
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	return s.settler.SettleTo(ctx, t, st.Head)
}

// withdrawAll withdraws from a shard until it has nothing left.
func (s *Funds) withdrawAll(ctx context.Context, c *dibs.Campaign, shard dibs.ShardID) error {
	for {
		st, err := s.engine.Stats(ctx, shard)
		if errors.Is(err, dibs.ErrNotOpen) {
			// It has left the engine, or the engine was restarted: nothing else would
			// bring it back that is over. The next attempt does.
			s.registry.Drop(c)
		}
		if err != nil {
			return dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
		if st.Remaining == 0 {
			return nil
		}
		err = s.engine.Adjust(ctx, dibs.Adjustment{
			Shard: shard, Ref: remainderRef(c, shard, &st), Delta: -min(st.Remaining, withdrawnAtOnce),
		})
		// The last grabs may have been quicker: then there is less than was seen.
		if err != nil && !errors.Is(err, dibs.ErrInvalidState) {
			return dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
	}
}

// remainderRef names a step of taking a shard's remainder out, by how much there was
// before it, so that each step counts once. No two shards of a campaign share a ref.
// The sum of what remains and what has moved only ever falls, by grants and withdrawals:
// a shard that is given shares by another one may have as many left as once before,
// and has moved less by then.
func remainderRef(c *dibs.Campaign, shard dibs.ShardID, st *dibs.ShardStats) string {
	if c.Shards == 1 {
		return fmt.Sprintf("remainder from %d", st.Remaining)
	}
	return fmt.Sprintf("remainder of %d from %d moved %d", shard.Shard, st.Remaining, st.Moved)
}

// PacketFunds is where a red packet's money is, in minor units: Funded =
// Credited + Returned + Escrow.
type PacketFunds struct {
	Currency string
	// Funded is 0 until the red packet is published.
	Funded   int64
	Credited int64
	Returned int64
	Escrow   int64
	// ReturnedAt is when the remainder went back, all being credited by then;
	// zero while the red packet is open.
	ReturnedAt time.Time
}

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

// bringHome ends a red packet for good, takes what is left of it out of the
// engine, and returns the money to its sender. Each step may be made again, by
// any node, and after any crash: the shares that the engine gave out and those
// that were taken out of it are told apart by its journal's order.
//
// It returns true when it is too early for the last step.
func (s *Funds) bringHome(ctx context.Context, p *OpenPacket) (early bool, err error) {
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
	// What goes home cannot be called back: where the engine has the red packet, it
	// is over by the engine's clock, since this node's may be wrong.
	st, err := s.engine.Stats(ctx, dibs.ShardID{Campaign: c.Number})
	switch {
	case errors.Is(err, dibs.ErrNotOpen):
	case err != nil:
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	case st.Now < c.EndsAt.Add(packetGrace).UnixMilli():
		return c, nil
	}
	return s.campaigns.Change(ctx, c.ID, func(c *dibs.Campaign) error {
		if c.Live() && !s.now().Before(c.EndsAt.Add(packetGrace)) {
			c.State = dibs.EndedState
		}
		return nil
	})
}

// takeOut withdraws all that the engine could still give, and waits until the
// ledger knows. The name of a step says how much there was before it, so that
// each counts once.
func (s *Funds) takeOut(ctx context.Context, c *dibs.Campaign) error {
	if s.registry.Live(c.ID) == nil {
		if err := s.loader.Recall(ctx, c); err != nil {
			return dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
	}
	shard := dibs.ShardID{Campaign: c.Number}
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
			break
		}
		err = s.engine.Adjust(ctx, dibs.Adjustment{
			Shard: shard, Ref: fmt.Sprintf("remainder from %d", st.Remaining), Delta: -min(st.Remaining, withdrawnAtOnce),
		})
		// The last grabs may have been quicker: then there is less than was seen.
		if err != nil && !errors.Is(err, dibs.ErrInvalidState) {
			return dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
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

package dibs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ShareValue is the value of a red packet's share as an item: its id and its
// amount in minor units, `17:250`. The amount travels with the item, so that
// engines need to know nothing of money and an answer needs no look-up.
func ShareValue(id string, amount int64) string { return id + ":" + strconv.FormatInt(amount, 10) }

// ParseShare reads a share's value; false when it is none.
func ParseShare(value string) (id string, amount int64, ok bool) {
	id, digits, ok := strings.Cut(value, ":")
	if !ok || id == "" || digits == "" || digits[0] < '1' || digits[0] > '9' {
		return "", 0, false
	}
	amount, err := strconv.ParseInt(digits, 10, 64)
	return id, amount, err == nil && amount < MaxMinor
}

var (
	fixedShares = Fail(InvalidState, Text{
		"the shares of a red packet are fixed: end it, and what is left goes back to its sender",
		"红包的份额是固定的：结束活动后，剩余金额将退回发送方",
	})
	errNoSplit = errors.New("dibs: Config.Split is not set, which divides red packets")
)

// packetFaults checks what belongs to red packets alone.
func (c *Campaign) packetFaults() []Fault {
	var fs []Fault
	bad := func(field, en, zh string) { fs = append(fs, Fault{field, Text{en, zh}}) }
	if c.Kind != RedPacket {
		if c.SenderID != "" {
			bad("/sender_id", "belongs to a red packet", "仅用于红包")
		}
		if c.Packet != nil {
			bad("/stock/redpacket", "belongs to the kind redpacket", "仅用于 redpacket 类活动")
		}
		return fs
	}
	if c.Packet == nil && c.Stock.Kind != "" {
		bad("/stock", "must be redpacket for the kind redpacket", "redpacket 类活动的库存必须是 redpacket")
	}
	if c.SenderID != "" && !isID(c.SenderID) {
		fs = append(fs, Fault{"/sender_id", badID})
	}
	if c.Price != nil {
		bad("/price", "cannot stand in a red packet: nothing is to be paid", "红包无需支付，不能设置价格")
	}
	if c.PayWithin != 0 {
		bad("/pay_within", "cannot stand in a red packet: nothing is to be paid", "红包无需支付，不能设置支付期限")
	}
	if c.Shards > 1 {
		bad("/shards", "must be 1 for a red packet", "红包只能有 1 个分片")
	}
	return fs
}

// divide makes the values of a red packet's shares, and trusts nobody with the
// sum.
func (s *Service) divide(p *RedPacketSpec) ([]string, error) {
	if s.cfg.Split == nil {
		return nil, errNoSplit
	}
	shares, err := s.cfg.Split(*p)
	if err != nil {
		return nil, fmt.Errorf("dibs: dividing a red packet: %w", err)
	}
	values := make([]string, len(shares))
	left := p.Total.Amount
	for i, amount := range shares {
		if amount < p.Min || p.Max != 0 && amount > p.Max {
			return nil, fmt.Errorf("dibs: dividing a red packet: a share of %d is not from %d to %d", amount, p.Min, p.Max)
		}
		left -= amount
		values[i] = ShareValue(strconv.Itoa(i+1), amount)
	}
	if left != 0 || int64(len(shares)) != p.Count {
		return nil, fmt.Errorf("dibs: dividing a red packet: %d shares leave %d of the total", len(shares), left)
	}
	return values, nil
}

// openShares turns the values of a red packet's shares into their ids and the
// claim's amount.
func (c *Campaign) openShares(claim *Claim) {
	if c.Kind != RedPacket {
		return
	}
	ids := make([]string, len(claim.Items))
	sum := Money{Currency: c.Packet.Total.Currency}
	for i, value := range claim.Items {
		id, amount, ok := ParseShare(value)
		if !ok {
			// Damage is found by verifying, and shown as it is.
			id = value
		}
		ids[i] = id
		sum.Amount += amount
	}
	claim.Items, claim.Amount = ids, &sum
}

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
func (s *Service) creditClaims(ctx context.Context, c *Campaign) error {
	for {
		started := time.Now()
		n, err := s.ledger.CreditClaims(ctx, c, ms(s.cfg.Now()), creditsAtOnce)
		if err != nil {
			return err
		}
		s.counters.credited.Add(int64(n))
		if n < creditsAtOnce {
			return nil
		}
		if s.claimsRush(ctx) && !sleep(ctx, time.Since(started)) {
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
func (s *Service) bringHome(ctx context.Context, p *OpenPacket) (early bool, err error) {
	c, err := s.endPacket(ctx, p.Campaign)
	if err != nil || c.State != EndedState {
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
	home, err := s.ledger.ReturnRemainder(ctx, c, ms(s.cfg.Now()))
	if err == nil && home {
		s.log.Info("a red packet is closed: what was left of it is with its sender", "campaign", c.ID)
	}
	return err == nil && !home, err
}

// endPacket makes the end of a window one for good, so that nobody extends it
// while the remainder is on its way.
func (s *Service) endPacket(ctx context.Context, c *Campaign) (*Campaign, error) {
	if c.State == EndedState {
		return c, nil
	}
	// What goes home cannot be called back: where the engine has the red packet, it
	// is over by the engine's clock, since this node's may be wrong.
	st, err := s.engine.Stats(ctx, ShardID{Campaign: c.Number})
	switch {
	case errors.Is(err, ErrNotOpen):
	case err != nil:
		return nil, asUnavailable(err, EffectNone)
	case st.Now < c.EndsAt.Add(packetGrace).UnixMilli():
		return c, nil
	}
	return s.changeCampaign(ctx, c.ID, func(c *Campaign) error {
		if c.Live() && !s.cfg.Now().Before(c.EndsAt.Add(packetGrace)) {
			c.State = EndedState
		}
		return nil
	})
}

// takeOut withdraws all that the engine could still give, and waits until the
// ledger knows. The name of a step says how much there was before it, so that
// each counts once.
func (s *Service) takeOut(ctx context.Context, c *Campaign) error {
	if _, ok := s.lives.Load(c.ID); !ok {
		if err := s.recall(ctx, c); err != nil {
			return asUnavailable(err, EffectUnknown)
		}
	}
	shard := ShardID{Campaign: c.Number}
	for {
		st, err := s.engine.Stats(ctx, shard)
		if errors.Is(err, ErrNotOpen) {
			// It has left the engine, or the engine was restarted: nothing else would
			// bring it back that is over. The next attempt does.
			s.dropLive(c)
		}
		if err != nil {
			return asUnavailable(err, EffectUnknown)
		}
		if st.Remaining == 0 {
			break
		}
		err = s.engine.Adjust(ctx, Adjustment{
			Shard: shard, Ref: fmt.Sprintf("remainder from %d", st.Remaining), Delta: -min(st.Remaining, withdrawnAtOnce),
		})
		// The last grabs may have been quicker: then there is less than was seen.
		if err != nil && !errors.Is(err, ErrInvalidState) {
			return asUnavailable(err, EffectUnknown)
		}
	}
	t := s.settlingOf(shard)
	if t == nil {
		return Unavail(EffectUnknown, ErrNotOpen)
	}
	st, err := s.engine.Stats(ctx, shard)
	if err != nil {
		return asUnavailable(err, EffectUnknown)
	}
	return s.settleTo(ctx, t, st.Head)
}

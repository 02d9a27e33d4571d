package simulation

import (
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// claim is claim.lua for one claim.
// The checks come before the write, in the order of the script. A repeat and a
// refusal write nothing, so a server without memory answers them too. The deadline is
// by the true time, since node and server may have different clocks.
func (v *server) claim(req *dibs.EngineClaim, seen dibs.Cursor, deadline time.Time, r *request) (dibs.Decision, error) {
	s, err := v.open(req.Shard, seen)
	if err != nil {
		return dibs.Decision{}, err
	}
	if v.scene.now().After(deadline) {
		return dibs.Decision{}, dibs.Unavail(req.Effect(), errLate)
	}
	if req.Shards != 0 && req.Shards != s.def.shards && !v.scene.planted.AnyNumber {
		return dibs.Decision{}, dibs.ErrStale
	}
	now := v.now()
	d := s.decide(req, now)
	if d.Outcome != dibs.Granted || d.Replayed {
		return d, nil
	}
	if err := v.needs(); err != nil {
		return dibs.Decision{}, err
	}
	h := dibs.Holding{UserID: req.UserID, Key: req.Key, Quantity: req.Quantity, At: now}
	if s.def.payInMS > 0 {
		h.PayBy = now + s.def.payInMS
	}
	if s.def.items {
		h.Items = slices.Clone(s.free[:req.Quantity])
	}
	if err := v.write(req.Shard, s, dibs.Entry{
		Kind: dibs.EntryGrant, At: now, UserID: h.UserID, Key: h.Key, PayBy: h.PayBy, Reference: req.Reference, Quantity: h.Quantity, Items: h.Items,
	}, r); err != nil {
		return dibs.Decision{}, err
	}
	h.Cursor = s.head
	s.left -= h.Quantity
	s.take(h.Items)
	s.hold(h)
	v.scene.story.tell("%s: %s has %d of %s at %s, %d left", v.name, h.UserID, h.Quantity, req.Shard, h.Cursor, s.left)
	return dibs.Decision{Outcome: dibs.Granted, Grant: s.grantOf(req.Shard, s.claims[h.Cursor])}, nil
}

// decide answers a claim; a new grant is carried out by the caller.
// The order of the checks is part of the contract: a repeat finds its grant whatever
// state, window, stock and limit say by now.
func (s *shard) decide(req *dibs.EngineClaim, now int64) dibs.Decision {
	if req.OnlyKnown && len(s.users[req.UserID]) == 0 {
		return dibs.Decision{Outcome: dibs.NotFound}
	}
	if req.Key != 0 {
		for _, h := range s.users[req.UserID] {
			if h.Key != req.Key {
				continue
			}
			if h.Quantity != req.Quantity {
				return dibs.Decision{Outcome: dibs.KeyReused}
			}
			return dibs.Decision{Outcome: dibs.Granted, Replayed: true, Grant: s.grantOf(req.Shard, h)}
		}
	}
	if req.OnlyRepeat {
		return dibs.Decision{Outcome: dibs.Overloaded}
	}
	if !req.Late {
		switch {
		case s.def.state == dibs.PausedState:
			return dibs.Decision{Outcome: dibs.Paused}
		case s.def.state != dibs.Published, now >= s.def.endsMS:
			return dibs.Decision{Outcome: dibs.Ended}
		case now < s.def.startsMS:
			return dibs.Decision{Outcome: dibs.NotStarted}
		}
	}
	held, places := s.heldBy(req.Shard, req.UserID)
	limited := held+req.Quantity > s.def.limit
	// The stock comes before the limit, unless the campaign asks for the limit first.
	if s.left < req.Quantity && !(limited && s.def.limitFirst) {
		return dibs.Decision{Outcome: dibs.SoldOut, Remaining: s.left}
	}
	if limited {
		return dibs.Decision{Outcome: dibs.LimitReached, Held: places}
	}
	if len(s.users[req.UserID]) >= dibs.MaxClaimsPerUser {
		return dibs.Decision{Outcome: dibs.TooManyClaims}
	}
	return dibs.Decision{Outcome: dibs.Granted}
}

// heldBy returns what a user holds, newest first.
func (s *shard) heldBy(id dibs.ShardID, user string) (units int64, places []dibs.Position) {
	for _, h := range slices.Backward(s.users[user]) {
		if !h.Released {
			units += h.Quantity
			places = append(places, dibs.Position{ShardID: id, Cursor: h.Cursor})
		}
	}
	return units, places[:min(len(places), dibs.MaxHeldListed)]
}

func (s *shard) grantOf(id dibs.ShardID, h *dibs.Holding) dibs.Grant {
	g := dibs.Grant{
		Position: dibs.Position{ShardID: id, Cursor: h.Cursor}, UserID: h.UserID, Quantity: h.Quantity,
		At: h.At, PayBy: h.PayBy, Released: h.Released,
	}
	for _, n := range h.Items {
		g.Items = append(g.Items, s.values[n])
	}
	return g
}

package enginetest_test

import (
	"context"
	"runtime"
	"slices"

	"github.com/dibs-dev/dibs"
)

// Claim decides and writes under one mutex, so each claim is one atomic step. Faults
// that need a race give the mutex up in between (yield).
func (n *naive) Claim(ctx context.Context, req dibs.EngineClaim) (d dibs.Decision, err error) {
	n.mu.Lock()
	closed := n.closed
	n.mu.Unlock()
	if closed {
		return d, dibs.Unavail(req.Effect(), nil)
	}
	err = n.with(ctx, req.Shard, func(s *naiveShard, now int64) error {
		if n.faults.standsStill && len(s.claims) >= 12_000 {
			return dibs.Unavail(dibs.EffectNone, nil)
		}
		s.inFlight++
		defer func() { s.inFlight-- }()
		if req.Shards != 0 && req.Shards != s.c.Shards && !n.faults.shardsUnchecked {
			return dibs.ErrStale
		}
		d = n.decide(s, now, req)
		if d.Outcome != dibs.Granted || d.Replayed {
			return nil
		}
		d.Grant = n.grant(s, now, req)
		if n.faults.falseNone && d.Grant.Seq%16 == 0 {
			return &dibs.Error{Reason: dibs.Overloaded, Effect: dibs.EffectNone}
		}
		return nil
	})
	if n.faults.cancelledYes && ctx.Err() != nil {
		// The field's lock that failed and yet answered success.
		//nolint:nilerr // the planted fault: a cancelled request is told yes
		return dibs.Decision{Grant: dibs.Grant{Position: dibs.Position{ShardID: req.Shard, Cursor: dibs.Cursor{Epoch: 1, Seq: 2}}}}, nil
	}
	return d, err
}

// decide answers a claim; the caller carries a new grant out.
func (n *naive) decide(s *naiveShard, now int64, req dibs.EngineClaim) dibs.Decision {
	if n.faults.stateBeforeRepeat {
		if r := n.gate(s, now); r != dibs.Granted {
			return dibs.Decision{Outcome: r}
		}
	}
	if req.OnlyKnown && (len(s.users[req.UserID]) == 0 || n.faults.releasedUnknown && holdsNothing(s, req.UserID)) && !n.faults.strangersServed {
		return dibs.Decision{Outcome: dibs.NotFound}
	}
	if d, found := n.repeat(s, req); found {
		return d
	}
	if req.OnlyRepeat {
		return dibs.Decision{Outcome: dibs.Overloaded}
	}
	if r := n.gate(s, now); r != dibs.Granted && (!req.Late || n.faults.lateRefused) {
		return dibs.Decision{Outcome: r}
	}
	held, list := s.heldBy(req.UserID)
	if n.faults.limitPerBatch {
		held = s.counted[req.UserID]
		if s.inFlight == 1 {
			s.counted[req.UserID], _ = s.heldBy(req.UserID)
		}
	}
	if n.faults.racingLimit || n.faults.limitPerBatch {
		n.yield()
	}
	limited := dibs.Decision{Outcome: dibs.LimitReached, Held: list}
	if (n.faults.limitBeforeStock || s.c.LimitFirst() && !n.faults.stockBeforeLimit) && held+req.Quantity > s.c.LimitPerUser {
		return limited
	}
	if left := s.left; left < req.Quantity && !(n.faults.oneTooMany && left >= req.Quantity-1) || n.soldOutSticks(s) {
		s.soldOut = left == 0
		return dibs.Decision{Outcome: dibs.SoldOut, Remaining: left}
	}
	if held+req.Quantity > s.c.LimitPerUser {
		return limited
	}
	if d, refused := n.ofProduct(s, req, list); refused {
		return d
	}
	if n.tooMany(s, req.UserID) {
		return dibs.Decision{Outcome: dibs.TooManyClaims}
	}
	return dibs.Decision{Outcome: dibs.Granted}
}

// ofProduct refuses by the limit per product, if the campaign has one.
func (n *naive) ofProduct(s *naiveShard, req dibs.EngineClaim, list []dibs.Position) (d dibs.Decision, refused bool) {
	product := s.c.LimitedProduct()
	if product == "" || n.faults.productIgnored {
		return d, false
	}
	if n.uncounted(s) != 0 && !n.faults.uncountedGranted {
		return dibs.Decision{Outcome: dibs.Unavailable}, true
	}
	units := int64(0)
	for id, other := range n.counted {
		if other.c.LimitedProduct() == product && id.Shard == s.id.Shard {
			held, _ := other.heldBy(req.UserID)
			units += held
		}
	}
	if n.faults.racingProduct {
		n.yield()
	}
	return dibs.Decision{Outcome: dibs.LimitReached, Held: list, OfProduct: true}, units+req.Quantity > s.c.LimitPerProduct
}

// uncounted is a campaign that shares the limit and was not opened; 0 for none.
func (n *naive) uncounted(s *naiveShard) uint32 {
	for _, number := range s.sharing {
		if n.counted[dibs.ShardID{Campaign: number, Shard: s.id.Shard}] == nil {
			return number
		}
	}
	return 0
}

// counts reports whether claims of a shard that is not open count; see dibs.Abilities.
func (n *naive) counts(_ context.Context, id dibs.ShardID) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shards[id] == nil && n.counted[id] != nil, nil
}

// holdsNothing reports whether a user has given all of their claims back.
func holdsNothing(s *naiveShard, user string) bool {
	_, held := s.heldBy(user)
	return len(held) == 0
}

// tooMany reports whether a user has made all the claims that one may make.
func (n *naive) tooMany(s *naiveShard, user string) bool {
	claims := len(s.users[user])
	if n.faults.releasedUncounted {
		_, held := s.heldBy(user)
		claims = len(held)
	}
	return claims >= dibs.MaxClaimsPerUser && !n.faults.claimsUnbounded
}

// yield lets others in between a check and what follows from it.
func (n *naive) yield() {
	n.mu.Unlock()
	runtime.Gosched()
	n.mu.Lock()
}

func (n *naive) soldOutSticks(s *naiveShard) bool { return n.faults.soldOutSticks && s.soldOut }

// gate returns Granted while state and window allow new claims, or the reason why not.
func (n *naive) gate(s *naiveShard, now int64) dibs.Reason {
	ends := s.c.EndsAt.UnixMilli()
	if n.faults.endInclusive {
		ends++
	}
	switch {
	case s.c.State == dibs.PausedState:
		return dibs.Paused
	case s.c.State == dibs.EndedState, now >= ends:
		return dibs.Ended
	case now < s.c.StartsAt.UnixMilli():
		return dibs.NotStarted
	}
	return dibs.Granted
}

// repeat looks the key up among the user's claims; released ones count.
func (n *naive) repeat(s *naiveShard, req dibs.EngineClaim) (d dibs.Decision, found bool) {
	if req.Key == 0 || n.faults.repeatGranted {
		return d, false
	}
	if n.faults.racingRepeat {
		defer n.yield()
	}
	for _, h := range s.users[req.UserID] {
		if h.Key != req.Key || n.faults.repeatForgotten && h.Released {
			continue
		}
		if h.Quantity != req.Quantity && !n.faults.quantityIgnored {
			return dibs.Decision{Outcome: dibs.KeyReused}, true
		}
		return dibs.Decision{Outcome: dibs.Granted, Replayed: true, Grant: s.grantOf(h)}, true
	}
	return d, false
}

// heldBy returns what a user holds, newest first.
func (s *naiveShard) heldBy(user string) (units int64, places []dibs.Position) {
	for _, h := range slices.Backward(s.users[user]) {
		if !h.Released {
			units += h.Quantity
			places = append(places, dibs.Position{ShardID: s.id, Cursor: h.Cursor})
		}
	}
	return units, places[:min(len(places), dibs.MaxHeldListed)]
}

// grant takes stock and items, and journals the claim. Nothing in it can fail.
func (n *naive) grant(s *naiveShard, now int64, req dibs.EngineClaim) dibs.Grant {
	h := dibs.Holding{UserID: req.UserID, Key: req.Key, Quantity: req.Quantity, At: now}
	if s.c.PayWithin > 0 {
		h.PayBy = now + s.c.PayWithin.Milliseconds()
		if n.faults.payBySeconds {
			h.PayBy = now + int64(s.c.PayWithin.Seconds())
		}
	}
	s.left -= req.Quantity
	if s.c.HasItems() {
		h.Items = slices.Clone(s.free[:min(len(s.free), int(req.Quantity))])
		if !n.faults.itemTwice || len(s.claims)%3 != 2 {
			s.take(h.Items)
		}
	}
	e := dibs.Entry{
		Kind: dibs.EntryGrant, At: now, UserID: h.UserID, Key: h.Key, PayBy: h.PayBy, Reference: req.Reference, Quantity: h.Quantity, Items: h.Items,
	}
	if n.faults.referenceForgotten {
		e.Reference = ""
	}
	h.Cursor = n.write(s, e)
	s.hold(&h)
	return s.grantOf(&h)
}

// Release gives stock back once. A command of an older epoch is stale: the load has
// counted it.
func (n *naive) Release(ctx context.Context, r dibs.Release) error {
	return n.with(ctx, r.Claim.ShardID, func(s *naiveShard, now int64) error {
		if r.Epoch < s.head.Epoch && !n.faults.staleAccepted {
			return dibs.ErrStale
		}
		h := s.claims[r.Claim.Cursor]
		if h == nil {
			return dibs.ErrNotFound
		}
		if h.Released && !n.faults.releasedTwice {
			return nil
		}
		if !h.Released {
			s.granted -= h.Quantity
		}
		h.Released = !n.faults.allowanceKept
		s.left += h.Quantity
		s.free = append(s.free, h.Items...)
		for id, other := range n.shards {
			if n.faults.releasedElsewhere && id.Campaign == s.id.Campaign && other != s {
				other.left += h.Quantity
			}
		}
		n.write(s, dibs.Entry{Kind: dibs.EntryRelease, At: now, Quantity: h.Quantity, Items: h.Items, Target: h.Cursor})
		return nil
	})
}

// Adjust changes the stock once by its ref, which is looked up before anything can
// refuse the command.
func (n *naive) Adjust(ctx context.Context, a dibs.Adjustment) error {
	return n.with(ctx, a.Shard, func(s *naiveShard, now int64) error {
		if s.refs[a.Ref] && !n.faults.refTwice {
			return nil
		}
		if a.Delta > 0 && a.Epoch < s.head.Epoch && !n.faults.staleAccepted {
			return dibs.ErrStale
		}
		if a.Delta < 0 && a.Epoch > 0 && a.Epoch != s.head.Epoch && !n.faults.anyEpoch {
			if a.Epoch < s.head.Epoch {
				return dibs.ErrStale
			}
			return dibs.Unavail(dibs.EffectNone, dibs.ErrNotOpen)
		}
		if s.left+a.Delta < 0 {
			return dibs.Fail(dibs.InvalidState, dibs.Text{})
		}
		e := dibs.Entry{Kind: dibs.EntryAdjust, At: now, Quantity: a.Delta, Ref: a.Ref}
		if s.c.HasItems() && a.Delta < 0 {
			e.Items = slices.Clone(s.free[len(s.free)+int(a.Delta):])
			s.take(e.Items)
		}
		for i := range a.Items {
			e.Items = append(e.Items, a.Number(i))
			s.free = append(s.free, a.Number(i))
			for len(s.values) <= int(a.Number(i)) {
				s.values = append(s.values, "")
			}
			s.values[a.Number(i)] = a.Items[i]
		}
		s.left += a.Delta
		s.refs[a.Ref] = true
		if _, ok := dibs.TransferOf(a.Ref); ok && (a.Delta < 0 || !n.faults.arrivalUncounted) {
			s.moved -= a.Delta
		}
		n.write(s, e)
		return nil
	})
}

package enginetest

import (
	"math"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
)

var boundChecks = []Check{
	{"bounds/a user who claims and cancels is refused after MaxClaimsPerUser claims", checkClaimsBound},
	{"bounds/many claims of one user at once end at MaxClaimsPerUser", checkClaimsBoundTogether},
	{"bounds/a user with more claims than MaxClaimsPerUser is loaded, and refused more", checkClaimsBeyond},
}

// checkClaimsBound checks that a user who claims and cancels without end is refused
// after MaxClaimsPerUser claims. Engines keep released claims for repeats, so without
// this bound one user could make an engine's memory, and the time of a decision, grow
// without end. The bound is the last check: everything before it in the order of
// checks is still answered in its own way. An implementation counts claims, not units,
// counts released ones too, and knows the number again after a restart.
func checkClaimsBound(r *rig) {
	const key = dibs.MaxClaimsPerUser + 1
	o := r.offer(20, limit(9))
	first := o.grant("ann", 1, 1)
	o.release(first)
	last := first
	for n := uint64(2); n <= dibs.MaxClaimsPerUser; n++ {
		// A claim counts once, whatever its quantity.
		last = o.grant("ann", n, int64(1+n%9))
		// The last claim stays held, so that the limit can refuse below.
		if n < dibs.MaxClaimsPerUser {
			o.release(last)
		}
	}
	// At the bound: a new claim is refused with a key, without one, and for a late payer.
	// Repeats come first and are answered. A claim that is above the stock or the limit is
	// refused for that reason. None of it is journalled.
	atBound := func() {
		entries := len(o.journal(o.ledger.position))
		o.refuse("ann", key, 1, dibs.TooManyClaims)
		o.refuse("ann", 0, 1, dibs.TooManyClaims)
		late := o.request("ann", key, 1)
		late.Late = true
		o.decides(late, dibs.TooManyClaims)
		o.replay(1, first)
		o.replay(dibs.MaxClaimsPerUser, last)
		o.refuse("ann", 1, 2, dibs.KeyReused)
		repeat := o.request("ann", key, 1)
		repeat.OnlyRepeat = true
		o.decides(repeat, dibs.Overloaded)
		o.refuse("ann", key, 9, dibs.LimitReached)
		o.refuse("ann", key, 21, dibs.SoldOut)
		equal(r, "entries of refusals", len(o.journal(o.ledger.position)), entries)
	}
	atBound()
	o.release(last)
	o.counts(20, 0)
	o.refuse("ann", key, 1, dibs.TooManyClaims)
	// The state is checked before the bound.
	o.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	o.refuse("ann", key, 1, dibs.Paused)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.Published })
	// The bound belongs to one user: another one claims and cancels freely.
	last = o.grant("bob", 1, 1)
	o.release(last)
	// The loaded claims count as those that this engine granted do.
	for _, kill := range []bool{false, true} {
		r.restart(kill)
		o.refuse("ann", key, 1, dibs.TooManyClaims)
		o.replay(1, first)
		o.grant("bob", o.keyOf(kill), 1)
	}
	o.settle(math.MaxInt)
}

// keyOf is a key for each of two rounds.
func (o *offer) keyOf(second bool) uint64 {
	if second {
		return 3
	}
	return 2
}

// checkClaimsBoundTogether checks that claims which are decided together count for
// each other. An engine that counts once for a whole batch lets a user pass the bound
// by sending many claims at the same moment.
func checkClaimsBoundTogether(r *rig) {
	// 1,280 claims, above the bound of 1,000; stock and limit refuse none of them.
	const clients, each = 64, 20
	o := r.offer(2*dibs.MaxClaimsPerUser, limit(dibs.MaxLimitPerUser))
	var granted atomic.Int64
	r.together(clients, func(i int) {
		for n := range each {
			o.counted(&granted, "ann", uint64(i*each+n)+1, dibs.TooManyClaims)
		}
	})
	equal(r, "claims of one user", granted.Load(), dibs.MaxClaimsPerUser)
	o.counts(dibs.MaxClaimsPerUser, dibs.MaxClaimsPerUser)
	o.settle(math.MaxInt)
}

// checkClaimsBeyond opens a shard whose ledger holds more claims of a user than a user
// may make: an earlier version did not count them. An implementation loads them all,
// answers their repeats and reads, releases them, and refuses only new claims of that
// user. Refusing the load would stop a whole campaign because of one user.
func checkClaimsBeyond(r *rig) {
	const more = dibs.MaxClaimsPerUser + 300
	const stock = 10_000
	o := r.offerAfter(stock, limit(dibs.MaxLimitPerUser), func(l *ledger) {
		l.preload("ann", more, more/2, r.time().UnixMilli())
	})
	// The second round reads what a killed engine leaves: the same ledger and a tail.
	for range 2 {
		claims := o.ledger.claims
		held := o.stats().Granted
		o.refuse("ann", 1, 1, dibs.TooManyClaims)
		for _, h := range []*dibs.Holding{claims[0], claims[more/2], claims[more-1]} {
			o.replay(h.Key, grantOf(o.shard, h))
			o.finds(grantOf(o.shard, h), h.Released)
		}
		grants, err := o.eng.HoldingsOf(o.ctx, "ann")
		o.no(err, "list the holdings")
		o.that(len(grants) >= more/2, "%d claims are listed", len(grants))
		// One claim of another user and one release: held and left stay as they were. Even so
		// the user has too many claims, since released ones count.
		o.grant("bob", uint64(o.ledger.epoch), 1)
		o.release(grantOf(o.shard, claims[more/2+int(o.ledger.epoch)]))
		o.counts(stock-held, held)
		o.refuse("ann", 1, 1, dibs.TooManyClaims)
		r.restart(true)
	}
}

// grantOf is a settled claim as a grant.
func grantOf(shard dibs.ShardID, h *dibs.Holding) dibs.Grant {
	return dibs.Grant{
		Position: dibs.Position{ShardID: shard, Cursor: h.Cursor}, UserID: h.UserID,
		Quantity: h.Quantity, At: h.At, PayBy: h.PayBy, Released: h.Released,
	}
}

// preload puts n settled claims of one user into a ledger that has none, in the
// order of their keys from 6, so that smaller ones are new. Those before number
// held are released.
func (l *ledger) preload(user string, n, held int, atMS int64) {
	l.epoch++
	for i := range n {
		h := &dibs.Holding{
			Cursor: dibs.Cursor{Epoch: l.epoch, Seq: uint32(i) + 2}, UserID: user, Key: uint64(i) + 6,
			Quantity: 1, At: atMS, Released: i < held,
		}
		if l.campaign.PayWithin > 0 {
			h.PayBy = atMS + l.campaign.PayWithin.Milliseconds()
		}
		l.claims = append(l.claims, h)
		l.byUser[user] = append(l.byUser[user], h)
		if !h.Released {
			l.left--
		}
		l.position = h.Cursor
	}
}

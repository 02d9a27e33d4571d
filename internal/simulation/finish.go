package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// finish sells what is left, ends everything, and looks whether the engine is
// empty and all money is where it belongs.
// A ledger that went back, and from which nobody has gone on, does not know what is
// left, so nothing is sold after that.
func (j *judge) finish() {
	if j.wentBack() {
		return
	}
	for _, o := range j.book.offers {
		j.sellOut(o)
	}
	j.look()
	j.endAll()
	if j.isBroken() {
		return
	}
	j.look()
	j.skip(10 * time.Minute)
	j.story.tell("ten minutes later")
	j.empties()
	if !j.isBroken() {
		j.look()
		j.money()
	}
}

// clocksWrong reports whether a node's clock is so wrong that it takes for going
// on, or for over, what is not.
func (j *judge) clocksWrong() bool {
	return slices.ContainsFunc(j.sites, func(s *site) bool { return s.skew.Abs() > time.Minute })
}

// sellOut: strangers get what is left of a campaign, all of it, and then nothing.
func (j *judge) sellOut(o *offer) {
	p, err := j.placeOf(o)
	if err != nil || !j.sells(&p) || j.isBroken() {
		return
	}
	svc := j.saneSite().svc
	left := p.left()
	// Up to twenty claims more than there is stock. None of them may be granted, unless
	// stock comes back by itself.
	for i := int64(0); i < left+20; i++ {
		r := j.book.ask(&request{user: fmt.Sprintf("stranger%d", i+1), key: "last", offer: o, quantity: 1})
		res, err := j.insist(svc, r)
		if err == nil && res.Outcome == dibs.Granted {
			j.book.note(r, &res)
		}
		switch {
		case err != nil:
			j.broken("no undersell: %d of %s are left, and a claim is answered with %v", left-i, o.id, err)
			return
		case res.Outcome == dibs.SoldOut && i < left:
			j.broken("no undersell: %d of %s were left, and after %d it is sold out", left, o.id, i)
			return
		case res.Outcome == dibs.Granted && i >= left && !expires(o):
			j.broken("no oversell: %d of %s were left, and one more is granted", left, o.id)
			return
		case res.Outcome == dibs.SoldOut, res.Outcome == dibs.Ended && !j.sells(&p):
			return
		case res.Outcome != dibs.Granted:
			j.broken("no undersell: %d of %s are left, and a claim is answered with %s", left-i, o.id, res.Outcome)
			return
		}
	}
}

// insist claims until the answer is final: a claim at a shard that has none left may
// be told to try again while units are brought there, and one at a shard that an answer
// which came late has fenced off, while the shard is loaded again.
func (j *judge) insist(svc *node.Service, r *request) (res dibs.Result, err error) {
	for range 20 {
		res, err = svc.Claims.Claim(j.ctx, dibs.ClaimRequest{CampaignID: r.offer.id, UserID: r.user, Quantity: 1, Key: r.key})
		brought := errors.Is(err, dibs.ErrOverloaded) && (r.offer.shards > 1 || len(r.offer.more) > 0)
		if !brought && !errors.Is(err, dibs.ErrUnavailable) {
			break
		}
		j.spend(time.Second)
	}
	return res, err
}

// expires reports whether stock of an offer may come back by itself.
func expires(o *offer) bool { return o.payWithin > 0 }

// endAll ends the campaigns.
func (j *judge) endAll() {
	for _, o := range j.book.offers {
		c, err := j.base.ledger.Campaign(j.ctx, o.id)
		if err == nil && c.State != dibs.EndedState {
			_, err = j.saneSite().svc.Campaigns.End(j.ctx, o.id)
		}
		if err != nil {
			j.broken("%s cannot be ended: %v", o.id, err)
		}
	}
}

// empties looks whether the engine lets go of what is over, and red packets
// are closed.
// The engine keeps an ended campaign for minutes, so it is asked until settleWithin
// has passed.
func (j *judge) empties() {
	var why string
	for since := time.Now(); time.Since(since) < settleWithin; j.spend(time.Second) {
		if why = j.remains(); why == "" {
			return
		}
	}
	j.broken("all campaigns have been over for ten minutes, and %s", why)
}

// remains says what is not let go of; empty when all is. A node whose clock is wrong
// may hold a shard whose campaign it takes for going on.
func (j *judge) remains() string {
	if why := j.held(); why != "" && !j.clocksWrong() {
		return why
	}
	open, err := j.base.ledger.OpenPackets(j.ctx)
	if err != nil || len(open) > 0 {
		return fmt.Sprintf("%d red packets are open: %v", len(open), err)
	}
	return ""
}

// held names a shard that the engine holds. What is left of a load that reached the server
// late, and is on no list, is found by nobody: on a real server it expires within a day.
func (j *judge) held() string {
	v := j.current()
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, s := range v.mem.shards {
		if s.state == stateLoading && v.mem.listed[id] == 0 {
			continue
		}
		return fmt.Sprintf("the engine holds shard %s, which is %s", id, s.state)
	}
	return ""
}

// money: each user has what the shares in the ledger are worth, and the rest
// of each red packet is back.
// The wanted sums come from the shares in the claims, not from the accounts that they
// are compared with.
func (j *judge) money() {
	want := map[string]int64{}
	for _, o := range j.book.offers {
		if o.kind != dibs.RedPacket {
			continue
		}
		claims, err := j.claimsOf(o)
		if err != nil {
			j.broken("the claims of %s cannot be read: %v", o.id, err)
			return
		}
		given := int64(0)
		for _, c := range claims {
			for _, item := range c.Items {
				_, amount, _ := dibs.ParseShare(item)
				given += amount
				want[c.UserID] += amount
			}
		}
		f, err := j.base.ledger.PacketFunds(j.ctx, o.number)
		if err != nil || f.Credited != given || f.Returned != 100*o.stock-given || f.Escrow != 0 {
			j.broken("money is conserved: of %s shares of %d are claimed, and its funds are %+v: %v", o.id, given, f, err)
		}
	}
	for user, amount := range want {
		balances, err := j.base.ledger.Balances(j.ctx, user)
		if err != nil || len(balances) != 1 || balances[0].Amount != amount {
			j.broken("money is conserved: %s has shares of %d, and an account of %v: %v", user, amount, balances, err)
		}
	}
}

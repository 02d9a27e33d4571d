package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// finish sells what is left, ends everything, and looks whether the engine is
// empty and all money is where it belongs.
func (w *world) finish() {
	if w.wentBack() {
		return
	}
	for _, o := range w.book.offers {
		w.sellOut(o)
	}
	w.judge()
	w.endAll()
	if w.isBroken() {
		return
	}
	w.judge()
	w.mu.Lock()
	w.leap += 10 * time.Minute
	w.mu.Unlock()
	w.story.tell("ten minutes later")
	if !w.clocksWrong() {
		w.judgeEmpty()
	}
	if !w.isBroken() {
		w.judge()
		w.judgeMoney()
	}
}

// clocksWrong reports whether a node's clock is so wrong that it takes for going
// on, or for over, what is not.
func (w *world) clocksWrong() bool {
	return slices.ContainsFunc(w.sites, func(s *site) bool { return s.skew.Abs() > time.Minute })
}

// sellOut: strangers get what is left of a campaign, all of it, and then nothing.
func (w *world) sellOut(o *offer) {
	p, err := w.placeOf(o)
	if err != nil || !p.sells(w) || w.isBroken() {
		return
	}
	svc := w.saneSite().svc
	left := p.totals.StockLeft
	for i := int64(0); i < left+20; i++ {
		r := w.book.ask(&request{user: fmt.Sprintf("stranger%d", i+1), key: "last", offer: o, quantity: 1})
		res, err := svc.Claims.Claim(w.ctx, dibs.ClaimRequest{CampaignID: o.id, UserID: r.user, Quantity: 1, Key: r.key})
		if err == nil && res.Outcome == dibs.Granted {
			w.book.note(r, &res, time.Now())
		}
		switch {
		case err != nil:
			w.broken("no undersell: %d of %s are left, and a claim is answered with %v", left-i, o.id, err)
			return
		case res.Outcome == dibs.SoldOut && i < left:
			w.broken("no undersell: %d of %s were left, and after %d it is sold out", left, o.id, i)
			return
		case res.Outcome == dibs.Granted && i >= left && !expires(o):
			w.broken("no oversell: %d of %s were left, and one more is granted", left, o.id)
			return
		case res.Outcome == dibs.SoldOut, res.Outcome == dibs.Ended && !p.sells(w):
			return
		case res.Outcome != dibs.Granted:
			w.broken("no undersell: %d of %s are left, and a claim is answered with %s", left-i, o.id, res.Outcome)
			return
		}
	}
}

// expires reports whether stock of an offer may come back by itself.
func expires(o *offer) bool { return o.payWithin > 0 }

// endAll ends the campaigns.
func (w *world) endAll() {
	for _, o := range w.book.offers {
		c, err := w.base.ledger.Campaign(w.ctx, o.id)
		if err == nil && c.State != dibs.EndedState {
			_, err = w.saneSite().svc.Campaigns.End(w.ctx, o.id)
		}
		if err != nil {
			w.broken("%s cannot be ended: %v", o.id, err)
		}
	}
}

// judgeEmpty looks whether the engine lets go of what is over, and red packets
// are closed.
func (w *world) judgeEmpty() {
	var why string
	for since := time.Now(); time.Since(since) < settleWithin; w.spend(time.Second) {
		if why = w.remains(); why == "" {
			return
		}
	}
	w.broken("all campaigns have been over for ten minutes, and %s", why)
}

func (w *world) remains() string {
	v := w.current()
	v.mu.Lock()
	for id, s := range v.mem.shards {
		v.mu.Unlock()
		return fmt.Sprintf("the engine holds shard %s, which is %s", id, s.state)
	}
	v.mu.Unlock()
	open, err := w.base.ledger.OpenPackets(w.ctx)
	if err != nil || len(open) > 0 {
		return fmt.Sprintf("%d red packets are open: %v", len(open), err)
	}
	return ""
}

// judgeMoney: each user has what the shares in the ledger are worth, and the rest
// of each red packet is back.
func (w *world) judgeMoney() {
	want := map[string]int64{}
	for _, o := range w.book.offers {
		if o.kind != dibs.RedPacket {
			continue
		}
		claims, err := w.claimsOf(o)
		if err != nil {
			w.broken("the claims of %s cannot be read: %v", o.id, err)
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
		f, err := w.base.ledger.PacketFunds(w.ctx, o.number)
		if err != nil || f.Credited != given || f.Returned != 100*o.stock-given || f.Escrow != 0 {
			w.broken("money is conserved: of %s shares of %d are claimed, and its funds are %+v: %v", o.id, given, f, err)
		}
	}
	for user, amount := range want {
		balances, err := w.base.ledger.Balances(w.ctx, user)
		if err != nil || len(balances) != 1 || balances[0].Amount != amount {
			w.broken("money is conserved: %s has shares of %d, and an account of %v: %v", user, amount, balances, err)
		}
	}
}

package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
)

// user is somebody who wants things.
// A user is one goroutine's; requests of earlier rounds are in the book.
type user struct {
	client
	name string
	// round is when this is, and keys how many keys were used in it.
	round, keys int
}

func newUser(w *world, round, i int) *user {
	name := fmt.Sprintf("user%d", i+1)
	return &user{client: client{w, newDice(w.plan.seed, fmt.Sprint(name, " ", round))}, name: name, round: round}
}

// act claims, repeats, pays, cancels and has money returned until ctx ends.
func (u *user) act(ctx context.Context) {
	for u.idle(ctx, u.d.upTo(u.plan.pace)) {
		mine := u.mine()
		switch x := u.d.Float64(); {
		case x < 0.55 || len(mine) == 0:
			u.claimNew(ctx)
		case x < 0.7:
			u.claim(ctx, one(u.d, mine...))
		default:
			u.live(ctx, one(u.d, mine...))
		}
	}
}

// mine returns the user's requests so far.
func (u *user) mine() []*request {
	var mine []*request
	for _, r := range u.book.all() {
		if r.user == u.name {
			mine = append(mine, r)
		}
	}
	return mine
}

// claimNew claims under a new key, and repeats what is not answered, most times.
func (u *user) claimNew(ctx context.Context) {
	o := one(u.d, u.book.offers...)
	u.keys++
	r := u.book.ask(&request{
		user: u.name, key: fmt.Sprintf("%d.%d", u.round, u.keys), offer: o, quantity: 1 + u.d.Int64N(o.limit),
	})
	for range 4 {
		if answered := u.claim(ctx, r); answered || u.d.chance(0.2) || !u.idle(ctx, u.d.upTo(time.Second)) {
			return
		}
	}
}

// live does something with a claim that the user was told is theirs.
func (u *user) live(ctx context.Context, r *request) {
	yeses, _ := r.told()
	if len(yeses) == 0 {
		return
	}
	y := yeses[len(yeses)-1]
	switch x := u.d.Float64(); {
	case x < 0.5 && r.offer.price > 0:
		u.pay(ctx, y)
	case x < 0.75 && r.offer.price > 0:
		u.step(ctx, y, "cancelled", &y.cancelling, &y.cancelled, func(ctx context.Context, p *process) error {
			_, _, err := p.svc.Orders.Cancel(ctx, y.claim.ID, u.name, "c-"+y.claim.ID)
			return err
		})
	case x < 0.9 && r.offer.kind == dibs.Sale:
		u.step(ctx, y, "refunded", &y.refunding, &y.refunded, func(ctx context.Context, p *process) error {
			_, _, err := p.svc.Orders.Refund(ctx, y.claim.ID, dibs.RefundSpec{Restock: true}, "r-"+y.claim.ID)
			return err
		})
	}
}

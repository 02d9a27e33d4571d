package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
)

// user is somebody who wants things.
type user struct {
	w    *world
	name string
	d    *dice
	// round is when this is, and keys how many keys were used in it.
	round, keys int
}

func (w *world) newUser(round, i int) *user {
	name := fmt.Sprintf("user%d", i+1)
	return &user{w: w, name: name, d: newDice(w.plan.seed, fmt.Sprint(name, " ", round)), round: round}
}

// act claims, repeats, pays, cancels and has money returned until ctx ends.
func (u *user) act(ctx context.Context) {
	for u.w.idle(ctx, u.d.upTo(u.w.plan.pace)) {
		mine := u.mine()
		switch x := u.d.Float64(); {
		case x < 0.55 || len(mine) == 0:
			u.claimNew(ctx)
		case x < 0.7:
			u.w.claim(ctx, u.d, one(u.d, mine...))
		default:
			u.live(ctx, one(u.d, mine...))
		}
	}
}

// mine returns the user's requests so far.
func (u *user) mine() []*request {
	var mine []*request
	for _, r := range u.w.book.all() {
		if r.user == u.name {
			mine = append(mine, r)
		}
	}
	return mine
}

// claimNew claims under a new key, and repeats what is not answered, most times.
func (u *user) claimNew(ctx context.Context) {
	o := one(u.d, u.w.book.offers...)
	u.keys++
	r := u.w.book.ask(&request{
		user: u.name, key: fmt.Sprintf("%d.%d", u.round, u.keys), offer: o, quantity: 1 + u.d.Int64N(o.limit),
	})
	for range 4 {
		if answered := u.w.claim(ctx, u.d, r); answered || u.d.chance(0.2) || !u.w.idle(ctx, u.d.upTo(time.Second)) {
			return
		}
	}
}

// anySite returns a process that serves; nil when there is none.
func (w *world) anySite(d *dice) *process {
	first := d.IntN(len(w.sites))
	for i := range w.sites {
		if p := w.sites[(first+i)%len(w.sites)].running(); p != nil {
			return p
		}
	}
	return nil
}

// call runs a call of a client: it may end before the answer, by the client's
// impatience or the node's death. answered says that it has not.
func (w *world) call(ctx context.Context, d *dice, do func(ctx context.Context, p *process) error) (p *process, answered bool, err error) {
	if p = w.anySite(d); p == nil {
		return nil, false, nil
	}
	most := 10 * time.Second
	if d.chance(0.1) {
		most = d.upTo(time.Second)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	err = do(ctx, p)
	return p, !p.isDead(), err
}

// claim makes an attempt at a request; true when its answer is known.
func (w *world) claim(ctx context.Context, d *dice, r *request) bool {
	var res dibs.Result
	p, answered, err := w.call(ctx, d, func(ctx context.Context, p *process) (err error) {
		res, err = p.svc.Claims.Claim(context.WithValue(ctx, requestKey{}, r), dibs.ClaimRequest{
			CampaignID: r.offer.id, UserID: r.user, Quantity: r.quantity, Key: r.key,
		})
		return err
	})
	var e *dibs.Error
	switch {
	case p == nil:
		return false
	case !answered || err != nil && !(errors.As(err, &e) && e.Effect == dibs.EffectNone):
		r.unanswered()
		w.story.tell("%s: %s's %q on %s has no answer: %v", p.name, r.user, r.key, r.offer.id, err)
		return false
	case err != nil:
		w.story.tell("%s: %s's %q on %s is refused: %v", p.name, r.user, r.key, r.offer.id, err)
		return false
	case res.Outcome != dibs.Granted:
		w.story.tell("%s: %s's %q on %s is refused: %s", p.name, r.user, r.key, r.offer.id, res.Outcome)
		return true
	}
	y := w.book.note(r, &res, time.Now())
	w.story.tell("%s: %s's %q on %s is granted, %s, replayed %v", p.name, r.user, r.key, r.offer.id, y.claim.Position, res.Replayed)
	return true
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
		u.w.pay(ctx, u.d, y)
	case x < 0.75 && r.offer.price > 0:
		u.w.step(ctx, u.d, y, "cancelled", &y.cancelling, &y.cancelled, func(ctx context.Context, p *process) error {
			_, _, err := p.svc.Orders.Cancel(ctx, y.claim.ID, u.name, "c-"+y.claim.ID)
			return err
		})
	case x < 0.9 && r.offer.kind == dibs.Sale:
		u.w.step(ctx, u.d, y, "refunded", &y.refunding, &y.refunded, func(ctx context.Context, p *process) error {
			_, _, err := p.svc.Orders.Refund(ctx, y.claim.ID, dibs.RefundSpec{Restock: true}, "r-"+y.claim.ID)
			return err
		})
	}
}

// pay pays for a claim, in time or not.
func (w *world) pay(ctx context.Context, d *dice, y *yes) {
	w.step(ctx, d, y, "paid", &y.paying, &y.paid, func(ctx context.Context, p *process) error {
		_, _, err := p.svc.Orders.Confirm(ctx, y.claim.ID, dibs.PaymentSpec{Amount: y.claim.Amount, PaymentRef: "p-" + y.claim.ID})
		return err
	})
}

// step makes a step of a claim's life and notes that it was tried, and whether
// its answer was yes.
func (w *world) step(ctx context.Context, d *dice, y *yes, what string, trying, done *bool, do func(context.Context, *process) error) {
	y.mu.Lock()
	*trying = true
	y.mu.Unlock()
	p, answered, err := w.call(ctx, d, do)
	if p == nil {
		return
	}
	if answered && err == nil {
		y.mu.Lock()
		*done = true
		y.mu.Unlock()
	}
	w.story.tell("%s: %s is to be %s: answered %v, %v", p.name, y, what, answered, err)
}

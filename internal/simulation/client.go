package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
)

// client asks nodes for what people want, as their browsers and programs do: any node
// that serves, with a patience of its own. It is one goroutine's, as its dice are.
type client struct {
	*world
	d *dice
}

// anySite returns a process that serves; nil when there is none.
// It begins at a random node, so that repeats reach other nodes than the first
// attempt.
func (c *client) anySite() *process {
	first := c.d.IntN(len(c.sites))
	for i := range c.sites {
		if p := c.sites[(first+i)%len(c.sites)].running(); p != nil {
			return p
		}
	}
	return nil
}

// call runs a call of a client: it may end before the answer, by the client's
// impatience or the node's death. answered says that it has not.
// The end of a round does not cut a call off: it has up to 10 s of its own, and one
// in ten callers waits for less than a second. An answer from a process that has died
// meanwhile does not count, since no client would have received it.
func (c *client) call(ctx context.Context, do func(ctx context.Context, p *process) error) (p *process, answered bool, err error) {
	if p = c.anySite(); p == nil {
		return nil, false, nil
	}
	most := 10 * time.Second
	if c.d.chance(0.1) {
		most = c.d.upTo(time.Second)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	err = do(ctx, p)
	return p, !p.isDead(), err
}

// claim makes an attempt at a request; true when its answer is known.
// An error is a certain no only when its effect is none. After any other one the
// request may have been granted, and a claim of it in the ledger is no phantom.
func (c *client) claim(ctx context.Context, r *request) bool {
	var res dibs.Result
	p, answered, err := c.call(ctx, func(ctx context.Context, p *process) (err error) {
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
		c.story.tell("%s: %s's %q on %s has no answer: %v", p.name, r.user, r.key, r.offer.id, err)
		return false
	case err != nil:
		c.story.tell("%s: %s's %q on %s is refused: %v", p.name, r.user, r.key, r.offer.id, err)
		return false
	case res.Outcome != dibs.Granted:
		c.story.tell("%s: %s's %q on %s is refused: %s", p.name, r.user, r.key, r.offer.id, res.Outcome)
		return true
	}
	y := c.book.note(r, &res)
	c.story.tell("%s: %s's %q on %s is granted, %s, replayed %v", p.name, r.user, r.key, r.offer.id, y.claim.Position, res.Replayed)
	return true
}

// pay pays for a claim, in time or not.
func (c *client) pay(ctx context.Context, y *yes) {
	c.step(ctx, y, "paid", &y.paying, &y.paid, func(ctx context.Context, p *process) error {
		_, _, err := p.svc.Orders.Confirm(ctx, y.claim.ID, dibs.PaymentSpec{Amount: y.claim.Amount, PaymentRef: "p-" + y.claim.ID})
		return err
	})
}

// step makes a step of a claim's life and notes that it was tried, and whether
// its answer was yes.
func (c *client) step(ctx context.Context, y *yes, what string, trying, done *bool, do func(context.Context, *process) error) {
	y.mu.Lock()
	// It is set before the call: a step whose answer is lost may have been made all
	// the same.
	*trying = true
	y.mu.Unlock()
	p, answered, err := c.call(ctx, do)
	if p == nil {
		return
	}
	if answered && err == nil {
		y.mu.Lock()
		*done = true
		y.mu.Unlock()
	}
	c.story.tell("%s: %s is to be %s: answered %v, %v", p.name, y, what, answered, err)
}

// resume goes on until it is done, or the campaign is over: nobody leaves a
// campaign paused.
func (c *client) resume(ctx context.Context, o *offer) {
	for range 5 {
		p, answered, err := c.call(ctx, func(ctx context.Context, p *process) error {
			_, err := p.svc.Campaigns.Resume(ctx, o.id)
			return err
		})
		if p != nil {
			c.story.tell("%s: admin: %s resume: answered %v, %v", p.name, o.id, answered, err)
		}
		// ErrInvalidState says that the campaign is not paused any more, or is over.
		if answered && (err == nil || errors.Is(err, dibs.ErrInvalidState)) || !c.idle(ctx, time.Second) {
			return
		}
	}
}

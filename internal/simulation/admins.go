package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// admin is somebody who runs the campaigns.
type admin struct {
	w            *world
	d            *dice
	round, steps int
}

func (w *world) newAdmin(round int) *admin {
	return &admin{w: w, d: newDice(w.plan.seed, fmt.Sprint("admin ", round)), round: round}
}

// publish makes the campaigns of the plan, while nothing goes wrong.
func (w *world) publish() {
	d := newDice(w.plan.seed, "publish")
	for i := range w.plan.offers {
		o := &offer{offerPlan: w.plan.offers[i], id: fmt.Sprintf("offer%d", i+1)}
		for w.sites[0].running() == nil {
			w.spend(100 * time.Millisecond)
		}
		svc := w.sites[0].running().svc
		_, err := svc.Campaigns.Create(w.ctx, o.spec(w, d))
		if err == nil {
			_, err = svc.Campaigns.Publish(w.ctx, o.id)
		}
		if err == nil {
			var c *dibs.Campaign
			if c, err = w.base.ledger.Campaign(w.ctx, o.id); err == nil {
				o.number = c.Number
			}
		}
		if err != nil {
			w.broken("%s cannot be published: %v", o.id, err)
			return
		}
		w.book.offers = append(w.book.offers, o)
	}
}

// spec is the campaign as a merchant writes it.
func (o *offer) spec(w *world, d *dice) dibs.CampaignSpec {
	limit := o.limit
	s := dibs.CampaignSpec{
		ID: o.id, Kind: o.kind, Title: o.id, StartsAt: w.now().Add(-time.Minute), EndsAt: w.now().Add(o.window), Limit: &limit,
	}
	switch {
	case o.kind == dibs.RedPacket:
		s.Stock.RedPacket = &dibs.RedPacketSpec{Total: dibs.Money{Amount: 100 * o.stock, Currency: "CNY"}, Count: o.stock}
	case o.items:
		s.Stock.Items = itemsOf("seat", o.stock)
	default:
		units := o.stock
		s.Stock.Units = &units
	}
	if o.price > 0 {
		payWithin := dibs.Duration(o.payWithin)
		s.Price, s.PayWithin, s.LatePayment = &dibs.Money{Amount: o.price, Currency: "CNY"}, &payWithin, o.late
	}
	return s
}

// itemsOf makes items that no other call of another name makes.
func itemsOf(name string, n int64) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf("%s-%d", name, i+1)
	}
	return items
}

// act restocks, withdraws, pauses, extends and ends campaigns until ctx ends.
func (a *admin) act(ctx context.Context) {
	for a.w.idle(ctx, a.d.between(100*time.Millisecond, 2*time.Second)) {
		o := one(a.d, a.w.book.offers...)
		switch x := a.d.Float64(); {
		case x < 0.35 && o.kind != dibs.RedPacket:
			a.restock(ctx, o)
		case x < 0.55 && o.kind != dibs.RedPacket:
			a.withdraw(ctx, o)
		case x < 0.65 && o.kind != dibs.RedPacket && !o.items && a.w.plan.twice:
			a.both(ctx, o)
		case x < 0.75:
			a.pauseAndResume(ctx, o)
		case x < 0.85:
			a.extend(ctx, o)
		case x < 0.9 && a.round > 0:
			a.end(ctx, o)
		}
	}
}

// change begins a change of the stock.
func (a *admin) change(o *offer, delta int64) *stockChange {
	a.steps++
	c := &stockChange{ref: fmt.Sprintf("stock-%d.%d", a.round, a.steps), delta: delta}
	if o.items && delta > 0 {
		c.items = itemsOf(c.ref, delta)
	}
	return a.add(o, c)
}

func (a *admin) add(o *offer, c *stockChange) *stockChange {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes = append(o.changes, c)
	return c
}

// send sends a change of the stock, a few times as long as it is not answered.
func (a *admin) send(ctx context.Context, d *dice, o *offer, c *stockChange) {
	for range 3 {
		p, answered, err := a.w.call(ctx, d, func(ctx context.Context, p *process) error {
			ch := dibs.StockChange{Delta: c.delta, Items: c.items}
			if c.items != nil {
				ch.Delta = 0
			}
			_, err := p.svc.Campaigns.ChangeStock(ctx, o.id, ch, c.ref)
			return err
		})
		if p != nil {
			a.w.story.tell("%s: admin changes the stock of %s by %+d (%s): answered %v, %v", p.name, o.id, c.delta, c.ref, answered, err)
		}
		if p != nil && answered && (err == nil || errors.Is(err, dibs.ErrInvalidState)) {
			o.mu.Lock()
			c.done = err == nil
			o.mu.Unlock()
			return
		}
		if d.chance(0.3) || !a.w.idle(ctx, time.Second) {
			return
		}
	}
}

func (a *admin) restock(ctx context.Context, o *offer) {
	a.send(ctx, a.d, o, a.change(o, 1+a.d.Int64N(4)))
}

func (a *admin) withdraw(ctx context.Context, o *offer) {
	a.send(ctx, a.d, o, a.change(o, -1-a.d.Int64N(3)))
}

// both is what goes wrong at a merchant: two programs use one reference for
// opposite changes, at the same time.
func (a *admin) both(ctx context.Context, o *offer) {
	up := a.change(o, 1+a.d.Int64N(3))
	down := a.add(o, &stockChange{ref: up.ref, delta: -up.delta})
	var both sync.WaitGroup
	for _, c := range []*stockChange{up, down} {
		d := newDice(a.w.plan.seed, fmt.Sprint(c.ref, c.delta))
		both.Go(func() { a.send(ctx, d, o, c) })
	}
	both.Wait()
}

// state makes a change of a campaign's state.
func (a *admin) state(ctx context.Context, o *offer, what string, do func(context.Context, *process) error) bool {
	p, answered, err := a.w.call(ctx, a.d, do)
	if p != nil {
		a.w.story.tell("%s: admin: %s %s: answered %v, %v", p.name, o.id, what, answered, err)
	}
	return p != nil && answered && err == nil
}

func (a *admin) pauseAndResume(ctx context.Context, o *offer) {
	a.state(ctx, o, "pause", func(ctx context.Context, p *process) error {
		_, err := p.svc.Campaigns.Pause(ctx, o.id)
		return err
	})
	a.w.idle(ctx, a.d.upTo(time.Second))
	a.w.resume(ctx, a.d, o)
}

// resume goes on until it is done, or the campaign is over: nobody leaves a
// campaign paused.
func (w *world) resume(ctx context.Context, d *dice, o *offer) {
	for range 5 {
		p, answered, err := w.call(ctx, d, func(ctx context.Context, p *process) error {
			_, err := p.svc.Campaigns.Resume(ctx, o.id)
			return err
		})
		if p != nil {
			w.story.tell("%s: admin: %s resume: answered %v, %v", p.name, o.id, answered, err)
		}
		if answered && (err == nil || errors.Is(err, dibs.ErrInvalidState)) || !w.idle(ctx, time.Second) {
			return
		}
	}
}

func (a *admin) extend(ctx context.Context, o *offer) {
	ends := a.w.now().Add(a.d.between(time.Second, 2*time.Hour))
	a.state(ctx, o, "extend", func(ctx context.Context, p *process) error {
		_, err := p.svc.Campaigns.Patch(ctx, o.id, dibs.CampaignPatch{EndsAt: &ends})
		return err
	})
}

func (a *admin) end(ctx context.Context, o *offer) {
	done := a.state(ctx, o, "end", func(ctx context.Context, p *process) error {
		_, err := p.svc.Campaigns.End(ctx, o.id)
		return err
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = o.ended || done
}

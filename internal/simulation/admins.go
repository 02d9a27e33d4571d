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
// An admin is one goroutine's, as its dice are. Where two changes are sent at the
// same time, each has a client of its own.
type admin struct {
	client
	// round is when this is, and steps how many stock changes were made in it.
	round, steps int
}

func newAdmin(w *world, round int) *admin {
	return &admin{client: client{w, newDice(w.plan.seed, fmt.Sprint("admin ", round))}, round: round}
}

// publish makes the campaigns of the plan, while nothing goes wrong.
// It asks the first node and waits until that one serves. Nobody else acts yet, so a
// failure is a fault of the run.
func publish(w *world) {
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
	limit, shards := o.limit, o.shards
	// The window has begun a minute ago: the clocks of servers, which decide, are at
	// most 1.5 s off.
	s := dibs.CampaignSpec{
		ID: o.id, Kind: o.kind, Title: o.id, StartsAt: w.now().Add(-time.Minute), EndsAt: w.now().Add(o.window), Limit: &limit, Shards: &shards,
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
// Red packets are neither restocked nor withdrawn from. Nobody ends a campaign in the
// first round, so that there is something to sell in it.
func (a *admin) act(ctx context.Context) {
	for a.idle(ctx, a.d.between(100*time.Millisecond, 2*time.Second)) {
		o := one(a.d, a.book.offers...)
		switch x := a.d.Float64(); {
		case x < 0.35 && o.kind != dibs.RedPacket:
			a.restock(ctx, o)
		case x < 0.55 && o.kind != dibs.RedPacket:
			a.withdraw(ctx, o)
		case x < 0.65 && o.kind != dibs.RedPacket && !o.items && a.plan.twice:
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
// Every attempt has the same ref, so the change may count once only. ErrInvalidState
// is an answer too: the change was refused, and is not sent again. After any other
// failure the effect is unknown, and the judge asks the ledger.
func (c *client) send(ctx context.Context, o *offer, ch *stockChange) {
	for range 3 {
		p, answered, err := c.call(ctx, func(ctx context.Context, p *process) error {
			change := dibs.StockChange{Delta: ch.delta, Items: ch.items}
			if ch.items != nil {
				// A change names a number of units or its items, never both.
				change.Delta = 0
			}
			_, err := p.svc.Campaigns.ChangeStock(ctx, o.id, change, ch.ref)
			return err
		})
		if p != nil {
			c.story.tell("%s: admin changes the stock of %s by %+d (%s): answered %v, %v", p.name, o.id, ch.delta, ch.ref, answered, err)
		}
		if p != nil && answered && (err == nil || errors.Is(err, dibs.ErrInvalidState)) {
			o.mu.Lock()
			ch.done = err == nil
			o.mu.Unlock()
			return
		}
		if c.d.chance(0.3) || !c.idle(ctx, time.Second) {
			return
		}
	}
}

func (a *admin) restock(ctx context.Context, o *offer) {
	a.send(ctx, o, a.change(o, 1+a.d.Int64N(4)))
}

func (a *admin) withdraw(ctx context.Context, o *offer) {
	a.send(ctx, o, a.change(o, -1-a.d.Int64N(3)))
}

// both sends two opposite changes with one reference at the same time, as two faulty
// programs of a merchant might. The ledger must count at most one for each direction,
// and the engine what the ledger has.
func (a *admin) both(ctx context.Context, o *offer) {
	up := a.change(o, 1+a.d.Int64N(3))
	down := a.add(o, &stockChange{ref: up.ref, delta: -up.delta})
	var both sync.WaitGroup
	for _, c := range []*stockChange{up, down} {
		own := client{a.world, newDice(a.plan.seed, fmt.Sprint(c.ref, c.delta))}
		both.Go(func() { own.send(ctx, o, c) })
	}
	both.Wait()
}

// state makes a change of a campaign's state.
// The answer is told and not judged: the judge reads the state from the ledger.
func (a *admin) state(ctx context.Context, o *offer, what string, do func(context.Context, *process) error) {
	p, answered, err := a.call(ctx, do)
	if p != nil {
		a.story.tell("%s: admin: %s %s: answered %v, %v", p.name, o.id, what, answered, err)
	}
}

func (a *admin) pauseAndResume(ctx context.Context, o *offer) {
	a.state(ctx, o, "pause", func(ctx context.Context, p *process) error {
		_, err := p.svc.Campaigns.Pause(ctx, o.id)
		return err
	})
	a.idle(ctx, a.d.upTo(time.Second))
	a.resume(ctx, o)
}

func (a *admin) extend(ctx context.Context, o *offer) {
	ends := a.now().Add(a.d.between(time.Second, 2*time.Hour))
	a.state(ctx, o, "extend", func(ctx context.Context, p *process) error {
		_, err := p.svc.Campaigns.Patch(ctx, o.id, dibs.CampaignPatch{EndsAt: &ends})
		return err
	})
}

// newDivider is the admin who gives a campaign more shards in a round, beside the one who
// does all else: so the other's dice fall as in a run without it.
func newDivider(w *world, round int, o *offer) *admin {
	return &admin{client: client{w, newDice(w.plan.seed, fmt.Sprint("divider ", o.id, " ", round))}, round: round}
}

// divide gives a campaign more shards, until a node says that it is done, or refuses: the
// campaign is over, or has fewer units than that by now. Most users are new in the first
// seconds.
func (a *admin) divide(ctx context.Context, o *offer) {
	shards := o.more[a.round]
	for a.idle(ctx, a.d.upTo(2*time.Second)) {
		p, answered, err := a.call(ctx, func(ctx context.Context, p *process) error {
			_, err := p.svc.Campaigns.Patch(ctx, o.id, dibs.CampaignPatch{Shards: &shards})
			return err
		})
		if p != nil {
			a.story.tell("%s: admin: %s gets %d shards: answered %v, %v", p.name, o.id, shards, answered, err)
		}
		if answered && (err == nil || errors.Is(err, dibs.ErrInvalidState) || errors.Is(err, dibs.ErrInvalid)) {
			return
		}
	}
}

func (a *admin) end(ctx context.Context, o *offer) {
	a.state(ctx, o, "end", func(ctx context.Context, p *process) error {
		_, err := p.svc.Campaigns.End(ctx, o.id)
		return err
	})
}

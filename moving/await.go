package moving

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

const (
	// maxWaiting is how many claims of a campaign wait on this node at most: as many
	// as a shard's queue holds.
	maxWaiting = 1 << 16
	// lookEvery is how often the shards are looked at while claims wait.
	lookEvery = 15 * time.Millisecond
)

// dryShard is the claims that wait for units of one shard, guarded by pool.mu.
type dryShard struct {
	// queue has them, each a *waiter, in the order in which they came.
	queue list.List
	// units is what they want together, and of how many units how many claims want each.
	units int64
	sizes map[int64]int
}

// waiter is a claim that waits for units. woken is closed when it may ask again: then it
// has left the queue.
type waiter struct {
	units int64
	woken chan struct{}
}

var (
	// notHere refuses a claim that has waited for units of another shard.
	notHere = &dibs.Error{
		Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: time.Second,
		Detail: dibs.Text{EN: "what is left is being brought to this part of the campaign: try again", ZH: "剩余库存正在调配中，请稍后重试"},
	}
	// shardAway refuses a claim while a part of the campaign cannot be asked.
	shardAway = &dibs.Error{
		Reason: dibs.Unavailable, Effect: dibs.EffectNone, RetryAfter: time.Second,
		Detail: dibs.Text{EN: "a part of the campaign does not answer, and may have some left: try again", ZH: "活动的部分库存暂时无法访问，可能仍有剩余，请稍后重试"},
	}
)

// Deadline is when a claim that begins to wait now has waited long enough.
func (m *Mover) Deadline() time.Time { return time.Now().Add(m.cfg.Wait) }

// Await is called for a claim of so many units whose shard has fewer. It returns
// gone, with what is left, when no shard and none on its way has as many: the claim is
// refused as sold out. It returns neither gone nor an error when the claim should be
// decided again. At the deadline, and while too many wait, it returns an *Error of
// Overloaded with no effect, and one of Unavailable while a shard does not answer that
// may have units.
func (m *Mover) Await(ctx context.Context, l *live.Campaign, shard uint8, units int64, deadline time.Time) (left int64, gone bool, err error) {
	p := m.pool(l)
	now := time.Now()
	if v := p.holds(units, now); v != nil {
		return v.told()
	}
	w, place := p.join(shard, units, now.Before(deadline))
	if w == nil {
		return 0, false, notHere
	}
	defer p.leave(shard, w, place)
	m.waited.Add(1)
	m.startServing(p)
	enough := time.NewTimer(deadline.Sub(now))
	defer enough.Stop()
	select {
	case <-w.woken:
	case <-enough.C:
		select {
		case <-w.woken:
			// There is a unit for it, and the time is over just now.
		default:
			return 0, false, notHere
		}
	case <-ctx.Done():
		return 0, false, dibs.Unavail(dibs.EffectNone, ctx.Err())
	case <-m.cfg.Life.Done():
		return 0, false, dibs.Unavail(dibs.EffectNone, m.cfg.Life.Err())
	}
	if v := p.holds(units, time.Now()); v != nil {
		return v.told()
	}
	return 0, false, nil
}

// told is a verdict as Await returns it.
func (v *verdict) told() (left int64, gone bool, err error) {
	if v.away {
		return 0, false, shardAway
	}
	return v.left, true, nil
}

// join has a claim wait that may; nil when it may not, or too many do.
func (p *pool) join(shard uint8, units int64, may bool) (w *waiter, place *list.Element) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !may || p.waiting >= maxWaiting {
		return nil, nil
	}
	d := &p.dry[shard]
	if d.sizes == nil {
		d.sizes = map[int64]int{}
	}
	p.waiting++
	d.units += units
	d.sizes[units]++
	w = &waiter{units: units, woken: make(chan struct{})}
	return w, d.queue.PushBack(w)
}

// leave ends the wait of a claim, unless it was woken.
func (p *pool) leave(shard uint8, w *waiter, place *list.Element) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.woken:
	default:
		p.out(&p.dry[shard], place)
	}
}

// out takes a claim out of the queue of its shard. It is called with mu held.
func (p *pool) out(d *dryShard, place *list.Element) {
	units := d.queue.Remove(place).(*waiter).units
	p.waiting--
	d.units -= units
	if d.sizes[units]--; d.sizes[units] == 0 {
		delete(d.sizes, units)
	}
}

// wake has claims ask again, those first that came first: of each shard that which is true
// of them.
func (p *pool) wake(which func(shard int, w *waiter) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.dry {
		d := &p.dry[i]
		for place := d.queue.Front(); place != nil; {
			at := place
			place = place.Next()
			if w := at.Value.(*waiter); which(i, w) {
				p.out(d, at)
				close(w.woken)
			}
		}
	}
}

// wanted is what the claims want that wait at a shard: in all, and the least that one of
// them does.
type wanted struct{ units, least int64 }

// wants returns what the claims want that wait at each shard; most is the most that one of
// all wants.
func (p *pool) wants() (dry []wanted, most int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dry = make([]wanted, len(p.dry))
	for i := range dry {
		d := &p.dry[i]
		if d.queue.Len() == 0 {
			continue
		}
		sizes := slices.Sorted(maps.Keys(d.sizes))
		dry[i], most = wanted{d.units, sizes[0]}, max(most, sizes[len(sizes)-1])
	}
	return dry, most
}

// startServing has the shards looked at for as long as claims wait.
func (m *Mover) startServing(p *pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.serving {
		p.serving = m.start(func() { m.serveLoop(p) })
		p.l.SetDry(p.serving)
	}
}

func (m *Mover) serveLoop(p *pool) {
	for {
		m.serve(m.cfg.Life, p)
		over := !wait.Sleep(m.cfg.Life, lookEvery)
		p.mu.Lock()
		if over || p.waiting == 0 {
			p.serving = false
			p.l.SetDry(false)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// serve looks at all shards once for the claims that wait: it wakes those whose shard
// has units, tells all when there are none, or moves some.
func (m *Mover) serve(ctx context.Context, p *pool) {
	p.looking.Lock()
	defer p.looking.Unlock()
	changes := p.l.Changes()
	v := m.look(ctx, p)
	// As many ask again as there are units for: the others would only be told to wait on.
	there := make([]int64, len(v.shards))
	for i := range there {
		if v.ok[i] {
			there[i] = v.shards[i].Remaining
		}
	}
	_, most := p.wants()
	p.wake(func(shard int, w *waiter) bool {
		serves := w.units <= there[shard]
		if serves {
			there[shard] -= w.units
		}
		return serves
	})
	if verdict := m.judge(ctx, p, &v, changes, most); verdict != nil {
		p.verdict.Store(verdict)
		p.wake(func(_ int, w *waiter) bool { return w.units > verdict.left })
	}
	if m.sells(p.l) {
		for i := range there {
			// The rest is for those who were woken.
			v.shards[i].Remaining = there[i]
		}
		m.balance(ctx, p, v, m.poller.HasFleetLease())
	}
}

package moving

import (
	"context"
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
	claims int
	// units is what they want together, least and most what one of them wants. The
	// latter two are exact while no claim has left.
	units, least, most int64
	// woken is closed and replaced when they may ask again.
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
func (m *Mover) Deadline() time.Time { return time.Now().Add(m.wait) }

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
	woken, ok := p.join(shard, units)
	if !ok || !now.Before(deadline) {
		if ok {
			p.leave(shard, units)
		}
		return 0, false, notHere
	}
	defer p.leave(shard, units)
	m.waited.Add(1)
	m.startServing(p)
	enough := time.NewTimer(deadline.Sub(now))
	defer enough.Stop()
	select {
	case <-woken:
	case <-enough.C:
		return 0, false, notHere
	case <-ctx.Done():
		return 0, false, dibs.Unavail(dibs.EffectNone, ctx.Err())
	case <-m.life.Done():
		return 0, false, dibs.Unavail(dibs.EffectNone, m.life.Err())
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

// join has a claim wait; false when too many do.
func (p *pool) join(shard uint8, units int64) (woken <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting >= maxWaiting {
		return nil, false
	}
	d := &p.dry[shard]
	if d.claims == 0 {
		d.least, d.most = units, units
	}
	d.claims++
	p.waiting++
	d.units += units
	d.least, d.most = min(d.least, units), max(d.most, units)
	return d.woken, true
}

func (p *pool) leave(shard uint8, units int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &p.dry[shard]
	d.claims--
	d.units -= units
	p.waiting--
}

// wake has the claims ask again that wait at the shards of which which returns true.
func (p *pool) wake(which func(shard int, d *dryShard) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.dry {
		if d := &p.dry[i]; d.claims > 0 && which(i, d) {
			close(d.woken)
			d.woken = make(chan struct{})
		}
	}
}

// wants returns what the claims want that wait at each shard, in all, the least and
// the most that one of them wants; most is the most of all.
func (p *pool) wants() (dry []dryShard, most int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dry = make([]dryShard, len(p.dry))
	copy(dry, p.dry)
	for i := range dry {
		if dry[i].claims > 0 {
			most = max(most, dry[i].most)
		}
	}
	return dry, most
}

// startServing has the shards looked at for as long as claims wait.
func (m *Mover) startServing(p *pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.serving {
		p.serving = m.start(func() { m.serveLoop(p) })
	}
}

func (m *Mover) serveLoop(p *pool) {
	for {
		m.serve(m.life, p)
		over := !wait.Sleep(m.life, lookEvery)
		p.mu.Lock()
		if over || p.waiting == 0 {
			p.serving = false
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
	p.wake(func(shard int, d *dryShard) bool { return v.ok[shard] && v.shards[shard].Remaining >= d.least })
	_, most := p.wants()
	if verdict := m.judge(ctx, p, &v, changes, most); verdict != nil {
		p.verdict.Store(verdict)
		p.wake(func(_ int, d *dryShard) bool { return d.most > verdict.left })
	}
	if m.sells(p.l) {
		m.balance(ctx, p, v, m.poller.HasFleetLease())
	}
}

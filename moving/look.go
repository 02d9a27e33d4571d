package moving

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

const (
	// lookTime bounds a look at a shard, and awayTime is how long one that did not
	// answer is not asked again.
	lookTime = 250 * time.Millisecond
	awayTime = time.Second
)

// view is what a look at all shards of a campaign found.
type view struct {
	shards []dibs.ShardStats
	// ok says which shards answered, whole that all did; away that one did not and may
	// have units.
	ok          []bool
	whole, away bool
}

// left is what is left of the campaign, with what is on its way.
func (v *view) left() int64 { return v.there() + v.underWay() }

// there is what the shards have that answered.
func (v *view) there() (units int64) {
	for i := range v.shards {
		units += v.shards[i].Remaining
	}
	return units
}

// underWay is what is on its way.
func (v *view) underWay() (units int64) {
	for i := range v.shards {
		units += v.shards[i].Moved
	}
	return units
}

// same reports whether nothing has happened on any shard between two looks.
func (v *view) same(w *view) bool {
	for i := range v.shards {
		if v.shards[i].Head != w.shards[i].Head {
			return false
		}
	}
	return v.whole && w.whole
}

// seen is what this node has seen of the shards last, without asking anyone.
func (p *pool) seen() view {
	v := view{shards: make([]dibs.ShardStats, len(p.l.Shards)), ok: make([]bool, len(p.l.Shards)), whole: true}
	for i, t := range p.l.Shards {
		if st := t.Seen(); st != nil {
			v.shards[i], v.ok[i] = *st, true
		} else {
			v.whole = false
		}
	}
	return v
}

// look asks the engine for all shards at once. It is called with looking held.
func (m *Mover) look(ctx context.Context, p *pool) view {
	v := view{shards: make([]dibs.ShardStats, len(p.l.Shards)), ok: make([]bool, len(p.l.Shards)), whole: true}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var all sync.WaitGroup
	now := time.Now()
	errs := make([]error, len(p.l.Shards))
	for i, t := range p.l.Shards {
		if now.Before(p.away[i]) {
			errs[i] = context.DeadlineExceeded
			continue
		}
		all.Go(func() { v.shards[i], errs[i] = m.cfg.Engine.Stats(ctx, t.ID) })
	}
	all.Wait()
	for i, err := range errs {
		v.ok[i] = err == nil
		if err == nil {
			continue
		}
		v.shards[i] = dibs.ShardStats{}
		v.whole, v.away = false, true
		if !errors.Is(err, dibs.ErrNotOpen) && !now.Before(p.away[i]) {
			p.away[i] = now.Add(awayTime)
		}
		if errors.Is(err, dibs.ErrNotOpen) {
			// It is being loaded, or will be.
			p.l.Shards[i].Wake()
		}
	}
	return v
}

// verdict is what all shards together can grant.
type verdict struct {
	// left is what is left anywhere, with what is on its way; with away, what the
	// shards have that answered.
	left int64
	// away says that a shard did not answer, which may have more.
	away bool
	// It holds until a time, and while the engine tells of no change.
	until   time.Time
	changes uint64
}

const (
	// goneTime is how long it holds that nothing is left: the engine tells when that
	// changes. goneSoon is the same for a few that are left, of which releases do not
	// tell, and for shards that do not answer.
	goneTime = 250 * time.Millisecond
	goneSoon = 30 * time.Millisecond
)

// holds returns the verdict on a claim for so many units; nil when there is none, or
// they may be had.
func (p *pool) holds(units int64, now time.Time) *verdict {
	v := p.verdict.Load()
	if v == nil || units <= v.left || v.changes != p.l.Changes() || !now.Before(v.until) {
		return nil
	}
	return v
}

// judge concludes what claims for so many units can be told, with a second look where
// that takes one; nil when nothing can be concluded, or enough is left. changes is
// from before the first look. It is called with looking held.
func (m *Mover) judge(ctx context.Context, p *pool, first *view, changes uint64, most int64) *verdict {
	switch {
	case first.away && most > first.there():
		return &verdict{left: first.there(), away: true, until: time.Now().Add(goneSoon), changes: changes}
	case first.away || most <= first.left():
		return nil
	}
	second := m.look(ctx, p)
	if !second.same(first) {
		return nil
	}
	v := &verdict{left: max(first.left(), 0), until: time.Now().Add(goneTime), changes: changes}
	if v.left > 0 {
		v.until = time.Now().Add(goneSoon)
	}
	return v
}

// campaignOf returns a campaign as it is held here, with its shards.
func (m *Mover) campaignOf(ctx context.Context, c *dibs.Campaign) (*live.Campaign, error) {
	l, err := m.loader.EnsureLive(ctx, c)
	if err == nil && l == nil {
		err = dibs.ErrNotOpen
	}
	return l, dibs.AsUnavailable(err, dibs.EffectNone)
}

package moving

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// gatherEvery is how often Gather looks at the shards.
const gatherEvery = 25 * time.Millisecond

// Gather brings so many units together on a shard, from all others, and returns when
// they are there. They are not kept for the caller: users may be faster. An *Error of
// InvalidState when the campaign has fewer left, of Unavailable when they do not
// arrive within the ledger's timeout, or while a shard does not answer that may have
// them. A campaign of one shard has nothing to gather.
func (m *Mover) Gather(ctx context.Context, c *dibs.Campaign, to uint8, units int64) error {
	if c.Shards < 2 {
		return nil
	}
	l, err := m.campaignOf(ctx, c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.LedgerTimeout)
	defer cancel()
	p := m.pool(l)
	for {
		there, err := m.gather(ctx, p, int(to), units)
		if there || err != nil {
			return err
		}
		if !wait.Sleep(ctx, gatherEvery) {
			return dibs.Unavail(dibs.EffectNone, ctx.Err())
		}
	}
}

// gather looks at the shards once, and begins what transfers are missing.
func (m *Mover) gather(ctx context.Context, p *pool, to int, units int64) (there bool, err error) {
	p.looking.Lock()
	defer p.looking.Unlock()
	changes := p.l.Changes()
	v := m.look(ctx, p)
	if to >= len(v.ok) {
		// The campaign got more shards, which this node has not taken up yet.
		return false, shardAway
	}
	if v.ok[to] && v.shards[to].Remaining >= units {
		return true, nil
	}
	if verdict := m.judge(ctx, p, &v, changes, units); verdict != nil {
		if verdict.away {
			return false, shardAway
		}
		return false, dibs.Fail(dibs.InvalidState, dibs.Textf("only %d are left to withdraw", "只剩 %d 可撤回", verdict.left))
	}
	p.keepPace(&v)
	p.keepComing(&v, time.Now())
	missing := units - v.shards[to].Remaining
	for _, c := range p.coming {
		if c.to == to {
			missing -= c.units
		}
	}
	if !v.ok[to] {
		return false, nil
	}
	for _, from := range fullest(&v, to) {
		if missing <= 0 {
			break
		}
		t := tranche{from: from, to: to, units: min(missing, v.shards[from].Remaining)}
		missing -= t.units
		m.begin(ctx, p, t, &v)
	}
	return false, nil
}

// fullest returns the other shards that have units, the one with the most first.
func fullest(v *view, but int) []int {
	var shards []int
	for i := range v.shards {
		if i != but && v.shards[i].Remaining > 0 {
			shards = append(shards, i)
		}
	}
	slices.SortStableFunc(shards, func(a, b int) int { return cmp.Compare(v.shards[b].Remaining, v.shards[a].Remaining) })
	return shards
}

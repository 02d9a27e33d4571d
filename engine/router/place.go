package router

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// shardKey is a shard's id in one number: numbers are what a map finds fastest.
type shardKey uint64

func keyOf(id dibs.ShardID) shardKey { return shardKey(id.Campaign)<<8 | shardKey(id.Shard) }

// placements are the deployments of shards as the ledger has them.
type placements map[shardKey]*member

// endedKeep is how long after their end the shards of campaigns are still read with those
// that sell: users repeat their claims for a while, and each repeat must not ask the ledger.
const endedKeep = 10 * time.Minute

// at returns the deployment of a shard, or why nothing can be asked of it.
func (e *Engine) at(ctx context.Context, id dibs.ShardID) (*member, error) {
	m := (*e.placed.Load())[keyOf(id)]
	if m == nil {
		var err error
		if m, err = e.find(ctx, id); err != nil {
			return nil, err
		}
	}
	if m.away.Load() {
		return nil, m.refused()
	}
	return m, nil
}

// NumberOf returns the number of the deployment that has a shard. For one that was never
// opened it is the deployment to open it on: the ledger makes it final.
func (e *Engine) NumberOf(ctx context.Context, id dibs.ShardID) (int, error) {
	m, err := e.at(ctx, id)
	if err != nil {
		return 0, err
	}
	return m.number, nil
}

// find asks the ledger where a shard is.
func (e *Engine) find(ctx context.Context, id dibs.ShardID) (*member, error) {
	if id.Campaign == 0 {
		// No campaign has this number: it is the lease of the nodes. No result depends
		// on it, so any deployment does while the first is away.
		return e.first(), nil
	}
	number, err := e.placedOn(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case number == 0:
		return e.unplaced(ctx, id)
	}
	m := e.byNumber[number]
	if m == nil {
		return nil, dibs.Unavail(dibs.EffectNone, fmt.Errorf("router: shard %s is on deployment %d, which is missing from this node's --engine: %w",
			id, number, live.ErrOtherDeployment))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	after := maps.Clone(*e.placed.Load())
	after[keyOf(id)] = m
	e.placed.Store(&after)
	return m, nil
}

// placedOn reads the number of a shard's deployment, 0 for none, also of a shard that
// the ledger does not know.
func (e *Engine) placedOn(ctx context.Context, id dibs.ShardID) (int, error) {
	if m := (*e.placed.Load())[keyOf(id)]; m != nil {
		return m.number, nil
	}
	number, err := e.ledger.DeploymentOf(ctx, id)
	if errors.Is(err, dibs.ErrNotFound) {
		return 0, nil
	}
	return number, dibs.AsUnavailable(err, dibs.EffectNone)
}

// unplaced returns the deployment for a shard that the ledger has on none. A ledger that
// was restored from an older backup may have forgotten where it was: a deployment that
// has a journal of it keeps it.
func (e *Engine) unplaced(ctx context.Context, id dibs.ShardID) (*member, error) {
	var errs []error
	for _, end := range each(e.members, func(m *member) told[dibs.Cursor] {
		if m.away.Load() {
			return told[dibs.Cursor]{}
		}
		return tells(m, func(d Deployment) (dibs.Cursor, error) { return d.JournalEnd(ctx, id) })
	}) {
		if end.answer != (dibs.Cursor{}) {
			return end.by, nil
		}
		errs = append(errs, end.err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	return e.best(func(m *member) uint64 { return score(m.number, id) }), nil
}

// best returns the member with the highest score of those that answer, the first of equal
// ones; the first of all when none answers.
func (e *Engine) best(score func(*member) uint64) *member {
	var best *member
	for _, m := range e.members {
		if !m.away.Load() && (best == nil || score(m) > score(best)) {
			best = m
		}
	}
	if best == nil {
		return e.members[0]
	}
	return best
}

// score is how much a shard wants to be on a deployment: rendezvous hashing, by the
// finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014). Each shard is on the deployment with its highest score, so that a
// deployment more takes its part of the shards from all others alike.
func score(number int, id dibs.ShardID) uint64 {
	return mix(mix(uint64(number)) ^ uint64(keyOf(id)))
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// refresh reads where the shards are that are asked for often, since an administrator may
// have moved some. It forgets the places of all others: they are read when they are asked
// for.
func (e *Engine) refresh(ctx context.Context) error {
	known := *e.placed.Load()
	numbers, err := e.ledger.Placements(ctx, e.now().Add(-endedKeep))
	if err != nil {
		return err
	}
	after := make(placements, len(numbers))
	for id, number := range numbers {
		// One of no member was given up by an administrator, or another node has a
		// deployment more than this one.
		if m := e.byNumber[number]; m != nil {
			after[keyOf(id)] = m
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before := *e.placed.Load()
	for key, m := range before {
		if known[key] == nil {
			// It was found since the ledger was asked.
			after[key] = m
		}
	}
	if !maps.Equal(after, before) {
		e.placed.Store(&after)
	}
	return nil
}

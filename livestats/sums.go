package livestats

import (
	"context"
	"errors"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// maxTail bounds the journal entries of a shard that are read for one measure.
const maxTail = 2000

// Sums are the units granted by three witnesses. The journal's is what the ledger has settled and the journal has
// beyond that, so that the three are counted apart.
type Sums struct {
	Engine int64 `json:"engine"`
	// Journal is null while too much waits to be added up, or a deployment with shards is away.
	Journal *int64 `json:"journal"`
	Ledger  int64  `json:"ledger"`
	// OnTheWay is what the ledger does not have yet, and AgeMS how long the oldest of it has waited.
	OnTheWay int64 `json:"on_the_way"`
	AgeMS    int64 `json:"age_ms"`
	// Agree says that journal and engine are equal; null when that could not be told.
	Agree *bool `json:"agree"`
}

// sums reads the three of all shards.
func (m *Meters) sums(ctx context.Context, c *dibs.Campaign) (Sums, error) {
	var all Sums
	journal, whole, open := int64(0), true, false
	for i := range c.Shards {
		id := dibs.ShardID{Campaign: c.Number, Shard: uint8(i)} //nolint:gosec // A campaign has at most 64 shards.
		one, err := m.shard(ctx, id)
		if err != nil {
			return all, err
		}
		all.Ledger += one.ledger
		whole = whole && one.whole
		if !one.open {
			all.Engine += one.ledger
			journal += one.ledger
			continue
		}
		open = true
		all.Engine += one.engine
		journal += one.ledger + one.tail
	}
	all.OnTheWay = max(0, all.Engine-all.Ledger)
	if whole {
		agree := journal == all.Engine
		all.Journal = &journal
		if open {
			all.Agree = &agree
		}
	}
	return all, nil
}

// shardSums are the sums of a shard.
type shardSums struct {
	engine, ledger, tail int64
	// open says that the engine has the shard, and whole that all of the journal's tail, if there is one, is known.
	open, whole bool
}

// shard reads a shard: the engine first, then the ledger's sums with their position, then the journal between the two.
// Grants made meanwhile stand behind the engine's head and are not counted. Of a shard whose deployment is away the
// ledger's sums alone are known.
func (m *Meters) shard(ctx context.Context, id dibs.ShardID) (s shardSums, err error) {
	engine, err := m.cfg.Engine.Stats(ctx, id)
	// A shard that has left the engine has no tail.
	s.open, s.whole = err == nil, errors.Is(err, dibs.ErrNotOpen)
	if !s.open && !s.whole && !live.DeploymentFailed(err) {
		return s, err
	}
	totals, err := m.cfg.Ledger.Totals(ctx, id)
	if errors.Is(err, dibs.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.engine, s.ledger = engine.Granted, totals.Stock-totals.StockLeft
	if !s.open {
		return s, nil
	}
	if !totals.Position.Before(engine.Head) {
		// The ledger may be past what the engine said a moment ago: then nothing can be compared.
		s.whole = totals.Position == engine.Head
		return s, nil
	}
	entries, err := m.cfg.Engine.ReadJournal(ctx, id, totals.Position, maxTail)
	if live.DeploymentFailed(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	for i := range entries {
		e := &entries[i]
		if engine.Head.Before(e.Cursor) {
			break
		}
		if e.Kind == dibs.EntryGrant {
			s.tail += e.Quantity
		}
		s.whole = e.Cursor == engine.Head
	}
	return s, nil
}

package dibs

import (
	"context"
	"testing"
)

// counting is an engine of which only the counts are asked.
type counting struct {
	Engine
	shared bool
	stats  map[ShardID]ShardStats
}

func (c *counting) Shared() bool { return c.shared }

func (c *counting) Stats(_ context.Context, id ShardID) (ShardStats, error) {
	st, ok := c.stats[id]
	if !ok {
		return st, ErrNotOpen
	}
	return st, nil
}

// Settling rests while claims queue anywhere, to be decided or for their
// commit, unless the backlog has to become smaller.
func TestClaimsRush(t *testing.T) {
	idle := ShardStats{Remaining: 5, Granted: 7, Head: Cursor{Epoch: 1, Seq: 9}}
	queued, waiting := idle, idle
	queued.Queued, waiting.Waiting = 1, 1
	for name, c := range map[string]struct {
		shards  []ShardStats
		backlog int64
		want    bool
	}{
		"nothing waits":                {shards: []ShardStats{idle, idle}},
		"a commit is waited for":       {shards: []ShardStats{idle, queued}, want: true},
		"a decision is waited for":     {shards: []ShardStats{waiting, idle}, want: true},
		"a backlog of half is room":    {shards: []ShardStats{waiting}, backlog: 50, want: true},
		"a backlog of more is no room": {shards: []ShardStats{waiting}, backlog: 51},
		"another shard has no room":    {shards: []ShardStats{idle, waiting}, backlog: 51},
	} {
		for _, shared := range []bool{false, true} {
			e := &counting{shared: shared, stats: map[ShardID]ShardStats{}}
			s := &Service{cfg: Config{MaxBacklog: 100}, engine: e}
			l := &live{}
			for i := range c.shards {
				tr := &settling{id: ShardID{Campaign: 1, Shard: uint8(i)}, l: l}
				tr.held.Store(true)
				if i == 0 {
					tr.backlog.Store(c.backlog)
				}
				// Of a shared engine what was seen last counts.
				if shared {
					tr.seen.Store(&c.shards[i])
				} else {
					e.stats[tr.id] = c.shards[i]
				}
				l.shards = append(l.shards, tr)
			}
			s.lives.Store("c", l)
			if is := s.claimsRush(t.Context()); is != c.want {
				t.Errorf("%s, shared %v: a rush is %v", name, shared, is)
			}
		}
	}
}

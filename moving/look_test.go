package moving

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// counted is an engine of which the shards are counted: each look at one finds the
// next of what stands for it, and then the last of them again; nil is no answer.
type counted struct {
	dibs.Engine
	mu    sync.Mutex
	looks map[uint8][]*dibs.ShardStats
}

func (e *counted) Stats(_ context.Context, id dibs.ShardID) (dibs.ShardStats, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := e.looks[id.Shard]
	if len(left) > 1 {
		e.looks[id.Shard] = left[1:]
	}
	if left[0] == nil {
		return dibs.ShardStats{}, dibs.Unavail(dibs.EffectNone, nil)
	}
	return *left[0], nil
}

// at is a shard with so many units left, so many moved, at a place of its journal.
func at(seq uint32, left, moved int64) *dibs.ShardStats {
	return &dibs.ShardStats{Remaining: left, Moved: moved, Head: dibs.Cursor{Epoch: 1, Seq: seq}}
}

// TestJudge concludes what is left only from two looks between which nothing has
// happened. Between the looks at two shards a unit may come back to the one while the
// last of the other is sold: one was left at every moment.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name  string
		looks map[uint8][]*dibs.ShardStats
		wants int64
		// left is the verdict's; -1 for none.
		left int64
		away bool
	}{
		{"nothing is left", map[uint8][]*dibs.ShardStats{0: {at(5, 0, 2)}, 1: {at(7, 0, -2)}}, 1, 0, false},
		{"one is left elsewhere", map[uint8][]*dibs.ShardStats{0: {at(5, 0, 0)}, 1: {at(7, 1, 0)}}, 1, -1, false},
		{"two are wanted, and one is left", map[uint8][]*dibs.ShardStats{0: {at(5, 0, 0)}, 1: {at(7, 1, 0)}}, 2, 1, false},
		{"some are on their way", map[uint8][]*dibs.ShardStats{0: {at(5, 0, 3)}, 1: {at(7, 0, 0)}}, 3, -1, false},
		{"fewer are on their way", map[uint8][]*dibs.ShardStats{0: {at(5, 0, 3)}, 1: {at(7, 0, 0)}}, 4, 3, false},
		{"one came back in between", map[uint8][]*dibs.ShardStats{0: {at(5, 0, 0), at(6, 1, 0)}, 1: {at(7, 0, 0)}}, 1, -1, false},
		{"one came back and was sold in between", map[uint8][]*dibs.ShardStats{0: {at(5, 0, 0), at(7, 0, 0)}, 1: {at(7, 0, 0)}}, 1, -1, false},
		{"a shard is away, and has some maybe", map[uint8][]*dibs.ShardStats{0: {at(5, 0, 0)}, 1: {nil}}, 1, 0, true},
		{"a shard is away, and others have some", map[uint8][]*dibs.ShardStats{0: {at(5, 4, 0)}, 1: {nil}}, 1, -1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &dibs.Campaign{Number: 1, ID: "c", Shards: len(test.looks)}
			l := live.NewCampaign(c)
			for i := range c.Shards {
				l.Shards = append(l.Shards, &live.Shard{ID: dibs.ShardID{Campaign: 1, Shard: uint8(i)}})
			}
			m := &Mover{cfg: Config{Engine: &counted{looks: test.looks}, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Life: t.Context()}}
			p := m.pool(l)
			first := m.look(t.Context(), p)
			now := time.Now()
			v := m.judge(t.Context(), p, &first, l.Changes(), test.wants)
			switch {
			case v == nil && test.left >= 0, v != nil && (v.left != test.left || v.away != test.away):
				t.Fatalf("the verdict is %+v, want %d left, away %v", v, test.left, test.away)
			case v == nil:
				return
			}
			p.verdict.Store(v)
			if p.holds(test.wants, now) == nil || p.holds(test.left, now) != nil {
				t.Error("it does not hold for what is wanted, or for what is left")
			}
			if p.holds(test.wants, time.Now().Add(goneTime)) != nil {
				t.Error("it outlives its time")
			}
		})
	}
}

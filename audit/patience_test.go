package audit

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// opening is an engine whose shards are open a while after each was asked for first.
type opening struct {
	dibs.Engine
	after time.Duration
	asked map[dibs.ShardID]time.Time
}

func (*opening) Shared() bool { return true }

func (e *opening) Stats(_ context.Context, id dibs.ShardID) (dibs.ShardStats, error) {
	if _, known := e.asked[id]; !known {
		e.asked[id] = time.Now()
	}
	if time.Since(e.asked[id]) < e.after {
		return dibs.ShardStats{}, dibs.ErrNotOpen
	}
	return dibs.ShardStats{Granted: 1}, nil
}

// TestVerifyWaitsOnceForAllShards counts a campaign of 64 shards each of which lets itself be
// waited for: all waits together are bounded as one is.
func TestVerifyWaitsOnceForAllShards(t *testing.T) {
	for _, c := range []struct {
		each    time.Duration
		granted int64
		fails   bool
	}{{live.JoinEvery, 64, false}, {time.Second, 2, true}} {
		synctest.Test(t, func(t *testing.T) {
			const shards = 64
			e := &opening{after: c.each, asked: map[dibs.ShardID]time.Time{}}
			n := live.New(live.Config{Engine: e, Logger: slog.New(slog.DiscardHandler), Now: time.Now, LedgerTimeout: time.Second, Life: t.Context()})
			sale := &dibs.Campaign{Number: 1, ID: "sale", State: dibs.Published, Shards: shards, EndsAt: time.Now().Add(time.Hour)}
			held := live.NewCampaign(sale)
			for i := range shards {
				held.Shards = append(held.Shards, &live.Shard{ID: dibs.ShardID{Campaign: 1, Shard: uint8(i)}})
			}
			n.Registry.Put(sale, held)
			s := New(Config{Live: n, Engine: e})
			begun := time.Now()
			got, err := s.countEngine(t.Context(), sale, &live.Patience{}, false)
			if took := time.Since(begun); took > live.OpenPatience+live.JoinEvery || c.fails != errors.Is(err, dibs.ErrNotOpen) || got.granted != c.granted {
				t.Errorf("shards that take %s each: %d granted after %s, %v", c.each, got.granted, took, err)
			}
		})
	}
}

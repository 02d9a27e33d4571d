package redisengine

import (
	"context"
	"fmt"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// BenchmarkRefusal measures claims on a sold-out shard by users who hold
// nothing, each with a key.
func BenchmarkRefusal(b *testing.B) {
	r, err := servers.StartRedis(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.Kill)
	e, shard := soldOut(b, r, 200)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ctx := context.Background()
		users := make([]string, 1000)
		for i := range users {
			users[i] = fmt.Sprint("user-", i)
		}
		for i := 0; pb.Next(); i++ {
			d, err := e.Claim(ctx, dibs.EngineClaim{Shard: shard, UserID: users[i%len(users)], Key: 7, Quantity: 1})
			if err != nil || d.Outcome != dibs.SoldOut {
				b.Errorf("a refusal is %v, %v", d.Outcome, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "refusals/s")
}

// soldOut opens a sale of so many units and has all of them granted, and
// returns when refusals are given without asking.
func soldOut(tb testing.TB, r *servers.Redis, stock int64) (*Engine, dibs.ShardID) {
	tb.Helper()
	ctx := context.Background()
	e, err := Open(ctx, Config{URL: r.URL(), Durability: dibs.LevelNone})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	shard := dibs.ShardID{Campaign: 7}
	if err := e.Open(ctx, openCampaign(stock), shard, &dibs.ShardLoad{Epoch: 1, StockLeft: stock}); err != nil {
		tb.Fatal(err)
	}
	l, err := e.lanes.lane(shard)
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; l.follower.refusing.Load() == nil; i++ {
		if _, err := e.Claim(ctx, shardAsk(shard, fmt.Sprint("holder-", i))); err != nil {
			tb.Fatal(err)
		}
	}
	return e, shard
}

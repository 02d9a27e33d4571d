package redisengine_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/yardstick"
)

func connect(tb testing.TB, r *servers.Redis) rueidis.Client {
	tb.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{r.Addr()}, DisableCache: true, DisableRetry: true, ForceSingleClient: true,
	})
	must(tb, err)
	tb.Cleanup(c.Close)
	return c
}

// grabbed is how many packets a second the yardstick grabs.
func grabbed(tb testing.TB, c rueidis.Client, n int) float64 {
	tb.Helper()
	g, err := yardstick.Grab(context.Background(), c, n)
	must(tb, err)
	return g.Rate
}

// grabbedByTool is the same by redis-benchmark.
func grabbedByTool(tb testing.TB, r *servers.Redis, c rueidis.Client, n int) float64 {
	tb.Helper()
	g, err := yardstick.GrabByTool(context.Background(), r.Addr(), c, n)
	must(tb, err)
	return g.Rate
}

// bigSale describes a sale that is open for an hour.
func bigSale(number uint32, stock int64) *dibs.Campaign {
	now := time.Now()
	return &dibs.Campaign{
		Number: number, ID: fmt.Sprint("sale-", number), Kind: dibs.Sale, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
		State: dibs.Published, Stock: dibs.Stock{Kind: dibs.Units, Total: stock}, LimitPerUser: 1, Shards: 1, Version: 1,
	}
}

func openEngine(tb testing.TB, cfg redisengine.Config) *redisengine.Engine {
	tb.Helper()
	if cfg.Durability == "" {
		cfg.Durability = dibs.LevelNone
	}
	e, err := redisengine.Open(context.Background(), cfg)
	must(tb, err)
	tb.Cleanup(func() { must(tb, e.Close(context.Background())) })
	return e
}

// claims has n users claim, each of the callers one at a time, and returns
// claims a second and the 99th percentile of their latency.
func claims(tb testing.TB, e *redisengine.Engine, shard dibs.ShardID, callers, n int) (rate float64, p99 time.Duration) {
	tb.Helper()
	ctx := context.Background()
	took := make([]time.Duration, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				at := time.Now()
				d, err := e.Claim(ctx, dibs.EngineClaim{Shard: shard, UserID: strconv.FormatInt(10_000_000+i, 10), Key: uint64(i), Quantity: 1})
				if err != nil || d.Outcome != dibs.Granted {
					tb.Errorf("claim %d is %v, %v", i, d.Outcome, err)
					return
				}
				took[i-1] = time.Since(at)
			}
		})
	}
	wg.Wait()
	rate = float64(n) / time.Since(begun).Seconds()
	slices.Sort(took)
	return rate, took[n*99/100]
}

// policies are how the server persists.
var policies = []struct {
	name string
	args []string
}{
	{"always", servers.RedisAlways},
	{"everysec", []string{"--appendonly", "yes", "--appendfsync", "everysec"}},
	{"none", nil},
}

// BenchmarkClaim measures claims a second, by policy and callers.
func BenchmarkClaim(b *testing.B) {
	number := uint32(0)
	for _, p := range policies {
		for _, callers := range []int{1, 64, 2048, 8192} {
			b.Run(fmt.Sprintf("fsync=%s/callers=%d", p.name, callers), func(b *testing.B) {
				e := openEngine(b, redisengine.Config{URL: startRedis(b, p.args...).URL()})
				number++
				shard := dibs.ShardID{Campaign: number}
				must(b, e.Open(context.Background(), bigSale(number, int64(b.N)), shard, &dibs.ShardLoad{Epoch: 1, StockLeft: int64(b.N)}))
				b.ResetTimer()
				rate, p99 := claims(b, e, shard, callers, b.N)
				b.ReportMetric(rate, "claims/s")
				b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
			})
		}
	}
}

var cpuSeconds = regexp.MustCompile(`used_cpu_(?:user|sys):([0-9.]+)`)

// serverCPU is what a server has used of the CPUs, in µs.
func serverCPU(tb testing.TB, c rueidis.Client) (us float64) {
	tb.Helper()
	info, err := c.Do(context.Background(), c.B().Info().Section("cpu").Build()).ToString()
	must(tb, err)
	for _, found := range cpuSeconds.FindAllStringSubmatch(info, -1) {
		s, err := strconv.ParseFloat(found[1], 64)
		must(tb, err)
		us += s * 1e6
	}
	return us
}

// BenchmarkYardstick compares in one run: each round measures the yardstick by
// both clients and 2,048 callers of the engine by each policy, one after the
// other, and the medians of the rounds are reported: calls a second, and the CPU
// that Redis used for each.
func BenchmarkYardstick(b *testing.B) {
	const callers, grabs, n = 2048, 100_000, 500_000
	plain := startRedis(b)
	c := connect(b, plain)
	rates, times := map[string][]float64{}, map[string][]float64{}
	round := uint32(0)
	for b.Loop() {
		round++
		before := serverCPU(b, c)
		rates["go"] = append(rates["go"], grabbed(b, c, grabs))
		times["go"] = append(times["go"], (serverCPU(b, c)-before)/grabs)
		rates["tool"] = append(rates["tool"], grabbedByTool(b, plain, c, grabs))
		for _, p := range policies[:2] {
			r := startRedis(b, p.args...)
			e, err := redisengine.Open(context.Background(), redisengine.Config{URL: r.URL(), Durability: dibs.LevelNone})
			must(b, err)
			shard := dibs.ShardID{Campaign: round}
			must(b, e.Open(context.Background(), bigSale(round, n), shard, &dibs.ShardLoad{Epoch: 1, StockLeft: n}))
			own := connect(b, r)
			before := serverCPU(b, own)
			rate, _ := claims(b, e, shard, callers, n)
			rates[p.name] = append(rates[p.name], rate)
			times[p.name] = append(times[p.name], (serverCPU(b, own)-before)/n)
			must(b, e.Close(context.Background()))
			r.Kill()
		}
	}
	median := func(of map[string][]float64, name string) float64 {
		slices.Sort(of[name])
		return of[name][len(of[name])/2]
	}
	for _, name := range []string{"go", "tool"} {
		b.ReportMetric(median(rates, name), name+"-yardstick/s")
	}
	b.ReportMetric(median(times, "go"), "yardstick-µs")
	for _, p := range policies[:2] {
		b.ReportMetric(median(rates, p.name), p.name+"/s")
		b.ReportMetric(median(rates, p.name)/median(rates, "go"), p.name+"/go")
		b.ReportMetric(median(rates, p.name)/median(rates, "tool"), p.name+"/tool")
		b.ReportMetric(median(times, p.name), p.name+"-µs")
	}
}

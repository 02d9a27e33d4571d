package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// shardStock is how many units a round sells, each to a user of its own: as many users as units, so
// that the last ones find their units on other shards. The number of transfers is by the logarithm of the
// stock, so that a claim's share of them is smaller in a rush of manyUnits. putOff is the pause of a client
// that was told to try again.
const (
	shardStock = 200_000
	manyUnits  = 1_000_000
	putOff     = 5 * time.Millisecond
)

// shardCallers is how many callers claim at once: a rush is the same, however many shards its campaign
// has. Each shard of eight has 512 of them.
const shardCallers = 4096

// shardCounts are the numbers of shards that are compared; the first is the yardstick of the others.
var shardCounts = []int{1, 2, 4, 8}

// soldOver is one campaign over some shards. rate is grants a second; cpu is what Redis used a
// grant, and own what this process did, callers included, both in µs and until all is settled. last is
// how long the last hundredth of the grants took, in ms, and puts how many claims were put off. times,
// timesCPU and timesOwn are ratios to the campaign of one shard in the same round, and longer is the
// time until all is sold to the time of as many shards with users of all of them.
type soldOver struct {
	rate, cpu, own, last, transfers, puts float64
	times, timesCPU, timesOwn, longer     float64
}

// shardsPart measures what a claim costs by the number of shards, on one server with an append-only
// file: CPU per claim is what more servers do not change. The crowd is of all shards first, then of
// one alone, so that nearly all units have to be moved before they are sold. The rates are of one
// core of Redis that all shards share, and say only what moving costs. SQLite works in this process,
// and its work counts as the node's; MariaDB's does not.
func shardsPart(ctx context.Context, o *options) (err error) {
	defer func() { err = errors.Join(err, servers.StopAll()) }()
	type way struct {
		ledger        int
		units, shards int
		one           bool
	}
	ways := make([]way, 0, 4*len(shardCounts))
	for _, n := range shardCounts {
		ways = append(ways, way{0, shardStock, n, false})
	}
	for _, n := range shardCounts[1:] {
		ways = append(ways, way{0, shardStock, n, true})
	}
	for _, units := range []int{shardStock, manyUnits} {
		for _, n := range shardCounts {
			ways = append(ways, way{mariaDB, units, n, false})
		}
	}
	found := map[way][]soldOver{}
	for range o.rounds {
		var yardstick soldOver
		even := map[int]float64{}
		for _, w := range ways {
			m, err := sellOver(ctx, w.units, w.shards, w.one, &ledgers[w.ledger])
			if err != nil {
				return fmt.Errorf("%d shards: %w", w.shards, err)
			}
			if w.shards == shardCounts[0] {
				yardstick = m
			}
			if !w.one {
				even[w.shards] = m.rate
			}
			m.longer = even[w.shards] / m.rate
			m.times, m.timesCPU, m.timesOwn = m.rate/yardstick.rate, m.cpu/yardstick.cpu, m.own/yardstick.own
			found[w] = append(found[w], m)
		}
	}
	fmt.Printf("a user for each unit and one more, %d callers; the median of %d rounds\n\n", shardCallers, o.rounds)
	fmt.Println("| ledger | units | shards | users of | claims/s | to one shard | CPU of Redis per claim, µs | to one shard | CPU of the node per claim, µs | to one shard | time to users of all | the last 1 %, ms | transfers | put off |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, w := range ways {
		crowd := "all"
		if w.one {
			crowd = "one"
		}
		form := "| %s | %d | %d | %s | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.0f | %.0f | %.0f |\n"
		printRow(form, medians(found[w], func(m *soldOver) []float64 {
			return []float64{m.rate, m.times, m.cpu, m.timesCPU, m.own, m.timesOwn, m.longer, m.last, m.transfers, m.puts}
		}), ledgers[w.ledger].name, w.units, w.shards, crowd)
	}
	return nil
}

// sellOver opens a node on an empty ledger, and has as many users as there are units claim one each,
// of all shards or of the first one alone. Every user must get one.
func sellOver(ctx context.Context, units, shards int, one bool, l *ledgerKind) (m soldOver, err error) {
	ledger, done, err := l.empty()
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, done()) }()
	n, err := openRedisNode(ctx, dibs.LevelDurable, ledger, redisWith(servers.RedisAlways...))
	if err != nil {
		return m, err
	}
	defer n.discard()
	stock := int64(units)
	c, err := published(ctx, n.Service, dibs.CampaignSpec{ID: "c", Stock: dibs.StockSpec{Units: &stock}, Shards: &shards})
	if err != nil {
		return m, err
	}
	client, err := redisClient(n.redis)
	if err != nil {
		return m, err
	}
	defer client.Close()
	users := usersOver(c, units, one)
	var at []time.Duration
	cpu, err := rise(ctx, redisCPU(client), func() error {
		own := cpuTime()
		var puts int64
		if at, puts, err = n.claimEach(ctx, users, shardCallers); err != nil {
			return err
		}
		m.puts = float64(puts)
		// After its first refusal a node reads who holds a claim, and from then on it refuses others without Redis. Of
		// several shards some are empty early, and refuse. A single shard has refused nobody before this claim.
		if err := claim(ctx, n.Service, "c", "one-more", "k", dibs.SoldOut); err != nil {
			return fmt.Errorf("when all is sold: %w", err)
		}
		// Campaigns of several shards settle while they sell, since units move from what is settled; one of
		// a single shard settles later. So the cost is counted when all is settled.
		_, err := n.settleRate(ctx)
		m.own = usPer(cpuTime()-own, units)
		return err
	})
	if err != nil {
		return m, err
	}
	slices.Sort(at)
	m.rate, m.cpu = float64(units)/at[len(at)-1].Seconds(), cpu/float64(units)
	m.last = (at[len(at)-1] - at[len(at)*99/100]).Seconds() * 1000
	m.transfers = float64(n.Service.Moving.Metrics().Transfers)
	return m, nil
}

// usersOver lists n users of eight digits, of all shards or of the first one alone.
func usersOver(c *dibs.Campaign, n int, one bool) []string {
	users := make([]string, 0, n)
	for i := 0; len(users) < n; i++ {
		if user := strconv.Itoa(10_000_000 + scatter(i)); !one || c.ShardOf(user).Shard == 0 {
			users = append(users, user)
		}
	}
	return users
}

// claimEach has callers claim one unit for each user, again after a pause while they are put off. It
// returns when each user had the answer, from the first claim on, and how many claims were put off.
func (n *redisNode) claimEach(ctx context.Context, users []string, callers int) (at []time.Duration, puts int64, err error) {
	at = make([]time.Duration, len(users))
	var off atomic.Int64
	begun := time.Now()
	err = inParallel(ctx, callers, len(users), func(ctx context.Context, i int) error {
		err := claim(ctx, n.Service, "c", users[i], users[i], dibs.Granted)
		for errors.Is(err, dibs.ErrOverloaded) {
			off.Add(1)
			<-time.After(putOff)
			err = claim(ctx, n.Service, "c", users[i], users[i], dibs.Granted)
		}
		at[i] = time.Since(begun)
		return err
	})
	return at, off.Load(), err
}

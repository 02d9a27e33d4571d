package main

import (
	"context"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"
)

// deploymentCounts are the numbers of servers that are compared, each with an append-only file of its
// own; the first is the yardstick.
var deploymentCounts = []int{1, 3}

// deploymentsPart measures what a claim costs where the shards of a campaign are divided over several
// deployments: the CPU of the node and of all servers, by the same six shards and crowd. On a machine
// whose cores all of them share, more servers sell no faster.
func deploymentsPart(ctx context.Context, o *options) error {
	costs := map[int][]float64{}
	var ratios []float64
	for range o.rounds {
		for _, n := range deploymentCounts {
			cost, err := sellOn(ctx, n)
			if err != nil {
				return fmt.Errorf("%d deployments: %w", n, err)
			}
			costs[n] = append(costs[n], cost)
		}
		last := len(costs[1]) - 1
		ratios = append(ratios, costs[deploymentCounts[1]][last]/costs[1][last])
	}
	fmt.Printf("%d units over six shards to as many users, %d callers; the median of %d rounds\n\n", shardStock, redisCallers, o.rounds)
	fmt.Println("| deployments | CPU of node and servers per claim, µs | to one |\n|---|---|---|")
	fmt.Printf("| %d | %.2f | 1 |\n", deploymentCounts[0], median(costs[deploymentCounts[0]]))
	fmt.Printf("| %d | %.2f | %.2f |\n", deploymentCounts[1], median(costs[deploymentCounts[1]]), median(ratios))
	return nil
}

// sellOn sells one campaign of six shards on so many servers, and returns the CPU of a claim in µs.
func sellOn(ctx context.Context, deployments int) (cost float64, err error) {
	var cfg node.Config
	all := make([]*servers.Redis, deployments)
	urls := make([]string, deployments)
	for i := range all {
		r, stop, err := startRedis(servers.RedisAlways...)
		if err != nil {
			return 0, err
		}
		defer stop()
		all[i], urls[i] = r, r.URL()
	}
	cfg.Engine, cfg.Deployments = urls[0], urls[1:]
	n, err := openNode(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer n.discard()
	units, shards := int64(shardStock), 6
	c, err := published(ctx, n.Service, dibs.CampaignSpec{ID: "c", Stock: dibs.StockSpec{Units: &units}, Shards: &shards})
	if err != nil {
		return 0, err
	}
	users := usersOver(c, shardStock, false)
	spent, err := rise(ctx, spentBy(all...), func() error {
		b := &redisNode{benchNode: n}
		if _, _, err := b.claimEach(ctx, users, redisCallers); err != nil {
			return err
		}
		_, err := b.settleRate(ctx)
		return err
	})
	return spent / shardStock, err
}

// spentBy is the CPU of this process and of all servers, in µs.
func spentBy(all ...*servers.Redis) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		sum := float64(cpuTime().Microseconds())
		for _, r := range all {
			c, err := redisClient(r)
			if err != nil {
				return 0, err
			}
			cpu, err := redisCPU(c)(ctx)
			c.Close()
			if err != nil {
				return 0, err
			}
			sum += cpu
		}
		return sum, nil
	}
}

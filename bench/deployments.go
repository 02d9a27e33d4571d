package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

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
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg := node.Config{Dir: dir, Migrate: true}
	all := make([]*servers.Redis, deployments)
	for i := range all {
		at := filepath.Join(dir, "redis"+strconv.Itoa(i))
		if err := os.Mkdir(at, 0o700); err != nil {
			return 0, err
		}
		if all[i], err = servers.StartRedis(at, servers.RedisAlways...); err != nil {
			return 0, err
		}
		defer all[i].Kill()
		if i == 0 {
			cfg.Engine = all[i].URL()
		} else {
			cfg.Deployments = append(cfg.Deployments, all[i].URL())
		}
	}
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, n.Close(ctx)) }()
	units, shards := int64(shardStock), 6
	c, err := n.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "c", Kind: dibs.Sale, Title: "c", StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Shards: &shards,
	})
	if err == nil {
		c, err = n.Campaigns.Publish(ctx, "c")
	}
	if err != nil {
		return 0, err
	}
	users := usersOver(c, shardStock, false)
	before, err := spentBy(ctx, all)
	if err != nil {
		return 0, err
	}
	b := &redisNode{benchNode: &benchNode{n, dir}}
	if _, _, err := b.claimEach(ctx, users, redisCallers); err != nil {
		return 0, err
	}
	if _, err := b.settleRate(ctx); err != nil {
		return 0, err
	}
	after, err := spentBy(ctx, all)
	return (after - before) / shardStock, err
}

// spentBy is the CPU of this process and of all servers, in µs.
func spentBy(ctx context.Context, all []*servers.Redis) (float64, error) {
	sum := float64(cpuTime().Microseconds())
	for _, r := range all {
		c, err := redisClient(r)
		if err != nil {
			return 0, err
		}
		cpu, err := redisCPU(ctx, c)
		c.Close()
		if err != nil {
			return 0, err
		}
		sum += cpu
	}
	return sum, nil
}

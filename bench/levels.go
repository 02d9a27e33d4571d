package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// persistence is one way in which Redis keeps what it answered.
type persistence struct {
	name, level string
	args        []string
	// syncs is set when it writes an append-only file, of which a power cut takes
	// what was not synced. Of a snapshot the last whole one stays.
	syncs bool
}

var persistences = []persistence{
	{"nothing kept", dibs.LevelNone, nil, false},
	{"RDB, a snapshot each second", dibs.LevelNone, []string{"--save", "1 1"}, false},
	{"AOF, `everysec`", dibs.LevelRelaxed, []string{"--appendonly", "yes", "--appendfsync", "everysec"}, true},
	{"AOF, `always`", dibs.LevelDurable, servers.RedisAlways, true},
}

const (
	// levelTime is how long callers claim before the power is cut, and levelStock
	// more than they can get in it.
	levelTime  = 4 * time.Second
	levelStock = 8_000_000
)

// cut is what one power cut took.
type cut struct {
	measured
	// answered is how many claims had a yes. Of these Redis has lost so many, and
	// gone are those that had not been settled either.
	answered, lost, gone float64
}

// levels measures what each way costs, and what a power cut takes.
func levels(ctx context.Context, o *options) error {
	fmt.Printf("| Redis keeps | level | claims/s | p50 ms | p99 ms | answered | lost by Redis | and not settled |\n|---|---|---|---|---|---|---|---|\n")
	for i := range persistences {
		p := &persistences[i]
		var cuts []cut
		for range o.rounds {
			c, err := powerCut(ctx, p)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			cuts = append(cuts, c)
		}
		mid := func(value func(*cut) float64) float64 {
			values := make([]float64, len(cuts))
			for i := range cuts {
				values[i] = value(&cuts[i])
			}
			return median(values)
		}
		fmt.Printf("| %s | %s | %.0f | %.2f | %.2f | %.0f | %.0f | %.0f |\n", p.name, p.level,
			mid(func(c *cut) float64 { return c.rate }), mid(func(c *cut) float64 { return c.p50 }), mid(func(c *cut) float64 { return c.p99 }),
			mid(func(c *cut) float64 { return c.answered }), mid(func(c *cut) float64 { return c.lost }), mid(func(c *cut) float64 { return c.gone }))
	}
	return nil
}

// powerCut has callers claim, cuts the power under them, and counts what is not
// there when Redis has started again.
func powerCut(ctx context.Context, p *persistence) (c cut, err error) {
	n, disk, err := openCuttable(ctx, p)
	if err != nil {
		return c, err
	}
	defer n.discard()
	if err := n.campaign(ctx, "c", levelStock, 1); err != nil {
		return c, err
	}
	calling, stop := context.WithCancel(ctx)
	defer stop()
	var took [redisCallers][]float64
	var next atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for w := range took {
		wg.Go(func() {
			own, cancel := context.WithCancel(calling)
			defer cancel()
			for {
				at, user := time.Now(), strconv.Itoa(10_000_000+scatter(int(next.Add(1))))
				r, err := n.Service.Claim(own, dibs.ClaimRequest{CampaignID: "c", UserID: user, Key: user})
				if err != nil || r.Outcome != dibs.Granted {
					// The power is gone, and its claim has no answer.
					return
				}
				took[w] = append(took[w], time.Since(at).Seconds()*1000)
			}
		})
	}
	select {
	case <-time.After(levelTime):
	case <-ctx.Done():
	}
	measuredFor := time.Since(begun)
	if p.syncs {
		_, err = disk.PowerLoss()
	} else {
		n.redis.Kill()
	}
	stop()
	wg.Wait()
	if err != nil {
		return c, err
	}
	all := slices.Concat(took[:]...)
	if len(all) == 0 {
		return c, errors.New("no claim was answered")
	}
	c.answered, c.rate = float64(len(all)), float64(len(all))/measuredFor.Seconds()
	c.p50, c.p99 = quantiles(all)
	return c, c.count(ctx, n)
}

// openCuttable is openRedisNode on a disk that can lose its power.
func openCuttable(ctx context.Context, p *persistence) (*redisNode, *servers.Disk, error) {
	var disk *servers.Disk
	n, err := openRedisNodeOn(ctx, p.level, func(dir string) (r *servers.Redis, err error) {
		r, disk, err = servers.StartRedisOnDisk(dir, p.args...)
		return r, err
	})
	return n, disk, err
}

// count starts Redis on what is left, and compares. The service is closed before:
// it would load what was lost again.
func (c *cut) count(ctx context.Context, n *redisNode) error {
	closing, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// It cannot settle without Redis, and says so.
	_ = n.Service.Close(closing)
	n.Node = nil
	totals, err := n.ledger.Totals(ctx, dibs.ShardID{Campaign: 1})
	if err != nil {
		return err
	}
	if err := n.redis.Start(); err != nil {
		return err
	}
	kept := 0.0
	granted, err := n.redis.Do(ctx, "HGET", "dibs:{1:0}:meta", "granted")
	if err == nil && !granted.IsNil() {
		kept, err = granted.AsFloat64()
	}
	if err != nil {
		return err
	}
	settled := float64(totals.Stock - totals.StockLeft)
	c.lost = max(c.answered-kept, 0)
	c.gone = max(c.answered-max(kept, settled), 0)
	return nil
}

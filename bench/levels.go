package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// persistence is one way in which Redis keeps what it answered: the level that a node is opened
// with, and Redis' arguments. The node refuses a level that the arguments do not reach.
type persistence struct {
	name, level string
	args        []string
	// syncs is set when it writes an append-only file, of which a power cut takes
	// what was not synced. Of a snapshot the last whole one stays.
	syncs bool
	// replica is set when another server follows, and is promoted instead of
	// starting the one that had the power cut again.
	replica bool
}

var persistences = []persistence{
	{"nothing kept", dibs.LevelNone, nil, false, false},
	{"RDB, a snapshot each second", dibs.LevelNone, []string{"--save", "1 1"}, false, false},
	{"AOF, `everysec`", dibs.LevelRelaxed, []string{"--appendonly", "yes", "--appendfsync", "everysec"}, true, false},
	{"AOF, `always`", dibs.LevelDurable, servers.RedisAlways, true, false},
	{"AOF, `always`; the replica is promoted", dibs.LevelDurable, servers.RedisAlways, true, true},
	{"AOF, `always`, WAIT; the replica is promoted", dibs.LevelReplicated, servers.RedisAlways, true, true},
}

const (
	// levelTime is how long callers claim before the power is cut: a few of the seconds after
	// which everysec syncs and a snapshot is due. levelStock is more than callers can get in it,
	// so that every answer before the cut is a grant.
	levelTime  = 4 * time.Second
	levelStock = 8_000_000
)

// cut is what one power cut took.
type cut struct {
	measured
	// answered is how many claims had a yes. lost is how many of these Redis does not have after
	// the cut. gone is how many were not settled either: no copy of them is left.
	answered, lost, gone float64
}

// levels measures what each way of keeping costs, as rate and latency, and what a power cut takes.
// The losses are what the part is for, and hold on any machine; the rates stand beside them to show
// the price, and depend on the disk. The replica is on the same machine: it lags less than one
// across a network, so its losses without WAIT are the least that one may expect.
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
		printRow("| %s | %s | %.0f | %.2f | %.2f | %.0f | %.0f | %.0f |\n", medians(cuts, func(c *cut) []float64 {
			return []float64{c.rate, c.p50, c.p99, c.answered, c.lost, c.gone}
		}), p.name, p.level)
	}
	return nil
}

// powerCut has callers claim, cuts the power under them, and counts what is not there when Redis
// has started again. Callers count an answer only when they have it: a claim that was granted and
// not answered is no loss.
func powerCut(ctx context.Context, p *persistence) (c cut, err error) {
	n, disk, replica, err := openCuttable(ctx, p)
	if err != nil {
		return c, err
	}
	defer n.discard()
	if replica != nil {
		defer replica.Kill()
	}
	if err := n.campaign(ctx, "c", levelStock, 1); err != nil {
		return c, err
	}
	calling, stop := context.WithCancel(ctx)
	defer stop()
	// Each caller has a list of its own, so callers need no lock.
	var took [redisCallers][]float64
	var next atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for w := range took {
		wg.Go(func() {
			// A context of its own: thousands of callers that wait on one are a bottleneck.
			own, cancel := context.WithCancel(calling)
			defer cancel()
			for {
				at, user := time.Now(), strconv.Itoa(10_000_000+scatter(int(next.Add(1))))
				r, err := n.Service.Claims.Claim(own, dibs.ClaimRequest{CampaignID: "c", UserID: user, Key: user})
				if err != nil || r.Outcome != dibs.Granted {
					// The power is gone, and this claim has no answer. Any other failure ends the caller
					// too: the rows print how many were answered, so a part that fails early shows.
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
	// PowerLoss kills Redis and cuts the append-only file back to what was synced: a kill alone
	// loses nothing that the kernel has. A snapshot is renamed into place when it is whole.
	if p.syncs {
		_, err = disk.PowerLoss()
	} else {
		n.redis.Kill()
	}
	// Callers that still wait for an answer get none any more.
	stop()
	wg.Wait()
	if err != nil {
		return c, err
	}
	all := slices.Concat(took[:]...)
	if len(all) == 0 {
		return c, errors.New("no claim was answered")
	}
	// Answers that came between the end of levelTime and the cut count, since callers had them.
	c.answered, c.rate = float64(len(all)), float64(len(all))/measuredFor.Seconds()
	c.p50, c.p99 = quantiles(all)
	return c, c.count(ctx, n, replica)
}

// openCuttable is openRedisNode on a disk that can lose its power, with a replica where there is to
// be one. The replica runs before the node opens, as the level replicated requires.
func openCuttable(ctx context.Context, p *persistence) (n *redisNode, disk *servers.Disk, replica *servers.Redis, err error) {
	n, err = openRedisNode(ctx, p.level, "", func(dir string) (r *servers.Redis, err error) {
		args := p.args
		if p.replica {
			// Redis waits five seconds for further replicas by default before it sends the first copy.
			args = append(slices.Clone(args), "--repl-diskless-sync-delay", "0")
		}
		if r, disk, err = servers.StartRedisOnDisk(dir, args...); err != nil || !p.replica {
			return r, err
		}
		replica, err = startReplica(ctx, dir, r)
		return r, err
	})
	if err != nil && replica != nil {
		replica.Kill()
	}
	return n, disk, replica, err
}

// startReplica starts a server that follows another one, and returns when it has
// confirmed all of it.
func startReplica(ctx context.Context, dir string, master *servers.Redis) (*servers.Redis, error) {
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		return nil, err
	}
	replica, err := servers.StartRedis(filepath.Join(dir, "replica"), servers.RedisAlways...)
	if err != nil {
		return nil, err
	}
	if _, err := replica.Do(ctx, "REPLICAOF", host, port); err != nil {
		return replica, err
	}
	for range 600 {
		confirmed, err := master.Do(ctx, "WAIT", "1", "100")
		if err != nil {
			return replica, err
		}
		if n, err := confirmed.AsInt64(); err == nil && n > 0 {
			return replica, nil
		}
	}
	return replica, errors.New("the replica does not follow")
}

// heir returns the server that has the shard after the power cut: the same one, started again on
// what is left on the disk, or the replica, promoted. It counts the replica as it stands, without
// waiting for what may be under way: the master is dead.
func heir(ctx context.Context, master, replica *servers.Redis) (*servers.Redis, error) {
	if replica == nil {
		return master, master.Start()
	}
	_, err := replica.Do(ctx, "REPLICAOF", "NO", "ONE")
	return replica, err
}

// count has Redis come back, and compares what was answered with what it has. The service is closed
// before: it would load what was lost again from the ledger. The ledger is read before Redis comes
// back, so that nothing is settled in between.
func (c *cut) count(ctx context.Context, n *redisNode, replica *servers.Redis) error {
	closing, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// It cannot settle without Redis, and says so.
	_ = n.Service.Close(closing)
	n.Node = nil
	totals, err := n.ledger.Totals(ctx, dibs.ShardID{Campaign: 1})
	if err != nil {
		return err
	}
	from, err := heir(ctx, n.redis, replica)
	if err != nil {
		return err
	}
	kept := 0.0
	// The engine's own count of grants, campaign 1, shard 0. Without the key nothing was kept.
	granted, err := from.Do(ctx, "HGET", "dibs:{1:0}:meta", "granted")
	if err == nil && !granted.IsNil() {
		kept, err = granted.AsFloat64()
	}
	if err != nil {
		return err
	}
	settled := float64(totals.Stock - totals.StockLeft)
	// Redis may have more than was answered: grants whose answers the cut took.
	c.lost = max(c.answered-kept, 0)
	c.gone = max(c.answered-max(kept, settled), 0)
	return nil
}

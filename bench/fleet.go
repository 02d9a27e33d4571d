package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

const (
	// fleetSize is how many nodes share the claims that one node decides alone in the other half
	// of the rounds.
	fleetSize = 3
	// burst is how many claims a round has. With several nodes it is divided among them without
	// a remainder carried over: a node makes burst/nodes claims.
	burst = 100_000
)

// fleetRound is one round: cpu is the CPU of the nodes and their callers, redis the CPU of Redis,
// both in µs a claim; lag is the time in seconds from the last answer until the ledger has all.
type fleetRound struct{ cpu, redis, lag float64 }

// redisFleet asks whether a claim costs more when several nodes share the work: one node and then
// fleetSize nodes take the same burst on one Redis and settle into one MariaDB. The yardstick is
// one node's CPU per claim.
// All nodes are in this process, beside their callers, so the CPU includes the callers', and three
// nodes have no more cores than one: the part says what nodes cost, not how much faster a fleet is.
// The number of callers is the same for one node and for several, since larger batches cost less.
func redisFleet(ctx context.Context, o *options) (err error) {
	defer func() { err = errors.Join(err, servers.StopAll()) }()
	rounds := map[int][]fleetRound{}
	for range o.rounds {
		// In turn, so that a slow minute meets both.
		for _, nodes := range []int{1, fleetSize} {
			r, err := fleetBurst(ctx, nodes)
			if err != nil {
				return err
			}
			rounds[nodes] = append(rounds[nodes], r)
		}
	}
	figures := func(r *fleetRound) []float64 { return []float64{r.cpu, r.redis, r.lag} }
	one := medians(rounds[1], figures)
	fmt.Printf("| %d claims, settled into MariaDB | CPU of the nodes per claim, µs | to one node's | CPU of Redis | all settled after |\n|---|---|---|---|---|\n", burst)
	for _, nodes := range []int{1, fleetSize} {
		mid := medians(rounds[nodes], figures)
		fmt.Printf("| nodes: %d | %.1f | %.2f | %.2f | %.2f s |\n", nodes, mid[0], mid[0]/one[0], mid[1], mid[2])
	}
	return nil
}

// fleetBurst opens nodes on a Redis and a database that no other round uses: tables that grow from
// round to round would make later rounds dearer. Redis keeps nothing on the disk, so that the
// time of a sync does not decide how large batches become.
func fleetBurst(ctx context.Context, nodes int) (r fleetRound, err error) {
	r1, stop, err := startRedis()
	if err != nil {
		return r, err
	}
	defer stop()
	ledger, done, err := emptyDatabase(servers.MariaDB)()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, done()) }()
	fleet := make([]*redisNode, nodes)
	for i := range fleet {
		own, err := os.MkdirTemp("", "dibs-bench-")
		if err != nil {
			return r, err
		}
		fleet[i] = &redisNode{benchNode: &benchNode{dir: own}}
		defer fleet[i].discard()
		if err := fleet[i].open(ctx, dibs.LevelNone, r1.URL(), ledger); err != nil {
			return r, err
		}
	}
	// Each node makes one claim before the burst, so the stock has that many more.
	if err := fleet[0].campaign(ctx, "c", burst+int64(nodes), 1); err != nil {
		return r, err
	}
	return fleetClaims(ctx, r1, fleet)
}

// fleetClaims shares the burst, and waits until the ledger has all of it.
func fleetClaims(ctx context.Context, server *servers.Redis, fleet []*redisNode) (r fleetRound, err error) {
	c, err := redisClient(server)
	if err != nil {
		return r, err
	}
	defer c.Close()
	// Every node takes the campaign up before it is measured: its first claim loads the definition
	// and the scripts. The users' numbers are negative, so they are none of the burst's.
	for i, n := range fleet {
		if _, err := n.rush(ctx, "c", 1, -1-i, 1); err != nil {
			return r, err
		}
	}
	r.redis, err = rise(ctx, redisCPU(c), func() error {
		// From here to the settled ledger all CPU counts: a fleet that settles twice would show here.
		cpu := cpuTime()
		var all errgroup.Group
		for i, n := range fleet {
			all.Go(func() error {
				// scatter maps to 24 bits, so a base above them gives each node users of its own.
				_, err := n.rush(ctx, "c", redisCallers/len(fleet), (i+1)<<24, burst/len(fleet))
				return err
			})
		}
		err := all.Wait()
		if err == nil {
			// Any node can tell: they read one Redis and one ledger.
			r.lag, err = fleet[0].settled(ctx)
		}
		r.cpu = usPer(cpuTime()-cpu, burst)
		return err
	})
	r.redis /= burst
	return r, err
}

// settled waits until the ledger has all that was claimed, and returns how long that took, in
// seconds. It reads the journal's end once, after the last answer, and then asks the ledger every
// 10 ms: so the figure is at most 10 ms and one call too high.
func (n *redisNode) settled(ctx context.Context) (float64, error) {
	begun, shard := time.Now(), dibs.ShardID{Campaign: 1}
	st, err := n.engine.Stats(ctx, shard)
	if err != nil {
		return 0, err
	}
	err = until(ctx, 10*time.Millisecond, func() (bool, error) {
		totals, err := n.ledger.Totals(ctx, shard)
		return !totals.Position.Before(st.Head), err
	})
	return time.Since(begun).Seconds(), err
}

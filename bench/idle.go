package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// idleCampaigns is how many campaigns are live while no claim comes.
	idleCampaigns = 1000
	// idleCalm passes before the count begins: by then all that was granted is settled, and nodes
	// look at a shard every few seconds only. Without it the count would have the end of the rush.
	// idleTime is what is counted: some turns of the slowest look that the node with the fleet lease
	// takes.
	idleCalm = 12 * time.Second
	idleTime = 20 * time.Second
)

// idle counts what nodes ask of Redis while many campaigns are live and nobody claims. Idle
// campaigns must cost next to nothing: a shop has many of them, and with every write synced, each
// write takes time of the disk from a rush elsewhere. There is no yardstick; docs/PERFORMANCE.md
// has the figures of an earlier design. The counts come from Redis itself, so that no node forgets
// a call. They include the few INFO of this part.
func idle(ctx context.Context, _ *options) (err error) {
	defer func() { err = errors.Join(err, servers.StopAll()) }()
	r, stop, err := startRedis(servers.RedisAlways...)
	if err != nil {
		return err
	}
	defer stop()
	ledger, done, err := emptyDatabase(servers.MariaDB)()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	fleet := make([]*redisNode, fleetSize)
	for i := range fleet {
		own, err := os.MkdirTemp("", "dibs-bench-")
		if err != nil {
			return err
		}
		// redis stays nil: discard must not stop the server that all share.
		fleet[i] = &redisNode{benchNode: &benchNode{dir: own}}
		defer fleet[i].discard()
		if err := fleet[i].open(ctx, dibs.LevelDurable, r.URL(), ledger); err != nil {
			return err
		}
	}
	// Each node has claims in each campaign, so all nodes have taken all campaigns up: one that was
	// never used asks for nothing.
	err = inParallel(ctx, 16, idleCampaigns, func(ctx context.Context, i int) error {
		id := fmt.Sprint("c", i)
		if err := fleet[i%fleetSize].campaign(ctx, id, 10, 1); err != nil {
			return err
		}
		for u, n := range fleet {
			if _, err := n.rush(ctx, id, 1, u, 1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return idleFigures(ctx, r)
}

// idleFigures prints what is asked of Redis a second. Commands include those inside of scripts:
// Redis counts both. CPU is in percent of one core.
func idleFigures(ctx context.Context, r *servers.Redis) error {
	c, err := redisClient(r)
	if err != nil {
		return err
	}
	defer c.Close()
	if !wait.Sleep(ctx, idleCalm) {
		return ctx.Err()
	}
	before, err := idleCounts(ctx, c)
	if err != nil {
		return err
	}
	begun := time.Now()
	if !wait.Sleep(ctx, idleTime) {
		return ctx.Err()
	}
	after, err := idleCounts(ctx, c)
	if err != nil {
		return err
	}
	rate := func(count func(idleCount) float64) float64 {
		return (count(after) - count(before)) / time.Since(begun).Seconds()
	}
	fmt.Printf("| nodes: %d, idle campaigns: %d, `appendfsync always` | scripts/s | commands/s, those of scripts included | writes/s | CPU of Redis |\n|---|---|---|---|---|\n", fleetSize, idleCampaigns)
	fmt.Printf("| asked of Redis | %.0f | %.0f | %.1f | %.1f%% |\n", rate(func(n idleCount) float64 { return n.scripts }), rate(func(n idleCount) float64 { return n.all }),
		rate(func(n idleCount) float64 { return n.writes }), rate(func(n idleCount) float64 { return n.cpu })/1e4)
	return nil
}

// idleCount is what a server has done since its start; cpu is in µs.
type idleCount struct{ scripts, all, writes, cpu float64 }

// commandCalls finds the lines of INFO commandstats; a subcommand is written config|get.
var commandCalls = regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`)

// idleWrites are the commands with which nodes write, and which thus reach the append-only file.
// A command that a new script writes with has to be added here, or its writes are not counted.
var idleWrites = map[string]bool{"set": true, "hset": true, "xadd": true, "hincrby": true, "del": true, "unlink": true, "pexpire": true, "xdel": true, "xtrim": true}

// idleCounts reads the counters since the server's start; the difference of two counts.
func idleCounts(ctx context.Context, c rueidis.Client) (n idleCount, err error) {
	if n.cpu, err = redisCPU(c)(ctx); err != nil {
		return n, err
	}
	info, err := c.Do(ctx, c.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		return n, err
	}
	for _, found := range commandCalls.FindAllStringSubmatch(info, -1) {
		calls, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			return n, err
		}
		n.all += calls
		if found[1] == "evalsha" || found[1] == "eval" {
			n.scripts += calls
		}
		// INFO counts the commands inside of scripts by their own names too.
		if idleWrites[found[1]] {
			n.writes += calls
		}
	}
	return n, nil
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"
)

// redisLevels are how Redis persists, by the value of appendfsync, and the level that a node may be
// opened with on such a server.
var redisLevels = []struct {
	name, level string
	args        []string
}{
	{"always", dibs.LevelDurable, servers.RedisAlways},
	{"everysec", dibs.LevelRelaxed, []string{"--appendonly", "yes", "--appendfsync", "everysec"}},
	{"no AOF", dibs.LevelNone, nil},
}

const (
	// redisCallers is how many callers claim at once, each one claim at a time. Claims that arrive
	// while a call to Redis is under way form the next batch, so more callers make larger batches
	// and cheaper claims: the figures hold for a rush, not for one user after the other.
	redisCallers = 2048
	// redisGrants is how many grants a round has: a rush of about two seconds, in which settling has
	// hardly begun. So the rates are those of a rush, not of hours. redisGrabs is how many grabs the
	// yardstick has, which take about as long: it is slower.
	redisGrants, redisGrabs = 300_000, 60_000
)

// measured is one round of one way. rate is claims a second; p50 and p99 are how long a claim took,
// in ms. cpu is what Redis used a claim, and own what this process did, callers included, both in
// µs; times and timesCPU are rate and cpu divided by those of the yardstick that was measured just
// before it: only ratios of neighbours are compared, never ratios of medians.
type measured struct{ rate, p50, p99, cpu, own, times, timesCPU float64 }

// beside is m with its ratios to a yardstick.
func (m measured) beside(yardstick *measured) measured {
	m.times, m.timesCPU = m.rate/yardstick.rate, m.cpu/yardstick.cpu
	return m
}

// redisPart measures the engine on Redis beside the yardstick: the script that such sales are mostly
// built on, one call for each claim (package yardstick). The yardstick's Redis keeps nothing on the
// disk and nothing is settled elsewhere, so it does less than dibs at every level but the last. The
// part prints the rates, the memory of a grant, and the rate of refusals.
func redisPart(ctx context.Context, o *options) error {
	rounds := map[string][]measured{}
	for range o.rounds {
		if err := redisRound(ctx, rounds); err != nil {
			return err
		}
	}
	fmt.Printf("| | claims/s | to the yardstick | p50 ms | p99 ms | CPU of Redis per claim, µs | to the yardstick | CPU of the client or node per claim, µs |\n|---|---|---|---|---|---|---|---|\n")
	// A way that was not measured prints zeros: redis-benchmark may not be installed.
	for _, name := range []string{goYardstick, toolYardstick, "always", "everysec", "no AOF"} {
		printRow("| %s | %.0f | %.1f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", medians(rounds[name], func(m *measured) []float64 {
			return []float64{m.rate, m.times, m.p50, m.p99, m.cpu, m.timesCPU, m.own}
		}), name)
	}
	if err := redisBytes(ctx); err != nil {
		return err
	}
	return redisRefusals(ctx, o)
}

// usPer is a time for each of n, in µs.
func usPer(d time.Duration, n int) float64 { return d.Seconds() * 1e6 / float64(n) }

// redisRound measures each level right after a yardstick of its own: on a machine that is faster in
// one second than in the next, only neighbours compare. redis-benchmark goes first and once a round.
func redisRound(ctx context.Context, rounds map[string][]measured) error {
	for i, l := range redisLevels {
		yardstick, err := yardsticks(ctx, rounds, i == 0)
		if err != nil {
			return err
		}
		m, err := redisRush(ctx, l.level, l.args)
		if err != nil {
			return err
		}
		rounds[l.name] = append(rounds[l.name], m.beside(&yardstick))
	}
	return nil
}

// redisNode is a service on Redis, wired by hand, so that a part can reach engine and ledger. redis
// is the server that the node owns and stops; nil when several nodes share one.
type redisNode struct {
	*benchNode
	redis  *servers.Redis
	engine *redisengine.Engine
	ledger *sqlledger.Ledger
}

// redisWith starts a Redis with arguments in a node's folder.
func redisWith(args ...string) func(dir string) (*servers.Redis, error) {
	return func(dir string) (*servers.Redis, error) { return servers.StartRedis(dir, args...) }
}

// openRedisNode opens a node on a Redis that start starts in the node's folder, over a ledger; empty
// for SQLite in that folder.
func openRedisNode(ctx context.Context, level, ledger string, start func(dir string) (*servers.Redis, error)) (n *redisNode, err error) {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return nil, err
	}
	n = &redisNode{benchNode: &benchNode{dir: dir}}
	defer func() {
		if err != nil {
			n.discard()
		}
	}()
	if n.redis, err = start(dir); err != nil {
		return n, err
	}
	ledger = cmp.Or(ledger, "sqlite:"+filepath.Join(dir, "ledger.db"))
	// An error of open is returned and ends the node: the deferred function sees it.
	return n, n.open(ctx, level, n.redis.URL(), ledger)
}

// open opens engine and ledger, and starts the service. After an error discard ends what was opened.
func (n *redisNode) open(ctx context.Context, level, redis, ledger string) (err error) {
	if n.engine, err = redisengine.Open(ctx, redisengine.Config{URL: redis, Durability: level}); err != nil {
		return err
	}
	if n.ledger, err = sqlledger.Open(ctx, ledger, sqlledger.Options{Migrate: true}); err != nil {
		return err
	}
	ids, err := idgen.ForClaims(ctx, n.ledger)
	if err != nil {
		return err
	}
	s, err := node.NewService(node.ServiceConfig{Engine: n.engine, Ledger: n.ledger.Parts(), IDs: ids})
	if err != nil {
		return err
	}
	n.Node = &node.Node{Service: s}
	return s.Start(ctx)
}

// discard ends the node and, if it owns one, its server, and removes their folder. The engine closes
// before the server is killed: it would wait for answers until its time is up.
func (n *redisNode) discard() {
	var errs []error
	if n.Node != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		// Entries that are not settled do not matter any more.
		_ = n.Service.Close(ctx)
		cancel()
	}
	if n.engine != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		errs = append(errs, n.engine.Close(ctx))
		cancel()
	}
	if n.ledger != nil {
		errs = append(errs, n.ledger.Close())
	}
	// Killed, not stopped: what it would write at its end is removed with the folder.
	if n.redis != nil {
		n.redis.Kill()
	}
	if err := errors.Join(append(errs, os.RemoveAll(n.dir))...); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// redisRush opens a node at a level and has callers claim all of the stock. Redis counts its own
// CPU, so the commands of settling and leases are included, and so are those of this part.
func redisRush(ctx context.Context, level string, args []string) (m measured, err error) {
	n, err := openRedisNode(ctx, level, "", redisWith(args...))
	if err != nil {
		return m, err
	}
	defer n.discard()
	if err := n.campaign(ctx, "c", redisGrants, 1); err != nil {
		return m, err
	}
	c, err := redisClient(n.redis)
	if err != nil {
		return m, err
	}
	defer c.Close()
	var took []float64
	cpu, err := rise(ctx, redisCPU(c), func() (err error) {
		// The process's CPU has the callers and the settling of the first part of the rush.
		own := cpuTime()
		took, m.rate, err = n.claimAll(ctx)
		m.own = usPer(cpuTime()-own, redisGrants)
		return err
	})
	if err != nil {
		return m, err
	}
	m.cpu = cpu / redisGrants
	m.p50, m.p99 = quantiles(took)
	return m, nil
}

// claimAll has callers claim all of the stock, each claim for another user of eight digits and with
// an idempotency key, as careful clients send. Users and sizes are those of the yardstick, since
// both decide what Redis stores. It returns what each claim took, in ms, and claims a second.
func (n *redisNode) claimAll(ctx context.Context) (took []float64, rate float64, err error) {
	// One slot for each claim, so callers need no lock.
	took = make([]float64, redisGrants)
	begun := time.Now()
	err = inParallel(ctx, redisCallers, redisGrants, func(ctx context.Context, i int) error {
		at := time.Now()
		user := strconv.Itoa(10_000_000 + scatter(i))
		err := claim(ctx, n.Service, "c", user, user, dibs.Granted)
		took[i] = time.Since(at).Seconds() * 1000
		return err
	})
	return took, redisGrants / time.Since(begun).Seconds(), err
}

// redisRefusals measures the refusals of a sold-out sale on one node. The node reads once that the
// sale is sold out and then answers by itself: Redis is not asked, so the level does not matter. A
// request with a key is asked about in Redis only when its user may hold something, which the filter
// on the node denies for the users here.
func redisRefusals(ctx context.Context, o *options) error {
	n, err := openRedisNode(ctx, dibs.LevelNone, "", redisWith())
	if err != nil {
		return err
	}
	defer n.discard()
	// Sold out by real grants, so that the filter of holders has the size that it has after a sale.
	if err := n.soldOut(ctx, "c", redisCallers, 10_000); err != nil {
		return err
	}
	fmt.Printf("\n")
	return refusalRates(ctx, o, n.benchNode, "refused/s on one node, sold out", 4_000_000)
}

// redisBytes compares the memory that a grant keeps in Redis, after the journal was trimmed, with
// that of a grab of the yardstick. Before the trim a grant has its journal entry too, for an hour.
// Both users have eight digits; longer names cost both more.
func redisBytes(ctx context.Context) error {
	theirs, err := grabBytes(ctx)
	if err != nil {
		return err
	}
	n, err := openRedisNode(ctx, dibs.LevelNone, "", redisWith())
	if err != nil {
		return err
	}
	defer n.discard()
	if err := n.campaign(ctx, "c", redisGrants, 1); err != nil {
		return err
	}
	own, err := redisClient(n.redis)
	if err != nil {
		return err
	}
	defer own.Close()
	// From here on: an open campaign has keys without any grant, and the node's connections have
	// buffers.
	ours, err := rise(ctx, usedMemory(own), func() error {
		if _, _, err := n.claimAll(ctx); err != nil {
			return err
		}
		if _, err := n.settleRate(ctx); err != nil {
			return err
		}
		shard := dibs.ShardID{Campaign: 1}
		st, err := n.engine.Stats(ctx, shard)
		if err != nil {
			return err
		}
		// A moment in the future, so that entries of any age are trimmed: a node waits for an hour.
		return n.engine.TrimJournal(ctx, shard, st.Head, time.Now().Add(time.Hour))
	})
	if err != nil {
		return err
	}
	ours /= redisGrants
	fmt.Printf("\n| bytes in Redis, users of 8 digits | a grant | a grab of the yardstick | ratio |\n|---|---|---|---|\n")
	fmt.Printf("| journal trimmed | %.1f | %.1f | %.2f |\n", ours, theirs, ours/theirs)
	return nil
}

// grabBytes returns how many bytes a grab of the yardstick takes in Redis.
func grabBytes(ctx context.Context) (float64, error) {
	r, stop, err := startRedis()
	if err != nil {
		return 0, err
	}
	defer stop()
	c, err := redisClient(r)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	grabs, err := rise(ctx, usedMemory(c), func() error {
		_, err := grabAll(ctx, c, redisGrabs)
		return err
	})
	return grabs / redisGrabs, err
}

// usedMemory asks Redis how much memory it uses.
func usedMemory(c rueidis.Client) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) { return redisInfo(ctx, c, "memory", "used_memory") }
}

// redisClient returns a client of one server without a cache of its own, which would answer in the
// server's place.
func redisClient(r *servers.Redis) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{r.Addr()}, DisableCache: true, ForceSingleClient: true})
}

// redisInfo reads a number of a section of INFO. A name that is not there is an error.
func redisInfo(ctx context.Context, c rueidis.Client, section, name string) (float64, error) {
	info, err := c.Do(ctx, c.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(info, name+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return strconv.ParseFloat(value, 64)
}

// redisCPU is the server's CPU time since its start, user and system, in µs. Its children, which
// rewrite files and write snapshots, are not in it.
func redisCPU(c rueidis.Client) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		user, err := redisInfo(ctx, c, "cpu", "used_cpu_user")
		if err != nil {
			return 0, err
		}
		system, err := redisInfo(ctx, c, "cpu", "used_cpu_sys")
		return (user + system) * 1e6, err
	}
}

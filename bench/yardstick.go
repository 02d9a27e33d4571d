package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/yardstick"
)

// The two clients of the yardstick.
const (
	goYardstick   = "yardstick, Go client"
	toolYardstick = "yardstick, redis-benchmark"
)

// plainRedis starts a server without an AOF in a folder of its own.
func plainRedis() (*servers.Redis, string, error) {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return nil, "", err
	}
	r, err := servers.StartRedis(dir)
	return r, dir, err
}

func stopRedis(r *servers.Redis, dir string) {
	r.Kill()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// yardsticks measures the yardstick with both clients.
func yardsticks(ctx context.Context, rounds map[string][]measured) error {
	r, dir, err := plainRedis()
	if err != nil {
		return err
	}
	defer stopRedis(r, dir)
	c, err := redisClient(r)
	if err != nil {
		return err
	}
	defer c.Close()
	before, err := redisCPU(ctx, c)
	if err != nil {
		return err
	}
	own := cpuTime()
	m, err := grabAll(ctx, c, redisGrabs)
	if err != nil {
		return err
	}
	after, err := redisCPU(ctx, c)
	if err != nil {
		return err
	}
	m.cpu, m.own = (after-before)/redisGrabs, usPer(cpuTime()-own, redisGrabs)
	rounds[goYardstick] = append(rounds[goYardstick], m)
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		return nil
	}
	if before, err = redisCPU(ctx, c); err != nil {
		return err
	}
	if m, err = grabByTool(ctx, r, c); err != nil {
		return err
	}
	after, err = redisCPU(ctx, c)
	m.cpu = (after - before) / redisGrabs
	rounds[toolYardstick] = append(rounds[toolYardstick], m)
	return err
}

// grabAll grabs n packets.
func grabAll(ctx context.Context, c rueidis.Client, n int) (measured, error) {
	g, err := yardstick.Grab(ctx, c, n)
	return measured{rate: g.Rate, p50: g.P50, p99: g.P99}, err
}

// grabByTool does the same by a client that costs less.
func grabByTool(ctx context.Context, r *servers.Redis, c rueidis.Client) (measured, error) {
	g, err := yardstick.GrabByTool(ctx, r.Addr(), c, redisGrabs)
	return measured{rate: g.Rate, p50: g.P50}, err
}

// quantiles sorts the values and returns the middle and the 99th percentile.
func quantiles(values []float64) (p50, p99 float64) {
	slices.Sort(values)
	return values[len(values)/2], values[len(values)*99/100]
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/yardstick"
)

// The two clients of the yardstick. The Go client is the one that dibs uses, so that the ratio is
// not one of clients; redis-benchmark is written in C and shows what the Go client costs.
const (
	goYardstick   = "yardstick, Go client"
	toolYardstick = "yardstick, redis-benchmark"
)

// startRedis starts a server in a folder of its own; without arguments it keeps nothing on the disk.
// stop ends it and removes the folder; its error is only printed: the figures are there.
func startRedis(args ...string) (r *servers.Redis, stop func(), err error) {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return nil, nil, err
	}
	if r, err = servers.StartRedis(dir, args...); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, func() {
		r.Kill()
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}, nil
}

// yardsticks measures the yardstick with the Go client, and when tool is set with redis-benchmark
// too, if that is installed. It adds both to rounds and returns the first, which is what neighbours
// are compared with. redis-benchmark is compared with it as well.
func yardsticks(ctx context.Context, rounds map[string][]measured, tool bool) (m measured, err error) {
	r, stop, err := startRedis()
	if err != nil {
		return m, err
	}
	defer stop()
	c, err := redisClient(r)
	if err != nil {
		return m, err
	}
	defer c.Close()
	cpu, err := rise(ctx, redisCPU(c), func() (err error) {
		own := cpuTime()
		m, err = grabAll(ctx, c, redisGrabs)
		m.own = usPer(cpuTime()-own, redisGrabs)
		return err
	})
	if err != nil {
		return m, err
	}
	m.cpu = cpu / redisGrabs
	rounds[goYardstick] = append(rounds[goYardstick], m.beside(&m))
	if _, err := exec.LookPath("redis-benchmark"); err != nil || !tool {
		return m, nil
	}
	var t measured
	cpu, err = rise(ctx, redisCPU(c), func() (err error) {
		t, err = grabByTool(ctx, r, c)
		return err
	})
	t.cpu = cpu / redisGrabs
	rounds[toolYardstick] = append(rounds[toolYardstick], t.beside(&m))
	return m, err
}

// grabAll empties the server and grabs n packets, each for another user.
func grabAll(ctx context.Context, c rueidis.Client, n int) (measured, error) {
	g, err := yardstick.Grab(ctx, c, n)
	return measured{rate: g.Rate, p50: g.P50, p99: g.P99}, err
}

// grabByTool grabs redisGrabs packets by redis-benchmark, which tells no 99th percentile.
func grabByTool(ctx context.Context, r *servers.Redis, c rueidis.Client) (measured, error) {
	g, err := yardstick.GrabByTool(ctx, r.Addr(), c, redisGrabs)
	return measured{rate: g.Rate, p50: g.P50}, err
}

// quantiles sorts the values and returns the middle and the 99th percentile. It needs at least one
// value; of fewer than a hundred, the 99th percentile is the greatest.
func quantiles(values []float64) (p50, p99 float64) {
	slices.Sort(values)
	return values[len(values)/2], values[len(values)*99/100]
}

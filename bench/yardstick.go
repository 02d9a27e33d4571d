package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/internal/servers"
)

// The two clients of the yardstick.
const (
	goYardstick   = "yardstick, Go client"
	toolYardstick = "yardstick, redis-benchmark"
)

// grab is the yardstick: the script that such sales are mostly built on, one
// call for each packet. Who is in the map has one already; else a packet moves
// from one queue to the other under the user's name.
const grab = `
if redis.call('HEXISTS', KEYS[3], KEYS[4]) == 1 then return false end
local packet = redis.call('RPOP', KEYS[1])
if not packet then return false end
local taken = cjson.decode(packet)
taken['userId'] = KEYS[4]
local record = cjson.encode(taken)
redis.call('HSET', KEYS[3], KEYS[4], KEYS[4])
redis.call('LPUSH', KEYS[2], record)
return record`

// yardstickConns is how many connections the yardstick has.
const yardstickConns = 20

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
	m, err := grabAll(ctx, c, redisGrabs)
	if err != nil {
		return err
	}
	after, err := redisCPU(ctx, c)
	if err != nil {
		return err
	}
	m.cpu = (after - before) / redisGrabs
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

// fill puts packets into the queue.
func fill(ctx context.Context, c rueidis.Client, n int) (sha string, err error) {
	if err := c.Do(ctx, c.B().Flushall().Build()).Error(); err != nil {
		return "", err
	}
	for at := 0; at < n; at += 1000 {
		var packets []string
		for i := at; i < min(at+1000, n); i++ {
			packets = append(packets, fmt.Sprintf(`{"id":%d,"money":%d}`, i, i))
		}
		if err := c.Do(ctx, c.B().Lpush().Key("packets").Element(packets...).Build()).Error(); err != nil {
			return "", err
		}
	}
	return c.Do(ctx, c.B().ScriptLoad().Script(grab).Build()).ToString()
}

// grabAll grabs n packets over some connections, each one at a time.
func grabAll(ctx context.Context, c rueidis.Client, n int) (m measured, err error) {
	sha, err := fill(ctx, c, n)
	if err != nil {
		return m, err
	}
	took := make([]float64, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, yardstickConns)
	begun := time.Now()
	for range yardstickConns {
		wg.Go(func() {
			d, release := c.Dedicate()
			defer release()
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				at := time.Now()
				call := d.B().Evalsha().Sha1(sha).Numkeys(4).Key("packets", "consumed", "map", strconv.FormatInt(10_000_000+i, 10)).Build()
				if err := d.Do(ctx, call).Error(); err != nil {
					errs <- err
					return
				}
				took[i-1] = time.Since(at).Seconds() * 1000
			}
		})
	}
	wg.Wait()
	m.rate = float64(n) / time.Since(begun).Seconds()
	m.p50, m.p99 = quantiles(took)
	select {
	case err := <-errs:
		return m, err
	default:
		return m, nil
	}
}

var perSecond = regexp.MustCompile(`([0-9.]+) requests per second, p50=([0-9.]+) msec`)

// grabByTool does the same by a client that costs less.
func grabByTool(ctx context.Context, r *servers.Redis, c rueidis.Client) (m measured, err error) {
	sha, err := fill(ctx, c, redisGrabs)
	if err != nil {
		return m, err
	}
	_, port, err := net.SplitHostPort(r.Addr())
	if err != nil {
		return m, err
	}
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-p", port, "-c", strconv.Itoa(yardstickConns), "-n", strconv.Itoa(redisGrabs),
		"-q", "-r", "1000000000", "EVALSHA", sha, "4", "packets", "consumed", "map", "__rand_int__").CombinedOutput()
	if err != nil {
		return m, err
	}
	found := perSecond.FindAllSubmatch(out, -1)
	if len(found) == 0 {
		return m, fmt.Errorf("redis-benchmark says %q", out)
	}
	last := found[len(found)-1]
	if m.rate, err = strconv.ParseFloat(string(last[1]), 64); err != nil {
		return m, err
	}
	m.p50, err = strconv.ParseFloat(string(last[2]), 64)
	return m, err
}

// quantiles sorts the values and returns the middle and the 99th percentile.
func quantiles(values []float64) (p50, p99 float64) {
	slices.Sort(values)
	return values[len(values)/2], values[len(values)*99/100]
}

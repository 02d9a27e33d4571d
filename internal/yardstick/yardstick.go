// Package yardstick measures what dibs on Redis is compared with: the script that
// such sales are mostly built on, by a Go client and by redis-benchmark.
package yardstick

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/sync/errgroup"
)

// grab is one call for each packet. A user in the map has one already; else a
// packet moves from one queue to the other under the user's name.
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

// conns is how many connections grab, each one packet at a time.
const conns = 20

// Grabs are packets grabbed a second, and percentiles of how long one took, in
// milliseconds.
type Grabs struct{ Rate, P50, P99 float64 }

// fill empties the server and puts packets into the queue.
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

// Grab empties the server, and grabs n packets for as many users of eight digits.
func Grab(ctx context.Context, c rueidis.Client, n int) (g Grabs, err error) {
	sha, err := fill(ctx, c, n)
	if err != nil {
		return g, err
	}
	took := make([]float64, n)
	var next atomic.Int64
	var all errgroup.Group
	begun := time.Now()
	for range conns {
		all.Go(func() error {
			d, release := c.Dedicate()
			defer release()
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				at := time.Now()
				call := d.B().Evalsha().Sha1(sha).Numkeys(4).Key("packets", "consumed", "map", strconv.FormatInt(10_000_000+i, 10)).Build()
				if err := d.Do(ctx, call).Error(); err != nil {
					return err
				}
				took[i-1] = time.Since(at).Seconds() * 1000
			}
			return nil
		})
	}
	err = all.Wait()
	g.Rate = float64(n) / time.Since(begun).Seconds()
	slices.Sort(took)
	g.P50, g.P99 = took[n/2], took[n*99/100]
	return g, err
}

var perSecond = regexp.MustCompile(`([0-9.]+) requests per second, p50=([0-9.]+) msec`)

// GrabByTool does the same by redis-benchmark, a client that costs less. It tells
// no 99th percentile.
func GrabByTool(ctx context.Context, address string, c rueidis.Client, n int) (g Grabs, err error) {
	sha, err := fill(ctx, c, n)
	if err != nil {
		return g, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return g, err
	}
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-p", port, "-c", strconv.Itoa(conns), "-n", strconv.Itoa(n),
		"-q", "-r", "1000000000", "EVALSHA", sha, "4", "packets", "consumed", "map", "__rand_int__").CombinedOutput()
	if err != nil {
		return g, fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	found := perSecond.FindAllSubmatch(out, -1)
	if len(found) == 0 {
		return g, fmt.Errorf("redis-benchmark says %q", out)
	}
	last := found[len(found)-1]
	if g.Rate, err = strconv.ParseFloat(string(last[1]), 64); err != nil {
		return g, err
	}
	g.P50, err = strconv.ParseFloat(string(last[2]), 64)
	return g, err
}

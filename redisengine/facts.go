package redisengine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
)

// facts is what one server tells of itself.
type facts struct {
	addr     string
	version  [3]int
	role     string
	replicas int
	cluster  bool
	// run is the id of this run of the server.
	run string
	// used and most are bytes of memory; most is the machine's where Redis has no
	// maximum of its own.
	used, most int64
	capped     bool
	policy     string
	aof        bool
	// fsync and noFsync are settings; unread when the server does not show them.
	fsync, noFsync string
	// skew is by how much its clock is ahead of the local one, at least, in ms.
	skew int64
}

// unread stands for a setting that the server does not show.
const unread = "not shown"

// nodes returns what every server tells of itself, replicas of a cluster left
// out: they decide nothing.
func (c *client) nodes(ctx context.Context) ([]facts, error) {
	var all []facts
	for addr, node := range c.c.Nodes() {
		f, err := factsOf(ctx, addr, node)
		if err != nil {
			return nil, fmt.Errorf("redisengine: asking %s: %w", addr, err)
		}
		if f.role == "master" || c.c.Mode() != rueidis.ClientModeCluster {
			all = append(all, *f)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("redisengine: no master is known")
	}
	slices.SortFunc(all, func(a, b facts) int { return strings.Compare(a.addr, b.addr) })
	return all, nil
}

// isCluster reports whether the driver speaks to a cluster.
func (c *client) isCluster() bool { return c.c.Mode() == rueidis.ClientModeCluster }

func factsOf(ctx context.Context, addr string, node rueidis.Client) (*facts, error) {
	ask := func(command string, args ...string) (reply, error) {
		return answer(node.Do(ctx, node.B().Arbitrary(command).Args(args...).Build()))
	}
	r, err := ask("INFO")
	if err != nil {
		return nil, err
	}
	info := infoOf(r.text)
	number := func(name string) int64 {
		// A server that does not tell counts as 0.
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	f := &facts{
		addr: addr, role: info["role"], replicas: int(number("connected_slaves")), cluster: info["cluster_enabled"] == "1",
		run: info["run_id"], used: number("used_memory"), most: number("maxmemory"), policy: info["maxmemory_policy"],
		aof: info["aof_enabled"] == "1", fsync: unread, noFsync: unread,
	}
	if f.capped = f.most > 0; !f.capped {
		f.most = number("total_system_memory")
	}
	for i, part := range strings.SplitN(info["redis_version"], ".", 3) {
		// What is no number counts as 0.
		f.version[i], _ = strconv.Atoi(part)
	}
	for name, value := range map[string]*string{"appendfsync": &f.fsync, "no-appendfsync-on-rewrite": &f.noFsync} {
		r, err := ask("CONFIG", "GET", name)
		var answered *answeredError
		if err != nil && !errors.As(err, &answered) {
			return nil, err
		}
		if got, ok := r.pairs()[name]; ok {
			*value = got.text
		}
	}
	f.skew, err = skewOf(ask)
	return f, err
}

// skewOf measures by how much a server's clock is away from the local one, at
// least: what the answer took may explain the rest.
func skewOf(ask func(command string, args ...string) (reply, error)) (int64, error) {
	sent := time.Now().UnixMilli()
	r, err := ask("TIME")
	heard := time.Now().UnixMilli()
	if err != nil {
		return 0, err
	}
	if len(r.list) != 2 {
		return 0, errShape
	}
	s, err := strconv.ParseInt(r.list[0].text, 10, 64)
	if err != nil {
		return 0, err
	}
	us, err := strconv.ParseInt(r.list[1].text, 10, 64)
	if err != nil {
		return 0, err
	}
	now := s*1000 + us/1000
	switch {
	case now > heard:
		return now - heard, nil
	case now < sent-1:
		return now - sent, nil
	}
	return 0, nil
}

// level is what an answer of the server is worth, without waiting for replicas.
func (f *facts) level() string {
	switch {
	case !f.aof || f.noFsync != "no":
		return dibs.LevelNone
	case f.fsync == "always":
		return dibs.LevelDurable
	case f.fsync == "everysec":
		return dibs.LevelRelaxed
	}
	return dibs.LevelNone
}

package redisengine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	// rewriting says that the append-only file is being written anew, or about to be,
	// unwritten that Redis could not write to it the last time. unsaved is set for a
	// server whose file is being written for the first time since it had none.
	rewriting, unwritten, unsaved bool
	// fsync and noFsync are settings; unread when the server does not show them.
	fsync, noFsync string
	// skew is by how much its clock is ahead of the local one, at least, in ms.
	skew int64
}

// unread stands for a setting that the server does not show.
const unread = "not shown"

// nodes returns what every server tells of itself, replicas of a cluster left
// out: they decide nothing. Beside an error it returns those that have answered.
func (c *client) nodes(ctx context.Context) ([]facts, error) {
	var mu sync.Mutex
	var all []facts
	var errs []error
	var asks sync.WaitGroup
	for addr, node := range c.c.Nodes() {
		asks.Go(func() {
			f, err := factsOf(ctx, addr, node)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("redisengine: asking %s: %w", addr, err))
			case f.role == "master" || !c.isCluster():
				all = append(all, *f)
			}
		})
	}
	asks.Wait()
	if len(all) == 0 && len(errs) == 0 {
		return nil, errors.New("redisengine: no master is known")
	}
	slices.SortFunc(all, func(a, b facts) int { return strings.Compare(a.addr, b.addr) })
	return all, errors.Join(errs...)
}

// isCluster reports whether the driver speaks to a cluster.
func (c *client) isCluster() bool { return c.c.Mode() == rueidis.ClientModeCluster }

func factsOf(ctx context.Context, addr string, node rueidis.Client) (*facts, error) {
	// All at once: this is asked several times a second. Both settings have a name
	// that matches.
	sent := time.Now().UnixMilli()
	answers := node.DoMulti(ctx, node.B().Info().Build(), node.B().ConfigGet().Parameter("*appendfsync*").Build(), node.B().Time().Build())
	heard := time.Now().UnixMilli()
	r, err := answer(answers[0])
	if err != nil {
		return nil, err
	}
	info := infoOf(r.text)
	if info["loading"] == "1" {
		// It says that it has no append-only file while it reads the one that it has.
		return nil, &answeredError{message: "LOADING Redis is loading its files"}
	}
	number := func(name string) int64 {
		// A server that does not tell counts as 0.
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	f := &facts{
		addr: addr, role: info["role"], replicas: followers(info), cluster: info["cluster_enabled"] == "1",
		run: info["run_id"], used: number("used_memory"), most: number("maxmemory"), policy: info["maxmemory_policy"],
		aof: info["aof_enabled"] == "1", fsync: unread, noFsync: unread,
		rewriting: number("aof_rewrite_in_progress")+number("aof_rewrite_scheduled") > 0, unwritten: info["aof_last_write_status"] == "err",
	}
	if f.capped = f.most > 0; !f.capped {
		f.most = number("total_system_memory")
	}
	for i, part := range strings.SplitN(info["redis_version"], ".", 3) {
		// What is no number counts as 0.
		f.version[i], _ = strconv.Atoi(part)
	}
	r, err = answer(answers[1])
	var answered *answeredError
	if err != nil && !errors.As(err, &answered) {
		return nil, err
	}
	settings := r.pairs()
	for name, value := range map[string]*string{"appendfsync": &f.fsync, "no-appendfsync-on-rewrite": &f.noFsync} {
		if got, ok := settings[name]; ok {
			*value = got.text
		}
	}
	if r, err = answer(answers[2]); err != nil {
		return nil, err
	}
	f.skew, err = skewOf(&r, sent, heard)
	return f, err
}

// followers counts the replicas that have what the server has, but for what is on
// its way: one that is being given a copy confirms nothing.
func followers(info map[string]string) (n int) {
	for name, value := range info {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") {
			n++
		}
	}
	return n
}

// skewOf is by how much a server's clock is away from the local one, at least: what
// the answer took may explain the rest.
func skewOf(r *reply, sent, heard int64) (int64, error) {
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
	case !f.aof || f.unsaved || f.unwritten || f.noFsync != "no":
		return dibs.LevelNone
	case f.fsync == "always":
		return dibs.LevelDurable
	case f.fsync == "everysec":
		return dibs.LevelRelaxed
	}
	return dibs.LevelNone
}

package conn

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
)

// Facts is what one server tells of itself.
type Facts struct {
	Addr     string
	Version  [3]int
	Role     string
	Replicas int
	Cluster  bool
	// Run is the id of this run of the server.
	Run string
	// Used and Most are bytes of memory; Most is the machine's where Redis has no
	// maximum of its own.
	Used, Most int64
	Capped     bool
	Policy     string
	AOF        bool
	// Rewriting says that the append-only file is being written anew, or about to be,
	// Unwritten that Redis could not write to it the last time. Unsaved is set by the
	// watch on the level, for a server whose file is being written for the first time
	// since it had none.
	Rewriting, Unwritten, Unsaved bool
	// Fsync and NoFsync are settings; Unread when the server does not show them.
	Fsync, NoFsync string
	// Skew is by how much its clock is ahead of the local one, at least, in ms.
	Skew int64
}

// Unread stands for a setting that the server does not show.
const Unread = "not shown"

func factsOf(ctx context.Context, addr string, node rueidis.Client) (*Facts, error) {
	// All at once: this is asked several times a second. Both settings have a name
	// that matches.
	sent := time.Now().UnixMilli()
	answers := node.DoMulti(ctx, node.B().Info().Build(), node.B().ConfigGet().Parameter("*appendfsync*").Build(), node.B().Time().Build())
	heard := time.Now().UnixMilli()
	r, err := answer(answers[0])
	if err != nil {
		return nil, err
	}
	info := infoOf(r.Text)
	if info["loading"] == "1" {
		// It says that it has no append-only file while it reads the one that it has.
		return nil, &AnsweredError{Message: "LOADING Redis is loading its files"}
	}
	number := func(name string) int64 {
		// A server that does not tell counts as 0.
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	f := &Facts{
		Addr: addr, Role: info["role"], Replicas: followers(info), Cluster: info["cluster_enabled"] == "1",
		Run: info["run_id"], Used: number("used_memory"), Most: number("maxmemory"), Policy: info["maxmemory_policy"],
		AOF: info["aof_enabled"] == "1", Fsync: Unread, NoFsync: Unread,
		Rewriting: number("aof_rewrite_in_progress")+number("aof_rewrite_scheduled") > 0, Unwritten: info["aof_last_write_status"] == "err",
	}
	if f.Capped = f.Most > 0; !f.Capped {
		f.Most = number("total_system_memory")
	}
	for i, part := range strings.SplitN(info["redis_version"], ".", 3) {
		// A value that is no number counts as 0.
		f.Version[i], _ = strconv.Atoi(part)
	}
	r, err = answer(answers[1])
	if _, answered := errors.AsType[*AnsweredError](err); err != nil && !answered {
		return nil, err
	}
	settings := r.Pairs()
	for name, value := range map[string]*string{"appendfsync": &f.Fsync, "no-appendfsync-on-rewrite": &f.NoFsync} {
		if got, ok := settings[name]; ok {
			*value = got.Text
		}
	}
	if r, err = answer(answers[2]); err != nil {
		return nil, err
	}
	f.Skew, err = skewOf(&r, sent, heard)
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
func skewOf(r *Reply, sent, heard int64) (int64, error) {
	if len(r.List) != 2 {
		return 0, ErrShape
	}
	s, err := strconv.ParseInt(r.List[0].Text, 10, 64)
	if err != nil {
		return 0, err
	}
	us, err := strconv.ParseInt(r.List[1].Text, 10, 64)
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

// Level is what an answer of the server is worth, without waiting for replicas.
func (f *Facts) Level() string {
	switch {
	case !f.AOF || f.Unsaved || f.Unwritten || f.NoFsync != "no":
		return dibs.LevelNone
	case f.Fsync == "always":
		return dibs.LevelDurable
	case f.Fsync == "everysec":
		return dibs.LevelRelaxed
	}
	return dibs.LevelNone
}

// infoOf reads the lines of an answer to INFO.
func infoOf(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	return info
}

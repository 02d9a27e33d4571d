// Package experiments shows by running them what goes wrong between processes that share
// a Redis, and what is right instead: each mistake and each property that articles about
// flash sales describe, on a real server, in seconds.
//
// # Basics
//
// All lists the experiments of a group. Run makes each in an empty database and returns
// what was seen: the broken outcome and the right one. An experiment that does not show
// what it says has failed; it never reports what it did not see.
//
// # Caveats
//
// Where two processes have to meet at a bad moment, the experiment lets them: a real rush
// finds the same moments by chance. Experiments that restart the server need one of their
// own, and are left out on a server that is given.
package experiments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/dibs-dev/dibs/internal/servers"
)

// The groups.
const (
	Redis = "redis"
	Cache = "cache"
	Locks = "locks"
)

// Groups returns the names of all groups.
func Groups() []string { return []string{Redis, Cache, Locks} }

// Experiment is one mistake or one property.
type Experiment struct {
	Group, Name string
	// Claim says what it shows, in one sentence.
	Claim string
	// own says that it restarts the server.
	own bool
	run func(ctx context.Context, b *bench) (Seen, error)
}

// Seen is what an experiment showed.
type Seen struct {
	// Broken is what the mistake leads to, or what the property does not give; Right is
	// what happens the right way.
	Broken string `json:"broken"`
	Right  string `json:"right"`
}

// Result is an experiment that was run.
type Result struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	Claim string `json:"claim"`
	Seen
	// Skipped says why it was not run, Failed why it did not show what it says.
	Skipped string `json:"skipped,omitempty"`
	Failed  string `json:"failed,omitempty"`
}

// All returns the experiments of a group.
func All(group string) []Experiment {
	switch group {
	case Redis:
		return append(transactions(), append(scripts(), persistence()...)...)
	case Cache:
		return cached()
	case Locks:
		return locked()
	}
	return nil
}

// ErrNoServer: there is no server to run experiments on.
var ErrNoServer = errors.New("experiments: a server is missing")

// Config says what Run does.
type Config struct {
	// Group is one of Groups; Names are some of its experiments, empty for all.
	Group string
	Names []string
	// URL is an empty database of a Redis to use; empty starts one for the run.
	URL string
	// Worker is the command of a process that calls Work with the arguments that are
	// added to it: experiments kill it.
	Worker []string
	// Progress takes a line for each experiment; nil shows nothing.
	Progress io.Writer
}

// bench is where experiments run: one after the other, each with a server that is empty.
type bench struct {
	dir string
	// server is nil on a Redis that was given.
	server *servers.Redis
	url    string
	starts int
	worker []string
}

// Run runs experiments, one after the other. ErrNoServer when there is no server; an error
// of ctx when it ended, with the results until then.
func Run(ctx context.Context, cfg Config) (results []Result, err error) {
	cfg.Progress = cmp.Or(cfg.Progress, io.Discard)
	b := &bench{url: cfg.URL, worker: cfg.Worker}
	if b.dir, err = os.MkdirTemp("", "dibs-lab-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.url == "" {
		if b.server, err = b.start(); err != nil {
			return nil, fmt.Errorf("%w: redis: install redis-server, or name an empty database of one that runs by --redis: %w", ErrNoServer, err)
		}
		defer b.server.Kill()
		b.url = b.server.URL()
	} else if err := b.given(ctx); err != nil {
		return nil, err
	}
	for _, e := range chosen(cfg) {
		r := b.try(ctx, &e)
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		results = append(results, r)
		fmt.Fprintf(cfg.Progress, "%-28s %s\n", e.Name, r.Verdict())
	}
	return results, nil
}

// Verdict is a word for a result.
func (r *Result) Verdict() string {
	switch {
	case r.Skipped != "":
		return "left out"
	case r.Failed != "":
		return "NOT SHOWN"
	}
	return "shown"
}

// chosen are the experiments that a configuration names.
func chosen(cfg Config) []Experiment {
	var list []Experiment
	for _, e := range All(cfg.Group) {
		wanted := len(cfg.Names) == 0
		for _, n := range cfg.Names {
			wanted = wanted || n == e.Name
		}
		if wanted {
			list = append(list, e)
		}
	}
	return list
}

// try runs one experiment on an empty database.
func (b *bench) try(ctx context.Context, e *Experiment) Result {
	r := Result{Group: e.Group, Name: e.Name, Claim: e.Claim}
	if e.own && b.server == nil {
		r.Skipped = "it restarts the server, and the one of --redis is not the lab's"
		return r
	}
	seen, err := e.run(ctx, b)
	if r.Seen = seen; err != nil {
		r.Failed = err.Error()
	}
	if err := b.empty(ctx); err != nil && r.Failed == "" {
		r.Failed = err.Error()
	}
	return r
}

// start starts a server in a folder of its own.
func (b *bench) start(args ...string) (*servers.Redis, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	return servers.StartRedis(dir, args...)
}

// folder makes a folder for a server.
func (b *bench) folder() (string, error) {
	b.starts++
	dir := filepath.Join(b.dir, "redis"+strconv.Itoa(b.starts))
	return dir, os.Mkdir(dir, 0o700)
}

// given checks that a database that was named answers and is empty: experiments empty it.
func (b *bench) given(ctx context.Context) error {
	c, err := b.connect(ctx)
	if err != nil {
		return fmt.Errorf("%w: nothing answers as Redis at --redis: %w", ErrNoServer, err)
	}
	defer c.close()
	if n := c.do("DBSIZE"); n != "0" {
		return fmt.Errorf("%w: the database of --redis holds %s keys, and the lab empties it: name an empty one, such as redis://127.0.0.1:6379/9", ErrNoServer, n)
	}
	return nil
}

// empty removes what an experiment has left.
func (b *bench) empty(ctx context.Context) error {
	c, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return c.want("OK", "FLUSHDB")
}

package measure

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/plan"
)

// Config says what to measure.
type Config struct {
	// Program is the dibs to start as a server; required.
	Program string
	// Version is the version of dibs, for the calibration.
	Version string
	// Engine and Ledger are addresses as dibs serve takes them; empty measures the
	// memory engine and SQLite. Redis and databases should be test servers that are
	// set up like those of production; of a Cluster, one server like its masters.
	// Redis without a Ledger has a file of SQLite in Data, which stays: Redis knows its
	// ledger again. Durability is the level of the engine.
	Engine, Ledger, Durability string
	// Shards is how many shards the campaigns of a check have; 0 is one. More need Redis.
	Shards int
	// Link is the round trip to Redis that a check plans with. By default it takes no time,
	// since the time of a sync that Run measures has the way to Redis in it.
	Link time.Duration
	// Data is the folder below which the servers keep their files; empty means the
	// temporary folder.
	Data string
	// Progress receives a line for each step; nil means no lines.
	Progress io.Writer
	// Requests is how many requests a load has, from LeastRequests to MostRequests; default
	// DefaultRequests.
	Requests int
	// Rounds is how often each load and each rehearsal of a check runs; default DefaultRounds.
	// Of what they show the middle counts: the same load may cost twice as much a second later
	// on a machine that others use too.
	Rounds int
}

// What a Config has by default, and within which bounds. Fewer requests would nearly all be
// the first ones of their connections, and more would be settled during the load.
const (
	DefaultRounds                                = 5
	LeastRequests, DefaultRequests, MostRequests = 2_000, 12_000, 16_000
)

func (c *Config) rounds() int { return max(1, cmp.Or(c.Rounds, DefaultRounds)) }

// The loads. A settler that is told to wait, and loads that are smaller than its
// batches, keep settling apart from the answers.
const (
	lone = 200
	// wave is as many connections as a rush has: with fewer, a request costs less.
	wave         = 1_000
	fresh        = 5_000
	settlerWaits = "5s"
)

// kind names an engine or a ledger by its address.
func kind(address string) string {
	switch {
	case address == "" || address == plan.Memory:
		return plan.Memory
	case strings.HasPrefix(address, "redis"), strings.HasPrefix(address, "unix:"):
		return plan.Redis
	case strings.HasPrefix(address, "postgres"):
		return plan.Postgres
	case strings.HasPrefix(address, "mysql"):
		return plan.MySQL
	}
	return plan.SQLite
}

// args names an engine and a ledger to a server.
func (c *Config) args(engine, ledger string) []string {
	var args []string
	if kind(engine) == plan.Redis && ledger == "" {
		place := strings.TrimSuffix(redisengine.Place(engine), "/")
		name := fmt.Sprintf("dibs-plan-%.6x.db", sha256.Sum256([]byte(place)))
		ledger = "sqlite:" + filepath.Join(cmp.Or(c.Data, os.TempDir()), name)
	}
	for _, flag := range []struct{ name, value string }{{"--engine", engine}, {"--ledger", ledger}} {
		if flag.value != "" {
			args = append(args, flag.name, flag.value)
		}
	}
	if c.Durability != "" && engine != "" {
		args = append(args, "--durability", c.Durability)
	}
	return args
}

// Run takes a calibration. Costs that do not depend on the machine, such as the size of a
// request, are those of plan.Default.
func Run(ctx context.Context, cfg Config) (*plan.Calibration, error) {
	cal, _, err := run(ctx, cfg, false)
	return cal, err
}

// RunAndCheck is Run and Check in one, with loads and rehearsals by turns: a machine that
// becomes slower or faster meanwhile, as a shared one does from one minute to the next,
// changes both alike. When a rehearsal fails, it returns the calibration with the error.
func RunAndCheck(ctx context.Context, cfg Config) (*plan.Calibration, []*Comparison, error) {
	return run(ctx, cfg, true)
}

func run(ctx context.Context, cfg Config, check bool) (cal *plan.Calibration, all []*Comparison, err error) {
	if _, ok := ownCPU(); !ok {
		return nil, nil, errors.New("this system does not tell how much processor time a process has used")
	}
	deployments := [][2]string{{"", ""}}
	if cfg.Engine != "" && kind(cfg.Engine) != plan.Memory || cfg.Ledger != "" {
		deployments = append(deployments, [2]string{cfg.Engine, cfg.Ledger})
	}
	var loaded []*loading
	for _, d := range deployments {
		loaded = append(loaded, cfg.loading(d[0], d[1]))
	}
	var shown rehearsals
	for round := range cfg.rounds() {
		for _, l := range loaded {
			if err := l.round(ctx, round); err != nil {
				return nil, nil, err
			}
		}
		if check && err == nil {
			err = shown.round(ctx, &cfg, round)
		}
	}
	cal = cfg.workOut(loaded)
	if check && err == nil {
		all, err = shown.compare(ctx, cal, &cfg)
	}
	return cal, all, err
}

// say tells of progress.
func (c *Config) say(format string, args ...any) {
	if c.Progress != nil {
		fmt.Fprintf(c.Progress, format+"\n", args...)
	}
}

// loading is what loads of an engine and a ledger showed, which are addresses.
type loading struct {
	cfg            *Config
	engine, ledger string
	rushes         [4]struct {
		name string
		rush rush
		seen loads
	}
}

// The loads of a deployment by their places.
const (
	single = iota
	grants
	refusals
	firsts
)

// loading lists the loads of an engine and a ledger.
func (c *Config) loading(engine, ledger string) *loading {
	l := &loading{cfg: c, engine: engine, ledger: ledger}
	n := cmp.Or(c.Requests, DefaultRequests)
	l.rushes[single].name, l.rushes[single].rush = "one request after the other", rush{requests: lone, wave: 1, stock: lone}
	l.rushes[grants].name, l.rushes[grants].rush = "grants", rush{requests: n, wave: wave, stock: int64(n)}
	l.rushes[refusals].name, l.rushes[refusals].rush = "refusals", rush{requests: n, wave: wave, stock: 1}
	l.rushes[firsts].name, l.rushes[firsts].rush = "refusals on new connections", rush{requests: min(n, fresh), wave: min(n, fresh), stock: 1}
	return l
}

// round runs each load once, on a server of its own: one that stayed would be a second node
// beside those of rehearsals on the same Redis, and settle for them.
func (l *loading) round(ctx context.Context, round int) (err error) {
	s, err := start(ctx, l.cfg, append(l.cfg.args(l.engine, l.ledger), "--settle-every", settlerWaits)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if kind(l.engine) == plan.Redis {
		if s.redis, err = connectRedis(l.engine); err != nil {
			return err
		}
		defer s.redis.Close()
	}
	what := kind(l.engine) + " with " + ledgerKind(l.ledger)
	for i := range l.rushes {
		r := &l.rushes[i]
		l.cfg.say("%s: %s, %d of %d", what, r.name, round+1, l.cfg.rounds())
		x, err := r.rush.bearable(func(r rush) (*seen, error) { return r.run(ctx, s) }, l.cfg.say)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", what, r.name, err)
		}
		if got := x.cores(); x.rush.wave > 1 && got < 0.75*float64(runtime.NumCPU()) {
			l.cfg.say("warning: during %s client and server got %.1f of %d cores; other programs make the times of disk and database too long", r.name, got, runtime.NumCPU())
		}
		// The next round begins with as many connections as this one could bear.
		r.rush, r.seen = x.rush, append(r.seen, x)
	}
	return nil
}

// workOut makes a calibration of what the loads showed. The first of them, the memory
// engine with SQLite, gives the costs of client and node too.
func (c *Config) workOut(loaded []*loading) *plan.Calibration {
	base := plan.Default()
	cal := &plan.Calibration{
		Format: plan.Format, Version: c.Version, MeasuredAt: time.Now().UTC().Truncate(time.Second),
		Machine: fmt.Sprintf("machine with %d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()),
		Engines: map[string]*plan.EngineCost{}, Ledgers: map[string]*plan.LedgerCost{}, Sizes: base.Sizes,
	}
	for _, l := range loaded {
		one, many := l.rushes[single].seen, l.rushes[grants].seen
		engine, ledger := kind(l.engine), ledgerKind(l.ledger)
		cal.Engines[engine] = engineCost(engine, base.Engines[engine], one, many)
		cal.Ledgers[ledger] = ledgerCost(ledger, one, many)
		// The next one may be Redis with another SQLite.
		if cal.Client.RequestUS == 0 {
			cal.Client, cal.Node = requestCosts(cal, many, l.rushes[refusals].seen, l.rushes[firsts].seen)
		}
	}
	return cal
}

func ledgerKind(address string) string {
	if address == "" {
		return plan.SQLite
	}
	return kind(address)
}

// least is the least cost that is taken for real, in µs: what is smaller was lost in
// the noise.
const least = 0.05

// engineCost works out what deciding costs, from a load of single requests and one of
// grants.
func engineCost(kind string, base *plan.EngineCost, single, grants loads) *plan.EngineCost {
	e := &plan.EngineCost{StepUS: base.StepUS, ClaimUS: base.ClaimUS, ReadUS: base.ReadUS}
	if kind == plan.Redis {
		each := grants.middle((*seen).stepClaims)
		perCall, perClaim := single.middle((*seen).redisUS), grants.middle((*seen).redisUS)
		// Two equations: a call of one claim, and calls of many.
		e.ClaimUS = max(least, (perClaim-perCall/each)/(1-1/max(each, 2)))
		e.StepUS = max(least, perCall-e.ClaimUS)
	}
	e.SyncUS = max(least, single.middle((*seen).stepUS)-e.StepUS-e.ClaimUS)
	return e
}

// requestCosts works out what a request costs node and client, with the memory engine and
// SQLite: from a load of grants, one of refusals, and one of refusals on connections
// that had no request before.
func requestCosts(cal *plan.Calibration, grants, refusals, first loads) (plan.ClientCost, plan.NodeCost) {
	e, l := cal.Engines[plan.Memory], cal.Ledgers[plan.SQLite]
	granted := grants.middle(func(x *seen) float64 {
		// Every claim of the load had its part of a step, which is counted apart.
		ofEngine := e.ClaimUS + e.StepUS/max(x.stepClaims(), 1)
		settledMeanwhile := (x.after.settled - x.before.settled) / float64(x.rush.requests)
		return x.serverUS() - ofEngine - settledMeanwhile*(l.RowUS+l.NodeUS)
	})
	refused, onFirst := refusals.middle((*seen).serverUS), first.middle((*seen).serverUS)
	// Of each load so many requests were the first ones on their connections.
	share := refusals.middle(func(x *seen) float64 { return float64(x.rush.wave) / float64(x.rush.requests) })
	node := (onFirst - refused) / (1 - share)
	request := (grants.middle((*seen).clientUS) + refusals.middle((*seen).clientUS)) / 2
	client := (first.middle((*seen).clientUS) - request) / (1 - share)
	return plan.ClientCost{RequestUS: max(least, request-share*client), FirstUS: max(least, client)},
		plan.NodeCost{GrantedUS: max(least, granted-share*node), RefusedUS: max(least, refused-share*node), FirstUS: max(least, node)}
}

// ledgerCost works out what settling costs. It tells the transaction from its rows by a
// small one and a large one. What SQLite needs is processor time of the node; of a
// server the time counts.
func ledgerCost(kind string, single, grants loads) *plan.LedgerCost {
	cpu := max(least, grants.middle((*seen).settlingUS))
	l := &plan.LedgerCost{NodeUS: cpu}
	small := single.middle((*seen).transactionUS)
	rows := single.middle(func(x *seen) float64 { return lone / max(x.transactions(), 1) })
	if kind == plan.SQLite {
		l.RowUS, l.NodeUS = 0.95*cpu, 0.05*cpu
		l.CommitUS = max(least, small-rows*cpu)
		return l
	}
	l.RowUS = max(least, grants.middle(func(x *seen) float64 {
		n := x.transactions()
		return n * (x.transactionUS() - small) / (float64(x.rush.requests) - rows*n)
	}))
	l.CommitUS = max(least, small-rows*l.RowUS)
	return l
}

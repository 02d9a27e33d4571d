package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

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
	// Durability is the level of the engine.
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
	// Requests is how many requests a load has; default 12,000.
	Requests int
}

// The loads. A settler that is told to wait, and loads that are smaller than its
// batches, keep settling apart from the answers.
const (
	lone        = 200
	defaultLoad = 12_000
	// wave is as many connections as a rush has: with fewer, a request costs less.
	wave         = 1_000
	fresh        = 5_000
	settlerWaits = "10s"
)

// kind names an engine or a ledger by its address.
func kind(address string) string {
	switch {
	case address == "" || address == plan.Memory:
		return plan.Memory
	case strings.HasPrefix(address, "redis"):
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
// request, is what plan.Default has.
func Run(ctx context.Context, cfg Config) (*plan.Calibration, error) {
	if _, ok := ownCPU(); !ok {
		return nil, errors.New("this system does not tell how much processor time a process has used")
	}
	if cfg.Requests == 0 {
		cfg.Requests = defaultLoad
	}
	m := &measuring{cfg: cfg, base: plan.Default()}
	m.cal = &plan.Calibration{
		Format: plan.Format, Version: cfg.Version, MeasuredAt: time.Now().UTC().Truncate(time.Second),
		Machine: fmt.Sprintf("machine with %d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()),
		Engines: map[string]*plan.EngineCost{}, Ledgers: map[string]*plan.LedgerCost{}, Sizes: m.base.Sizes,
	}
	if err := m.on(ctx, "", ""); err != nil {
		return nil, err
	}
	if cfg.Engine != "" && kind(cfg.Engine) != plan.Memory || cfg.Ledger != "" {
		if err := m.on(ctx, cfg.Engine, cfg.Ledger); err != nil {
			return nil, err
		}
	}
	return m.cal, nil
}

// measuring is one calibration in the making.
type measuring struct {
	cfg  Config
	base *plan.Calibration
	cal  *plan.Calibration
}

func (m *measuring) say(format string, args ...any) {
	if m.cfg.Progress != nil {
		fmt.Fprintf(m.cfg.Progress, format+"\n", args...)
	}
}

// on measures an engine and a ledger. The first pair, the memory engine with SQLite,
// gives the costs of client and node too.
func (m *measuring) on(ctx context.Context, engine, ledger string) (err error) {
	args := append(m.cfg.args(engine, ledger), "--settle-every", settlerWaits)
	s, err := start(ctx, &m.cfg, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if kind(engine) == plan.Redis {
		if s.redis, err = connectRedis(engine); err != nil {
			return err
		}
		defer s.redis.Close()
	}
	what := kind(engine) + " with " + ledgerKind(ledger)
	n := m.cfg.Requests
	rushes := []struct {
		name string
		rush rush
		seen *seen
	}{
		{name: "one request after the other", rush: rush{requests: lone, wave: 1, stock: lone}},
		{name: "grants", rush: rush{requests: n, wave: wave, stock: int64(n)}},
		{name: "refusals", rush: rush{requests: n, wave: wave, stock: 1}},
		{name: "refusals on new connections", rush: rush{requests: min(n, fresh), wave: min(n, fresh), stock: 1}},
	}
	for i := range rushes {
		r := &rushes[i]
		m.say("%s: %s", what, r.name)
		run := func(r rush) (*seen, error) { return r.run(ctx, s) }
		if r.seen, err = r.rush.bearable(run, m.say); err != nil {
			return fmt.Errorf("%s, %s: %w", what, r.name, err)
		}
		m.heed(r.name, r.seen)
	}
	m.engine(kind(engine), rushes[0].seen, rushes[1].seen)
	m.ledger(ledgerKind(ledger), rushes[0].seen, rushes[1].seen)
	if m.cal.Client.RequestUS == 0 {
		m.requests(rushes[1].seen, rushes[2].seen, rushes[3].seen)
	}
	return nil
}

func ledgerKind(address string) string {
	if address == "" {
		return plan.SQLite
	}
	return kind(address)
}

// heed warns of a machine that had other things to do.
func (m *measuring) heed(name string, x *seen) {
	if got := x.cores(); x.rush.wave > 1 && got < 0.75*float64(runtime.NumCPU()) {
		m.say("warning: during %s client and server got %.1f of %d cores; other programs make the times of disk and database too long", name, got, runtime.NumCPU())
	}
}

// least is the least cost that is taken for real, in µs: what is smaller was lost in
// the noise.
const least = 0.05

// engine works out what deciding costs, from a load of single requests and one of
// grants.
func (m *measuring) engine(kind string, single, grants *seen) {
	base := m.base.Engines[kind]
	e := &plan.EngineCost{StepUS: base.StepUS, ClaimUS: base.ClaimUS, ReadUS: base.ReadUS}
	if kind == plan.Redis {
		_, each := grants.step()
		perCall, perClaim := single.redisUS(), grants.redisUS()
		// Two equations: a call of one claim, and calls of many.
		e.ClaimUS = max(least, (perClaim-perCall/each)/(1-1/max(each, 2)))
		e.StepUS = max(least, perCall-e.ClaimUS)
	}
	alone, _ := single.step()
	e.SyncUS = max(least, alone-e.StepUS-e.ClaimUS)
	m.cal.Engines[kind] = e
}

// requests works out what a request costs node and client, with the memory engine and
// SQLite: from a load of grants, one of refusals, and one of refusals on connections
// that had no request before.
func (m *measuring) requests(grants, refusals, first *seen) {
	e, l := m.cal.Engines[plan.Memory], m.cal.Ledgers[plan.SQLite]
	// Every claim of the load had its part of a step, which is counted apart.
	_, each := grants.step()
	ofEngine := e.ClaimUS + e.StepUS/max(each, 1)
	settledMeanwhile := (grants.after.settled - grants.before.settled) / float64(grants.rush.requests)
	// Of each load so many requests were the first ones on their connections.
	share := float64(refusals.rush.wave) / float64(refusals.rush.requests)
	node := (first.serverUS() - refusals.serverUS()) / (1 - share)
	m.cal.Node = plan.NodeCost{
		GrantedUS: max(least, grants.serverUS()-ofEngine-settledMeanwhile*(l.RowUS+l.NodeUS)-share*node),
		RefusedUS: max(least, refusals.serverUS()-share*node),
		FirstUS:   max(least, node),
	}
	request := (grants.clientUS() + refusals.clientUS()) / 2
	client := (first.clientUS() - request) / (1 - share)
	m.cal.Client = plan.ClientCost{RequestUS: max(least, request-share*client), FirstUS: max(least, client)}
}

// ledger works out what settling costs. It tells the transaction from its rows by a
// small one and a large one. What SQLite needs is processor time of the node; of a
// server the time counts.
func (m *measuring) ledger(kind string, single, grants *seen) {
	l := &plan.LedgerCost{}
	m.cal.Ledgers[kind] = l
	cpu := least
	if grants.left > 0 {
		cpu = max(least, grants.settling*1e6/grants.left)
	}
	small, n := single.transactions()
	small /= max(n, 1)
	rows := lone / max(n, 1)
	if kind == plan.SQLite {
		l.RowUS, l.NodeUS = 0.95*cpu, 0.05*cpu
		l.CommitUS = max(least, small-rows*cpu)
		return
	}
	large, k := grants.transactions()
	l.NodeUS = cpu
	l.RowUS = max(least, (large-small*k)/(float64(grants.rush.requests)-rows*k))
	l.CommitUS = max(least, small-rows*l.RowUS)
}

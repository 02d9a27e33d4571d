package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/dibs-dev/dibs/lab/strategies"
	"github.com/dibs-dev/dibs/node"
)

// connections is how many a strategy has to a database, at most: as many as a small service has.
// With one for each of thousands of callers, the database would refuse them.
const connections = 64

// finishing is how long the writing behind the answers may take. A strategy that is not done by
// then has failed: its orders cannot be counted.
const finishing = 2 * time.Minute

// job is one run: one strategy on one database, with so many callers at once.
type job struct {
	strategy    strategies.Strategy
	database    string
	concurrency int
}

// jobs lists the runs. A strategy without database and Redis runs once, on neither; one with Redis
// alone has its orders in a database all the same.
func jobs(cfg *Config) []job {
	var list []job
	for _, s := range cfg.chosen() {
		databases := cfg.Databases
		if !s.SQL && !s.Redis {
			databases = []string{""}
		}
		for _, n := range cfg.Concurrency {
			for _, d := range databases {
				list = append(list, job{s, d, n})
			}
		}
	}
	return list
}

// Run runs every strategy that the configuration names, one after the other, so that none disturbs
// another. A strategy that fails does not end the run: the report names it. A report that is not nil
// is what was found until ctx ended, or an error came, also an error of stopping the servers.
// ErrNoServer when a server is not there. The configuration must be valid.
func Run(ctx context.Context, cfg Config) (report *Report, err error) {
	cfg = cfg.WithDefaults()
	fmt.Fprintln(cfg.Progress, "starting the servers")
	b, err := newBench(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	sync, err := syncTime(b.dir)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	report = &Report{
		SyncMS: ms(sync), redisGiven: cfg.Redis != "",
		Preset: cfg.Preset, At: begun.UTC().Truncate(time.Second), Machine: fmt.Sprintf("%d CPUs, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()),
		Users: cfg.Users, Requests: cfg.Requests, Stock: cfg.Stock, TimeMS: ms(cfg.Time), Results: []Result{}, Surprises: []string{},
	}
	list := jobs(&cfg)
	report.Planned = len(list)
	for i, j := range list {
		r, err := b.run(ctx, &j)
		// A call that was cut off says nothing about the strategy.
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		if err != nil {
			// The others have nothing to do with it.
			r.Skipped = err.Error()
			report.Surprises = append(report.Surprises, fmt.Sprintf("%s on %s failed: %v", r.Strategy, cmp.Or(r.Database, "-"), err))
		}
		report.Results = append(report.Results, *r)
		report.TookMS = ms(time.Since(begun))
		if r.Verdict() == "BROKEN" {
			report.Surprises = append(report.Surprises, fmt.Sprintf("%s on %s broke: %v", r.Strategy, cmp.Or(r.Database, "-"), r.Broke()))
		}
		fmt.Fprintf(cfg.Progress, "%2d of %d  %s\n", i+1, len(list), r.line())
	}
	return report, nil
}

// line is a result in one line.
func (r *Result) line() string {
	at := r.Strategy
	if r.Database != "" {
		at += " on " + r.Database
	}
	if r.Skipped != "" {
		return fmt.Sprintf("%-32s not run: %s", at, r.Skipped)
	}
	return fmt.Sprintf("%-32s %9.0f answers/s  %s", at, r.AnswersPerSecond, r.Verdict())
}

// run runs one strategy in a world of its own: a new database, an emptied Redis, a new folder. A
// Redis that does not keep what a level of dibs needs is no failure: the result says that it was not
// run. r is never nil. Servers and tables that were made are removed also when ctx has ended.
func (b *bench) run(ctx context.Context, j *job) (r *Result, err error) {
	s := &j.strategy
	r = &Result{
		Strategy: s.Name, Idea: s.Idea, Does: s.Does, Teaches: s.Teaches, Database: j.database, Concurrency: j.concurrency,
		InProcess: !s.SQL && !s.Redis,
		Breaks:    append([]strategies.Flaw{}, s.Breaks...),
	}
	over := make(chan struct{})
	w := &strategies.World{Stock: b.cfg.Stock, Packet: b.cfg.Preset == Packets, Over: over}
	clean, err := b.furnish(ctx, j, w)
	// clean is never nil, and takes away what a failed furnish has given.
	defer func() { err = errors.Join(err, clean(context.WithoutCancel(ctx))) }()
	if err != nil {
		return r, err
	}
	a, err := s.Open(ctx, w)
	if errors.Is(err, node.ErrDurability) {
		r.Skipped = err.Error()
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, b.measure(ctx, j, w, a, over, r)
}

// measure lets the callers press, waits until what they were granted is written, and counts the
// orders. over closes once, when the time is up or ctx ends, whichever is first: the timer closes it,
// or what has stopped the timer. The clock of GrantsPerSecond ends with the last yes, so
// that many refusals after it do not lower the rate.
func (b *bench) measure(ctx context.Context, j *job, w *strategies.World, a strategies.Attempt, over chan struct{}, r *Result) (err error) {
	if c, ok := a.(interface{ Close(context.Context) error }); ok {
		defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	}
	before, err := count(ctx, w, a)
	if err != nil {
		return err
	}
	p := newPresses(b.cfg)
	limit := time.AfterFunc(b.cfg.Time, func() { close(over) })
	defer limit.Stop()
	stopped := context.AfterFunc(ctx, func() {
		if limit.Stop() {
			close(over)
		}
	})
	defer stopped()
	// Presses that are under way are answered, within grace: ctx must not cut them off, or orders
	// would be left whose callers know nothing.
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.Time+grace)
	defer cancel()
	p.send(own, a, j.concurrency, over)
	begun := time.Now()
	finish, cancelFinish := context.WithTimeout(context.WithoutCancel(ctx), finishing)
	defer cancelFinish()
	if err := a.Finish(finish); err != nil {
		return err
	}
	r.SettleMS = ms(time.Since(begun))
	after, err := count(finish, w, a)
	if err != nil {
		return err
	}
	p.into(r)
	r.calls(before, after)
	orders, err := ordersOf(finish, w, a)
	if err != nil {
		return err
	}
	p.compare(r, orders, j.strategy.PerUser)
	// A yes without an order is no grant, and an order without a yes was told to nobody.
	if last := time.Duration(p.lastYes.Load()); last > 0 {
		r.GrantsPerSecond = float64(min(r.Granted, r.Orders)) / last.Seconds()
	}
	return ctx.Err()
}

// into copies what was answered into a result.
func (p *presses) into(r *Result) {
	r.Granted, r.SoldOut = p.counts[strategies.Granted].Load(), p.counts[strategies.SoldOut].Load()
	r.Again, r.Busy, r.Errors = p.counts[strategies.Again].Load(), p.counts[strategies.Busy].Load(), p.errs.Load()
	if err := p.failed.Load(); err != nil {
		r.Failed = (*err).Error()
	}
	r.Stopped = p.stopped
	r.Seconds = p.elapsed.Seconds()
	r.AnswersPerSecond = float64(r.Answers()) / r.Seconds
	r.P50MS, r.P90MS, r.P99MS = p.quantiles()
}

// ordersOf counts the orders of each user, where the strategy keeps them: in memory or Redis of its
// own, or in the orders of the database.
func ordersOf(ctx context.Context, w *strategies.World, a strategies.Attempt) (map[string]int64, error) {
	if own, ok := a.(interface {
		Orders(ctx context.Context) (map[string]int64, error)
	}); ok {
		return own.Orders(ctx)
	}
	return w.SQL.Orders(ctx)
}

// calls are counts of calls since some beginning; known says which ones are.
type calls struct {
	redis, sql           int64
	redisKnown, sqlKnown bool
}

// count counts the calls of a strategy as its own connections do, and those of dibs as the servers
// do, since dibs has connections of its own. So those of dibs include what it does besides claims;
// in Redis a script counts as one call, whatever commands are inside.
func count(ctx context.Context, w *strategies.World, a strategies.Attempt) (c calls, err error) {
	_, ours := a.(*strategies.Dibs)
	if w.Redis != nil {
		c.redis, c.redisKnown = w.Redis.Calls(), true
		if ours {
			if c.redis, err = w.Redis.ScriptCalls(ctx); err != nil {
				return c, err
			}
		}
	}
	if w.SQL != nil {
		c.sql, c.sqlKnown = w.SQL.Calls(), true
		if ours {
			c.sql, c.sqlKnown, err = w.SQL.ServerStatements(ctx)
		}
	}
	return c, err
}

// calls sets the calls for each press, those that ended in an error included: they made calls too.
func (r *Result) calls(before, after calls) {
	n := float64(r.Answers() + r.Errors)
	if n == 0 {
		return
	}
	if after.redisKnown {
		r.RedisPerClaim = new(float64(after.redis-before.redis) / n)
	}
	if after.sqlKnown {
		r.SQLPerClaim = new(float64(after.sql-before.sql) / n)
	}
}

// furnish gives a strategy its servers. clean, which is never nil, takes away what was given, the
// latest first, also after an error. Redis is emptied after each strategy, so none finds keys.
func (b *bench) furnish(ctx context.Context, j *job, w *strategies.World) (clean func(context.Context) error, err error) {
	var undo []func(context.Context) error
	clean = func(ctx context.Context) error {
		var errs []error
		for i := len(undo) - 1; i >= 0; i-- {
			errs = append(errs, undo[i](ctx))
		}
		return errors.Join(errs...)
	}
	b.temps++
	w.Dir = filepath.Join(b.dir, fmt.Sprintf("dibs%d", b.temps))
	undo = append(undo, func(context.Context) error { return os.RemoveAll(w.Dir) })
	if j.database != "" {
		address, drop, err := b.make(ctx, j.database)
		if err != nil {
			return clean, err
		}
		undo = append(undo, drop)
		w.LedgerURL = address
		if w.SQL, err = strategies.OpenSQL(address, min(connections, j.concurrency)); err != nil {
			return clean, err
		}
		undo = append(undo, func(context.Context) error { return w.SQL.Close() })
	}
	if !j.strategy.Redis {
		return clean, nil
	}
	if w.RedisURL, err = b.redisFor(ctx, j.strategy.Level); err != nil {
		return clean, err
	}
	if w.Redis, err = strategies.OpenRedis(w.RedisURL); err != nil {
		return clean, err
	}
	undo = append(undo, func(ctx context.Context) error {
		err := w.Redis.Flush(ctx)
		w.Redis.Close()
		return err
	})
	return clean, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/dibs-dev/dibs/plan"
)

// Comparison is what a plan said of a rehearsal, and what the rehearsal showed in some rounds.
type Comparison struct {
	Requests int   `json:"requests"`
	Wave     int   `json:"wave"`
	Stock    int64 `json:"stock"`
	Rounds   int   `json:"rounds"`
	// Cores is how many cores client and server together got. The plan was asked for
	// a machine with so many.
	Cores   float64  `json:"cores"`
	Figures []Figure `json:"figures"`
}

// Figure is one number, as it was planned and as it was seen.
type Figure struct {
	Name    string  `json:"name"`
	Planned float64 `json:"planned"`
	// Seen is the middle of the rounds, and Least and Most are the ends of what they showed:
	// the further apart they are, the less a plan for this machine can be worth.
	Seen  float64 `json:"seen"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	// Judged says that Worst counts it. Rate, P99 and Spent always count, and Lag where it
	// was planned or seen to be at least two fifths of a second: a shorter wait for the ledger
	// is too short for how often the server is asked.
	Judged bool `json:"judged"`
}

// The names of the figures.
const (
	Rate  = "answers a second"
	P99   = "p99, ms"
	Lag   = "longest wait for the ledger, s"
	Spent = "processor time a request, µs"
)

// leastLag is the shortest wait for the ledger that is judged, in seconds.
var leastLag = 8 * lagLook.Seconds()

// judged says that a figure counts.
func judged(name string, planned, seen float64) bool {
	return name != Lag || max(planned, seen) >= leastLag
}

// Error is how far the plan was off: 0.1 is a tenth too much, -0.1 a tenth too little.
func (f *Figure) Error() float64 { return f.Planned/f.Seen - 1 }

// Worst is the largest error of a judged figure, without its sign.
func (c *Comparison) Worst() float64 {
	worst := 0.0
	for i := range c.Figures {
		if f := &c.Figures[i]; f.Judged {
			worst = max(worst, math.Abs(f.Error()))
		}
	}
	return worst
}

// sizes are the rushes that a check runs: the rush of dibs rehearse, one in which every
// request is granted, and one that sells out on the way.
var sizes = [3]rush{
	{requests: 5_000, wave: 5_000, stock: 200},
	{requests: 20_000, wave: 1_000, stock: 20_000},
	{requests: 60_000, wave: 2_000, stock: 10_000},
}

// Kinds names the engine and the ledger of a check, whose costs it needs.
func (c *Config) Kinds() (engine, ledger string) { return kind(c.Engine), ledgerKind(c.Ledger) }

// Check runs rehearsals of three sizes on servers of their own, on the engine and the
// ledger of the Config, and has the calibration predict each.
func Check(ctx context.Context, cal *plan.Calibration, cfg Config) ([]*Comparison, error) {
	var shown rehearsals
	for round := range cfg.rounds() {
		if err := shown.round(ctx, &cfg, round); err != nil {
			return nil, err
		}
	}
	return shown.compare(ctx, cal, &cfg)
}

// rehearsals are what the rounds of each size showed. Each round has all sizes, so that what
// the machine does at a moment is not taken for what a size does.
type rehearsals [len(sizes)]loads

func (all *rehearsals) round(ctx context.Context, cfg *Config, round int) error {
	for i, r := range sizes {
		x, err := cfg.rehearse(ctx, r)
		if err != nil {
			return fmt.Errorf("a rehearsal of %d requests, %d at once: %w", r.requests, r.wave, err)
		}
		all[i] = append(all[i], x)
		cfg.say("rehearsed %d requests, %d of %d", r.requests, round+1, cfg.rounds())
	}
	return nil
}

func (all *rehearsals) compare(ctx context.Context, cal *plan.Calibration, cfg *Config) (found []*Comparison, err error) {
	for i, l := range all {
		c, err := cfg.compare(ctx, cal, sizes[i], l)
		if err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	return found, nil
}

// rehearse runs one rehearsal on a server of its own.
func (c *Config) rehearse(ctx context.Context, r rush) (x *seen, err error) {
	r.follow, r.shards = true, c.Shards
	s, err := start(ctx, c, c.args(c.Engine, c.Ledger)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return r.run(ctx, s)
}

// compare has the plan predict what the rounds of a rehearsal showed.
func (c *Config) compare(ctx context.Context, cal *plan.Calibration, r rush, l loads) (*Comparison, error) {
	cores := l.middle((*seen).cores)
	a, err := plan.Ask(ctx, cal, c.question(&r, cores))
	if err != nil {
		return nil, err
	}
	figure := func(name string, planned float64, of func(*seen) float64) Figure {
		values, middle := l.sorted(of), l.middle(of)
		return Figure{
			Name: name, Planned: planned, Seen: middle, Least: values[0], Most: values[len(values)-1], Judged: judged(name, planned, middle),
		}
	}
	return &Comparison{Requests: r.requests, Wave: r.wave, Stock: r.stock, Rounds: len(l), Cores: cores, Figures: []Figure{
		figure(Rate, a.PerSecond, func(x *seen) float64 { return x.report.PerSecond }),
		figure(P99, a.All.P99, (*seen).p99),
		figure(Lag, a.Lag.Worst, func(x *seen) float64 { return x.lag }),
		figure(Spent, a.NodeUS, (*seen).spentUS),
	}}, nil
}

// question asks for a rush on the servers of a check, with so many cores for clients and node.
func (c *Config) question(r *rush, cores float64) plan.Question {
	engine, ledger := c.Kinds()
	q := plan.Question{
		Users: int64(r.requests), Stock: r.stock, Wave: int64(r.wave), ClientsHere: true, Nodes: 1, Cores: cores,
		Engine: engine, Ledger: ledger, Shards: c.Shards, Link: max(c.Link, time.Microsecond),
	}
	if c.Engine != "" {
		q.Durability = c.Durability
	}
	return q
}

// Table writes comparisons for people.
func Table(w io.Writer, all []*Comparison) error {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "rehearsal\tcores\tfigure\tplanned\tseen\tfrom\tto\toff by\t")
	for _, c := range all {
		name := fmt.Sprintf("%s requests, %s at once, %s units", humanize.Comma(int64(c.Requests)), humanize.Comma(int64(c.Wave)), humanize.Comma(c.Stock))
		for i := range c.Figures {
			f := &c.Figures[i]
			off := fmt.Sprintf("%+.0f%%", 100*f.Error())
			if !f.Judged {
				off = "not judged"
			}
			fmt.Fprintf(tw, "%s\t%.2f\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, c.Cores, f.Name, digits(f.Planned), digits(f.Seen), digits(f.Least), digits(f.Most), off)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func digits(v float64) string {
	if v >= 100 {
		return humanize.Comma(int64(v + 0.5))
	}
	return fmt.Sprintf("%.2f", v)
}

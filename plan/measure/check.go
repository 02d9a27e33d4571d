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

// Comparison is what a plan said of a rehearsal, and what the rehearsal showed.
type Comparison struct {
	Requests int   `json:"requests"`
	Wave     int   `json:"wave"`
	Stock    int64 `json:"stock"`
	// Cores is how many cores client and server together got. The plan was asked for
	// a machine with so many.
	Cores   float64  `json:"cores"`
	Figures []Figure `json:"figures"`
}

// Figure is one number, as it was planned and as it was seen.
type Figure struct {
	Name    string  `json:"name"`
	Planned float64 `json:"planned"`
	Seen    float64 `json:"seen"`
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

func figure(name string, planned, seen float64) Figure {
	return Figure{Name: name, Planned: planned, Seen: seen, Judged: name != Lag || max(planned, seen) >= leastLag}
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
var sizes = []rush{
	{requests: 5_000, wave: 5_000, stock: 200},
	{requests: 20_000, wave: 1_000, stock: 20_000},
	{requests: 60_000, wave: 2_000, stock: 10_000},
}

// Kinds names the engine and the ledger of a check, whose costs it needs.
func (c *Config) Kinds() (engine, ledger string) { return kind(c.Engine), ledgerKind(c.Ledger) }

// Check runs rehearsals of three sizes on servers of their own, on the engine and the
// ledger of the Config, and has the calibration predict each. each is called after every
// one.
func Check(ctx context.Context, cal *plan.Calibration, cfg Config, each func(*Comparison)) error {
	for _, r := range sizes {
		c, err := compare(ctx, cal, cfg, r)
		if err != nil {
			return err
		}
		each(c)
	}
	return nil
}

func compare(ctx context.Context, cal *plan.Calibration, cfg Config, r rush) (c *Comparison, err error) {
	r.follow, r.shards = true, cfg.Shards
	s, err := start(ctx, &cfg, cfg.args(cfg.Engine, cfg.Ledger)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	x, err := r.run(ctx, s)
	if err != nil {
		return nil, err
	}
	c = &Comparison{Requests: r.requests, Wave: r.wave, Stock: r.stock, Cores: x.cores()}
	a, err := plan.Ask(ctx, cal, cfg.question(&r, c.Cores))
	if err != nil {
		return nil, err
	}
	p99 := 0.0
	for _, l := range x.report.Latencies {
		if l.Of == "all" {
			p99 = l.P99
		}
	}
	c.Figures = []Figure{
		figure(Rate, a.PerSecond, x.report.PerSecond),
		figure(P99, a.All.P99, p99),
		figure(Lag, a.Lag.Worst, x.lag),
		figure(Spent, a.NodeUS, x.clientUS()+(x.drained.cpu-x.before.cpu)*1e6/float64(r.requests)),
	}
	return c, nil
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
	fmt.Fprintln(tw, "rehearsal\tcores\tfigure\tplanned\tseen\toff by\t")
	for _, c := range all {
		name := fmt.Sprintf("%s requests, %s at once, %s units", humanize.Comma(int64(c.Requests)), humanize.Comma(int64(c.Wave)), humanize.Comma(c.Stock))
		for i := range c.Figures {
			f := &c.Figures[i]
			off := fmt.Sprintf("%+.0f%%", 100*f.Error())
			if !f.Judged {
				off = "not judged"
			}
			fmt.Fprintf(tw, "%s\t%.2f\t%s\t%s\t%s\t%s\t\n", name, c.Cores, f.Name, digits(f.Planned), digits(f.Seen), off)
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

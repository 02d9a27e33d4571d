package lab

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/dibs-dev/dibs/lab/strategies"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"comma":   func(n any) string { return humanize.Comma(toInt(n)) },
	"comma64": humanize.Comma,
	"seconds": func(ms float64) string { return fmt.Sprintf("%.0f s", ms/1000) },
}).Parse(pageText))

func toInt(n any) int64 {
	if v, ok := n.(int64); ok {
		return v
	}
	return int64(n.(int))
}

// HTML writes the report as one page with charts, which needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	return page.Execute(w, struct {
		*Report
		Charts []chart
		Grid   []gridLine
		Dots   []dot
		Cards  []card
		// Verdicts are on the whole.
		Verdicts []string
	}{r, r.charts(), grid(), r.dots(), r.cards(), r.verdicts()})
}

// chart is a list of bars under a title.
type chart struct {
	Title, Note string
	Bars        []bar
}

// bar is one result in a chart; Percent is its length, of the width of the chart.
type bar struct {
	Name, Tone, Value string
	Percent           float64
}

// card is all that is known of one result.
type card struct {
	Name, Tone, Verdict string
	R                   *Result
	Figures             []figure
}

type figure struct {
	Name, Value string
	Bad         bool
}

// title tells a result from the others of its strategy.
func (r *Report) title(x *Result) string {
	name := x.Strategy
	if x.Database != "" {
		name += " · " + x.Database
	}
	if slices.ContainsFunc(r.Results, func(o Result) bool { return o.Concurrency != x.Concurrency }) {
		name += " · " + humanize.Comma(int64(x.Concurrency))
	}
	return name
}

// tone is the colour's name in page.html. A strategy that is known to break a promise is unsafe also
// in a run in which it was lucky.
func tone(x *Result) string {
	switch {
	case len(x.Broke()) > 0 || len(x.Breaks) > 0:
		return "unsafe"
	case strings.HasPrefix(x.Strategy, "dibs-"):
		return "ours"
	}
	return "safe"
}

// logShare places a value between the least and the most of a logarithmic scale.
func logShare(v, least, most float64) float64 {
	if v <= least {
		return 0
	}
	return min(1, math.Log(v/least)/math.Log(most/least))
}

// charts returns the bars of the page, on linear scales: a bar that is twice as long says twice as
// much. Ways that run in the process have a chart of their own, or they would stand beside servers
// that every other way has to ask over a connection. Results that were not run have no bar.
func (r *Report) charts() []chart {
	onServers := func(x *Result) bool { return !x.InProcess }
	charts := []chart{
		{
			"What broke", "Orders too many, second orders of one user, units that were left although somebody wanted them, and yeses that nobody finds.",
			r.broken(),
		},
		{"Answers per second", "More is better. All of these ask servers over connections.", r.linear(onServers, func(x *Result) float64 { return x.AnswersPerSecond }, rate)},
		{inProcess, "dibs called in the process, with its journal and ledger in files: no connection and no server, so not to be compared with the chart above.",
			r.linear(func(x *Result) bool { return x.InProcess }, func(x *Result) float64 { return x.AnswersPerSecond }, rate)},
		{"The slowest hundredth waits", "p99 of the answers; less is better.", r.linear(onServers, func(x *Result) float64 { return x.P99MS }, func(v float64) string { return milli(v) + " ms" })},
		{"Statements in the database per answer", "Less is better.", r.linear(onServers, func(x *Result) float64 {
			if x.SQLPerClaim == nil {
				return 0
			}
			return *x.SQLPerClaim
		}, func(v float64) string { return ratio(&v) })},
	}
	// A run without such ways has no chart of them.
	return slices.DeleteFunc(charts, func(c chart) bool { return c.Title == inProcess && len(c.Bars) == 0 })
}

// inProcess is the title of the chart of ways that ask no server.
const inProcess = "Answers per second, in one process"

// linear returns a bar for each result that is wanted; the longest leaves room for its value.
func (r *Report) linear(wanted func(x *Result) bool, value func(x *Result) float64, show func(v float64) string) []bar {
	var bars []bar
	most := 0.0
	for i := range r.Results {
		x := &r.Results[i]
		if v := value(x); x.Skipped == "" && v > 0 && wanted(x) {
			most = max(most, v)
			bars = append(bars, bar{r.title(x), tone(x), show(v), v})
		}
	}
	for i := range bars {
		bars[i].Percent = math.Round(bars[i].Percent/most*700) / 10
	}
	return bars
}

// broken returns a bar for each promise that was broken, to a linear scale: its lengths compare
// counts, the longest is the worst.
func (r *Report) broken() []bar {
	var bars []bar
	most := 1.0
	for i := range r.Results {
		x := &r.Results[i]
		for _, f := range x.Broke() {
			n := map[strategies.Flaw]*int64{
				strategies.Oversold: &x.Oversold, strategies.Duplicates: x.Duplicates, strategies.Undersold: x.Undersold, strategies.Unkept: &x.Unkept,
			}[f]
			most = max(most, float64(*n))
			bars = append(bars, bar{r.title(x), "unsafe", fmt.Sprintf("%s %s", humanize.Comma(*n), f), float64(*n)})
		}
	}
	// The longest bar leaves room for its value.
	for i := range bars {
		bars[i].Percent = math.Round(bars[i].Percent/most*550) / 10
	}
	return bars
}

// The plane of the dots in units of the SVG: from 10 to 1,000,000 answers a second to the right, and
// from 0.01 ms to 100 s upwards. Better is to the right and below.
const (
	planeLeft, planeRight, planeTop, planeBottom = 50.0, 590.0, 15.0, 305.0
)

type gridLine struct {
	X1, Y1, X2, Y2, TX, TY float64
	Text, Anchor           string
}

type dot struct {
	X, Y       float64
	Name, Tone string
	// Label is empty where there is no room for it.
	Label, Anchor string
	LX, LY        float64
}

func planeX(rate float64) float64 {
	return planeLeft + logShare(rate, 10, 1e6)*(planeRight-planeLeft)
}

func planeY(ms float64) float64 {
	return planeTop + (1-logShare(ms, 0.01, 1e5))*(planeBottom-planeTop)
}

func grid() []gridLine {
	var lines []gridLine
	for v := 10.0; v <= 1e6; v *= 10 {
		x := planeX(v)
		lines = append(lines, gridLine{x, planeTop, x, planeBottom, x, planeBottom + 18, rate(v), "middle"})
	}
	for v := 0.01; v < 2e5; v *= 10 {
		y := planeY(v)
		text := fmt.Sprintf("%g ms", math.Round(v*100)/100)
		if v >= 1000 {
			text = fmt.Sprintf("%.0f s", v/1000)
		}
		lines = append(lines, gridLine{planeLeft, y, planeRight, y, planeLeft - 5, y + 4, text, "end"})
	}
	return lines
}

// dots places the results by answers a second and p99. Ways that run in the process have none: on a
// logarithmic plane they would seem to stand beside servers.
func (r *Report) dots() []dot {
	var dots []dot
	for i := range r.Results {
		x := &r.Results[i]
		if x.Skipped == "" && x.AnswersPerSecond > 0 && !x.InProcess {
			dots = append(dots, dot{X: math.Round(planeX(x.AnswersPerSecond)), Y: math.Round(planeY(x.P99MS)), Name: r.title(x), Tone: tone(x), Label: x.Strategy})
		}
	}
	labelled(dots)
	return dots
}

// The room that a label takes, in units of the SVG, estimated: the browser's font is not known here.
const letterWidth, labelHeight, dotRadius = 5.2, 11.0, 6.0

// box is a place in the plane.
type box struct{ left, top, right, bottom float64 }

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// labelled writes the names beside the dots where there is room, to the right or else to the left,
// once for each strategy; the others are told by the title of the dot. Earlier results go first.
func labelled(dots []dot) {
	var taken []box
	for _, d := range dots {
		taken = append(taken, box{d.X - dotRadius, d.Y - dotRadius, d.X + dotRadius, d.Y + dotRadius})
	}
	seen := map[string]bool{}
	for i := range dots {
		d := &dots[i]
		name := d.Label
		d.Label = ""
		width := float64(len(name)) * letterWidth
		for _, side := range []struct {
			anchor string
			left   float64
			at     float64
		}{{"start", d.X + dotRadius + 1, d.X + dotRadius + 2}, {"end", d.X - dotRadius - 1 - width, d.X - dotRadius - 2}} {
			b := box{side.left, d.Y - labelHeight/2, side.left + width, d.Y + labelHeight/2}
			if seen[name] || b.left < planeLeft || b.right > planeRight || slices.ContainsFunc(taken, b.meets) {
				continue
			}
			taken, seen[name] = append(taken, b), true
			d.Label, d.Anchor, d.LX, d.LY = name, side.anchor, side.at, d.Y+3
		}
	}
}

func (r *Report) cards() []card {
	var cards []card
	for i := range r.Results {
		x := &r.Results[i]
		bad := func(n *int64) bool { return n != nil && *n > 0 }
		cards = append(cards, card{r.title(x), tone(x), x.Verdict(), x, []figure{
			{"grants/s", rate(x.GrantsPerSecond), false},
			{"answers/s", rate(x.AnswersPerSecond), false},
			{"orders", humanize.Comma(x.Orders), false},
			{"p50 ms", milli(x.P50MS), false},
			{"p90 ms", milli(x.P90MS), false},
			{"p99 ms", milli(x.P99MS), false},
			{"oversold", humanize.Comma(x.Oversold), x.Oversold > 0},
			{"duplicates", number(x.Duplicates), bad(x.Duplicates)},
			{"undersold", number(x.Undersold), bad(x.Undersold)},
			{"yes, no order", humanize.Comma(x.Unkept), x.Unkept > 0},
			{"Redis/claim", ratio(x.RedisPerClaim), false},
			{"SQL/claim", ratio(x.SQLPerClaim), false},
		}})
	}
	return cards
}

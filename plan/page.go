package plan

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"percent": percent, "dash": dash}).Parse(pageText))

// HTML writes the answer as one page with charts, which needs nothing else.
func (a *Answer) HTML(w io.Writer) error {
	return page.Execute(w, struct {
		*Answer
		Charts []chart
	}{a, a.charts()})
}

// chart is some lines over the time of the rush.
type chart struct {
	Title, Note string
	Lines       []line
	Ticks, Grid []tick
}

type line struct{ Name, Tone, Points string }

// tick is a mark of an axis, at a place of the plane.
type tick struct {
	At   float64
	Text string
}

// The plane of a chart.
const (
	planeLeft, planeRight, planeTop, planeBottom = 70.0, 690.0, 10.0, 170.0
	// mostPoints is how many points a line has; longer series are thinned to their
	// largest values.
	mostPoints = 240
	gridLines  = 4
	timeTicks  = 6
)

type named struct {
	name, tone string
	values     []float64
}

func (a *Answer) charts() []chart {
	s := &a.Series
	return []chart{
		s.chart("Requests a second", "What arrives, and how it is answered.", 0, count,
			named{"arriving", "soft", s.Asked}, named{"granted", "good", s.Granted}, named{"refused", "main", s.Refused}),
		s.chart("The longest wait", "Of the answers that are given at a moment.", 0, milli, named{"wait", "main", s.Longest}),
		s.chart("Busy", "The share of the time in which a part works: at 100% a queue grows before it.", 1, percent, a.busy()...),
		s.chart("Grants that wait for the ledger", "Users have their yes by then; the ledger catches up.", 0, count, named{"grants", "main", s.Backlog}),
	}
}

func (a *Answer) busy() []named {
	return []named{{nodesName, "main", a.Series.Node}, {ledgerName, "soft", a.Series.Ledger}, {a.Parts[1].Name, "good", a.Series.Engine}}
}

// chart draws lines from zero to the largest value, or to top when that is given.
func (s *Series) chart(title, note string, top float64, show func(float64) string, lines ...named) chart {
	c := chart{Title: title, Note: note}
	n, most := 0, top
	for _, l := range lines {
		n = max(n, len(l.values))
		for _, v := range l.values {
			most = max(most, v)
		}
	}
	step := niceStep(max(most, 1e-9) / gridLines)
	if top == 0 {
		most = step * math.Ceil(max(most, 1e-9)/step)
	}
	y := func(v float64) float64 { return planeBottom - v/most*(planeBottom-planeTop) }
	for v := 0.0; v <= most*1.001; v += step {
		c.Grid = append(c.Grid, tick{y(v), show(v)})
	}
	each := max(1, int(math.Ceil(float64(n)/mostPoints)))
	end := float64(max(n, 1)) * s.Width
	x := func(t float64) float64 { return planeLeft + t/end*(planeRight-planeLeft) }
	every := niceStep(end / timeTicks)
	for t := 0.0; t <= end; t += every {
		c.Ticks = append(c.Ticks, tick{x(t), seconds(t)})
	}
	for _, l := range lines {
		var points strings.Builder
		for i := 0; i < n; i += each {
			v := 0.0
			for j := i; j < i+each; j++ {
				v = max(v, at(l.values, j))
			}
			fmt.Fprintf(&points, "%.1f,%.1f ", x((float64(i)+0.5)*s.Width), y(v))
		}
		c.Lines = append(c.Lines, line{l.name, l.tone, points.String()})
	}
	return c
}

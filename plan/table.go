package plan

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// Table writes the answer for people.
func (a *Answer) Table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", a.Asked())
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range a.Rows() {
		fmt.Fprintf(tw, "%s\t%s\n", row.Name, row.Value)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	b.WriteString("\n")
	tw = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "part\tbusy\tat most\tbeyond the limit\t")
	for _, p := range a.Parts {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", p.Name, percent(p.Busy), percent(p.Busiest), dash(p.AtLimit), p.What)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	b.WriteString("\n")
	for _, n := range a.Notes {
		fmt.Fprintf(&b, "%s\n", n)
	}
	fmt.Fprintf(&b, "calibration: %s\n", a.Calibrated())
	_, err := io.WriteString(w, b.String())
	return err
}

// Row is a figure with its name.
type Row struct{ Name, Value string }

// Asked is the question in a line.
func (a *Answer) Asked() string {
	q := &a.Question
	when := "at once"
	switch {
	case q.Over > 0:
		when = fmt.Sprintf("over %s, %s", q.Over, q.Shape)
	case q.Wave > 0:
		when = fmt.Sprintf("%s at once", count(float64(q.Wave)))
	}
	return fmt.Sprintf("%s users with %s requests %s, for %s units; %s engine, %s, %s",
		count(float64(q.Users)), count(a.Requests), when, count(float64(q.Stock)), q.Engine, q.Ledger, q.Durability)
}

// Calibrated says where the costs are from.
func (a *Answer) Calibrated() string {
	return fmt.Sprintf("%s, of %s, on a %s", a.Source, a.MeasuredAt, a.Machine)
}

// Rows are the figures of an answer, for its table and its page.
func (a *Answer) Rows() []Row {
	q := &a.Question
	need := fmt.Sprintf("%d with %g cores", q.Nodes, q.Cores)
	if q.Engine == Redis {
		need += fmt.Sprintf(", Redis: %d", q.Shards)
	}
	if !a.Keeps {
		need += ", which is not enough"
	}
	rows := []Row{
		{"nodes", need},
		{"requests a second", fmt.Sprintf("%s answered, %s at the peak", count(a.PerSecond), count(a.Peak))},
		{"answers", fmt.Sprintf("%s granted, %s refused, the last after %s", count(a.Granted), count(a.Refused), seconds(a.Took))},
		{"wait of an answer", a.All.text()},
		{"wait of a yes", a.Grants.text()},
		{"sold out", "no"},
		{"limit", a.limitText()},
		{"ledger", fmt.Sprintf("up to %s grants behind, %s at most; has all %s after the last yes", count(a.Lag.Most), seconds(a.Lag.Worst), seconds(a.Lag.Zero))},
		{"memory of a node", bytesText(a.Memory.Node) + " beside some 100 MB of its own"},
		{"connections of a node", a.connections()},
		{"bandwidth of a node", fmt.Sprintf("%s/s in, %s/s out at the peak", bytesText(a.Links.In), bytesText(a.Links.Out))},
	}
	if a.SoldOut != nil {
		rows[5].Value = "after " + seconds(*a.SoldOut)
	}
	rows = append(rows, Row{"disk of the ledger", bytesText(a.Memory.Ledger) + " for the grants"})
	if a.Memory.Redis > 0 {
		rows = append(rows, Row{"memory of a Redis", bytesText(a.Memory.Redis) + " for the grants and their journal"})
	}
	return rows
}

func (a *Answer) connections() string {
	text := count(a.Links.Users) + " of users"
	if a.Links.Redis > 0 {
		text += fmt.Sprintf(", %d to Redis", a.Links.Redis)
	}
	if a.Links.Ledger > 0 {
		text += fmt.Sprintf(", up to %d to the ledger", a.Links.Ledger)
	}
	return text
}

func (a *Answer) limitText() string {
	per := " a second"
	if a.Question.Over == 0 {
		per = " at once"
	}
	text := count(a.Limit.Requests) + per
	switch {
	case a.Limit.Times >= MostTimes:
		return "above " + text
	case a.Limit.First != "":
		return text + "; what breaks first beyond it: " + a.Limit.First
	}
	return text
}

func (w *Waits) text() string {
	return fmt.Sprintf("p50 %s, p99 %s, at most %s", milli(w.P50), milli(w.P99), milli(w.Max))
}

func count(v float64) string { return humanize.Comma(int64(v + 0.5)) }

func bytesText(v float64) string { return humanize.Bytes(uint64(v)) }

func percent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

func dash(v float64) string {
	if v == 0 {
		return "-"
	}
	return percent(v)
}

func seconds(s float64) string { return milli(1000 * s) }

// milli shows a time with the digits that matter.
func milli(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case ms < 10:
		return d.Round(10 * time.Microsecond).String()
	case ms < 1000:
		return d.Round(time.Millisecond).String()
	case ms < 10_000:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

package lab

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
)

// Table writes the report for people, a row for each result and notes below. Rates are a second,
// times milliseconds; "-" stands where a value is not known or means nothing.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s users, %s presses, %s to be had; %s\n\n", r.Preset,
		humanize.Comma(int64(r.Users)), humanize.Comma(int64(r.Requests)), humanize.Comma(r.Stock), r.Machine)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "strategy\tidea\tdatabase\tat once\tgrants/s\tanswers/s\tp50 ms\tp90 ms\tp99 ms\torders\toversold\tduplicates\tundersold\tyes, no order\tRedis/claim\tSQL/claim\t  \tverdict\t")
	for i := range r.Results {
		fmt.Fprintln(tw, strings.Join(r.Results[i].cells(), "\t")+"\t")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	b.WriteString("\n")
	for _, line := range slices.Concat(r.notes(), r.verdicts()) {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cells returns a row. The cell before the verdict is empty, a gap between numbers and words.
func (r *Result) cells() []string {
	head := []string{r.Strategy, r.Idea, cmp.Or(r.Database, "-"), humanize.Comma(int64(r.Concurrency))}
	if r.Skipped != "" {
		return append(head, "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "", r.Verdict())
	}
	verdict := r.Verdict()
	// Rates and times are still those of the answers until then.
	if r.Stopped {
		verdict += ", stopped"
	}
	return append(head, rate(r.GrantsPerSecond), rate(r.AnswersPerSecond), milli(r.P50MS), milli(r.P90MS), milli(r.P99MS), humanize.Comma(r.Orders),
		humanize.Comma(r.Oversold), number(r.Duplicates), number(r.Undersold), humanize.Comma(r.Unkept), ratio(r.RedisPerClaim), ratio(r.SQLPerClaim), "", verdict)
}

// rate shows a number without decimals.
func rate(v float64) string { return humanize.Comma(int64(v + 0.5)) }

// milli shows a time with the digits that matter.
func milli(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2f", v)
	}
	return humanize.Comma(int64(v + 0.5))
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return humanize.Comma(*n)
}

// ratio shows calls for each press: few of them are a small part of one.
func ratio(v *float64) string {
	if v == nil {
		return "-"
	}
	if *v < 0.095 {
		return fmt.Sprintf("%.3f", *v)
	}
	return fmt.Sprintf("%.1f", *v)
}

// fewCallers are the workers of the usual load on red packets: too few to share much.
const fewCallers = 20

// notes are what the table has no room for, each line once: errors, and what was not run or stopped.
func (r *Report) notes() (lines []string) {
	say := func(format string, args ...any) {
		if line := fmt.Sprintf(format, args...); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for i := range r.Results {
		x := &r.Results[i]
		if x.InProcess && x.Skipped == "" {
			say("%s runs in the process and asks no server: its figures do not compare with the others", x.Strategy)
		}
		switch {
		case x.Skipped != "":
			say("%s was not run: %s", x.Strategy, x.Skipped)
		case x.Errors > 0:
			say("%s on %s failed %s times: %s", x.Strategy, cmp.Or(x.Database, "-"), humanize.Comma(x.Errors), x.Failed)
		}
		if x.Stopped {
			say("%s on %s was stopped after %.0f s; what it left unsold says nothing", x.Strategy, cmp.Or(x.Database, "-"), r.TimeMS/1000)
		}
	}
	return lines
}

// verdicts are what the table and the page say of the whole: how fast the disk is, whether the lab
// was stopped, and what should not be.
func (r *Report) verdicts() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	// The disk of a Redis that was given is another one, and unknown.
	if r.SyncMS > 0 && !r.redisGiven {
		say("a sync of this disk takes %s ms: %s callers, each with one request under way, get at most %s durable answers/s, since those who wait together share a sync",
			milli(r.SyncMS), humanize.Comma(fewCallers), rate(fewCallers*1000/r.SyncMS))
	}
	if r.Cut() {
		say("stopped after %d of %d runs; of the others nothing is known", len(r.Results), r.Planned)
	}
	switch {
	case len(r.Surprises) > 0:
		say("BROKEN: %s", strings.Join(r.Surprises, "; "))
	case len(r.Results) > 0 || !r.Cut():
		say("every safe strategy that was run held its promises; \"-\" where a user may have many, or where it is not known")
	}
	return lines
}

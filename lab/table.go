package lab

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
)

// Table writes the report for people.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s users, %s presses, %s to be had; %s\n\n", r.Preset,
		humanize.Comma(int64(r.Users)), humanize.Comma(int64(r.Requests)), humanize.Comma(r.Stock), r.Machine)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "strategy\trow\tdatabase\tat once\tgrants/s\tanswers/s\tp50 ms\tp90 ms\tp99 ms\torders\toversold\tduplicates\tundersold\tyes, no order\tRedis/claim\tSQL/claim\t  \tverdict\t")
	for i := range r.Results {
		fmt.Fprintln(tw, strings.Join(r.Results[i].cells(), "\t")+"\t")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	r.notes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) cells() []string {
	head := []string{r.Strategy, r.Row, dash(r.Database), humanize.Comma(int64(r.Concurrency))}
	if r.Skipped != "" {
		return append(head, "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "", r.Verdict())
	}
	verdict := r.Verdict()
	if r.Stopped {
		verdict += ", stopped"
	}
	return append(head, rate(r.GrantsPerSecond), rate(r.AnswersPerSecond), milli(r.P50MS), milli(r.P90MS), milli(r.P99MS), humanize.Comma(r.Orders),
		humanize.Comma(r.Oversold), number(r.Duplicates), number(r.Undersold), humanize.Comma(r.Unkept), ratio(r.RedisPerClaim), ratio(r.SQLPerClaim), "", verdict)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

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

func ratio(v *float64) string {
	if v == nil {
		return "-"
	}
	if *v < 0.095 {
		return fmt.Sprintf("%.3f", *v)
	}
	return fmt.Sprintf("%.1f", *v)
}

func (r *Report) notes(b *strings.Builder) {
	seen := map[string]bool{}
	say := func(format string, args ...any) {
		if line := fmt.Sprintf(format, args...); !seen[line] {
			seen[line] = true
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("\n")
	for i := range r.Results {
		x := &r.Results[i]
		switch {
		case x.Skipped != "":
			say("%s was not run: %s", x.Strategy, x.Skipped)
		case x.Errors > 0:
			say("%s on %s failed %s times: %s", x.Strategy, dash(x.Database), humanize.Comma(x.Errors), x.Failed)
		}
		if x.Stopped {
			say("%s on %s was stopped after %.0f s; what it left unsold says nothing", x.Strategy, dash(x.Database), r.TimeMS/1000)
		}
	}
	if r.OK() {
		say("every strategy that is safe held its promises; \"-\" where a user may have many, or where it is not known")
		return
	}
	say("BROKEN: %s", strings.Join(r.Surprises, "; "))
}

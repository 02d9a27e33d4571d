package rehearsal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Table writes the report for people: what was done, the outcomes, the
// latencies, and each promise with its verdict.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	r.writeHead(&b)
	tw := tabwriter.NewWriter(&b, 0, 0, 3, ' ', tabwriter.AlignRight)
	r.writeOutcomes(tw)
	r.writeLatencies(tw)
	if err := tw.Flush(); err != nil {
		return err
	}
	r.writeNotes(&b)
	tw = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "promise\tverdict\twitness\twhat was seen")
	for _, v := range r.Promises {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", v.Promise, shout(v.Judgement), v.Witness, v.Detail)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%s\n", r.summary())
	_, err := io.WriteString(w, b.String())
	return err
}

// shout makes what is wrong stand out without colours.
func shout(f Judgement) string {
	if f == Held {
		return string(f)
	}
	return strings.ToUpper(string(f))
}

func (r *Report) writeHead(b *strings.Builder) {
	fmt.Fprintf(b, "rehearsal %s (%s, seed %d) on %s, campaign %s\n", r.Run, r.Scenario, r.Seed, r.Server, r.CampaignID)
	how := fmt.Sprintf("%s at once", thousands(int64(r.Concurrency)))
	if r.Rate > 0 {
		how = fmt.Sprintf("%s a second, at most %s", strconv.FormatFloat(r.Rate, 'f', -1, 64), how)
	}
	kind := "connections"
	if r.Through == WebSocket {
		kind = "WebSockets"
	}
	fmt.Fprintf(b, "%s users, %s requests, %s on %s %s; %s units, at most %s per user, %s per request\n\n",
		thousands(int64(r.Users)), thousands(int64(r.Requests)), how, thousands(int64(r.Connections)), kind,
		thousands(r.Stock), thousands(r.Limit), thousands(r.Quantity))
}

func (r *Report) writeOutcomes(w io.Writer) {
	fmt.Fprintln(w, "outcome\trequests\tshare\tper second\t")
	total := int64(0)
	for _, o := range r.Outcomes {
		total += o.Count
		fmt.Fprintf(w, "%s\t%s\t%.1f%%\t%s\t\n", o.Outcome, thousands(o.Count), o.Share*100, thousands(int64(o.PerSecond)))
	}
	fmt.Fprintf(w, "all, in %.2fs\t%s\t\t%s\t\n\n", r.LoadMS/1000, thousands(total), thousands(int64(r.PerSecond)))
}

func (r *Report) writeLatencies(w io.Writer) {
	fmt.Fprintln(w, "latency in ms\trequests\tp50\tp90\tp99\tp99.9\tmax\t")
	for _, l := range r.Latencies {
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", l.Of, thousands(l.Count), l.P50, l.P90, l.P99, l.P999, l.Max)
	}
	fmt.Fprintln(w)
}

func (r *Report) writeNotes(b *strings.Builder) {
	if t := r.Transport; t.Lost > 0 {
		fmt.Fprintf(b, "%s attempts got no certain answer: their effect was unknown. Sent again with the same key, %s presses were\n"+
			"answered and %s never were. For example: %s\n\n", thousands(t.Lost), thousands(t.Resolved), thousands(t.Unresolved), t.Example)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "%s\n\n", n)
	}
}

func (r *Report) summary() string {
	broken, open := 0, 0
	for _, v := range r.Promises {
		switch v.Judgement {
		case Broken:
			broken++
		case Unjudged:
			open++
		}
	}
	switch {
	case broken > 0:
		return fmt.Sprintf("BROKEN: %d of %d promises", broken, len(r.Promises))
	case r.Interrupted:
		return fmt.Sprintf("STOPPED (%s): nothing is broken as far as it went, %d of %d promises could not be judged", r.Why, open, len(r.Promises))
	case open > 0:
		return fmt.Sprintf("NOT JUDGED: nothing is broken, and %d of %d promises could not be judged", open, len(r.Promises))
	}
	return "every promise held"
}

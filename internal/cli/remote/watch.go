package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
)

// newWatchCommand follows campaigns by samples of their numbers, or by a stream of what happens to
// them. Samples cost the server one small call for each campaign, so the verb refuses less than 100
// ms between them. The end of --for and Ctrl-C exit with 0: watching has no result that could fail.
func newWatchCommand() *cobra.Command {
	var every, length time.Duration
	var changes bool
	cmd := talk(cli.WithOutput(&cobra.Command{
		Use:   "watch [ID…]",
		Short: "Watch campaigns live: what is left, granted, refused, and how fast",
		Long: `Watch campaigns live: what is left, granted, refused, and how fast. On a terminal
the table stays in its place, elsewhere every sample is a line. Without ids it watches
all campaigns that are published or paused. Ctrl-C, or --for, ends it. The server that
answers counts its own refusals; all other numbers are of all nodes.

With --changes it shows each change when the server reports it: opened, paused, sold
out, reopened, ended, and how much is left. It ends when the last campaign has ended.`,
	}), func(ctx context.Context, s *session) error {
		if every < 100*time.Millisecond || every > time.Hour {
			return cli.Usagef("--every must be from 100ms to 1h")
		}
		if length > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, length)
			defer cancel()
		}
		// --for counts from here, and the calls before the first sample are within it.
		ids, err := s.watchedIDs(ctx)
		if err != nil {
			return err
		}
		if changes {
			return s.watchChanges(ctx, ids)
		}
		inPlace := !cli.WantsJSON(s.cmd) && cli.IsTerminal(s.cmd.OutOrStdout())
		w := watcher{session: s, ids: ids, inPlace: inPlace, last: make(map[string]sample)}
		return w.run(ctx, every)
	})
	cmd.Flags().BoolVar(&changes, "changes", false, "Show each change as it happens, instead of samples")
	cmd.Flags().DurationVar(&every, "every", time.Second, "The time between two samples")
	cmd.Flags().DurationVar(&length, "for", 0, "How long to watch (default until Ctrl-C)")
	return cmd
}

// watchedIDs returns the campaigns that the user named, or else all that are published or paused now:
// one that is published later is not watched.
func (s *session) watchedIDs(ctx context.Context) ([]string, error) {
	if len(s.args) > 0 {
		return s.args, nil
	}
	views, err := s.campaigns(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, v := range views {
		if v.State == dibs.Published || v.State == dibs.PausedState {
			ids = append(ids, v.ID)
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("no campaign is published")
	}
	return ids, nil
}

// watcher shows samples of some campaigns. One goroutine uses it.
type watcher struct {
	*session
	ids []string
	// inPlace draws each table over the last one, which has drawn lines.
	inPlace bool
	drawn   int
	// headed says that the head of the lines is written.
	headed bool
	last   map[string]sample
}

// sample is a campaign's numbers at one moment, by this machine's clock. Refused is counted by the
// node that answers, since its start, as RefusedCountedBy says.
type sample struct {
	At      time.Time `json:"at"`
	ID      string    `json:"campaign_id"`
	Left    int64     `json:"remaining"`
	Granted int64     `json:"granted"`
	// Rate is the grants a second since the last sample; 0 in the first one.
	Rate    float64 `json:"granted_per_second"`
	Refused int64   `json:"refused"`
	// RefusedCountedBy is as the server says it.
	RefusedCountedBy string `json:"refused_counted_by"`
	// Backlog is how many journal entries are not settled; the oldest has waited LagMS.
	Backlog int64 `json:"journal_backlog"`
	LagMS   int64 `json:"settle_lag_ms"`
	// Away is how many shards could not be asked: of them the numbers are the ledger's.
	Away int `json:"shards_away,omitempty"`
	// ever is every grant: a claim that came back is no grant less, and takes nothing from Rate.
	ever int64
}

// run takes samples until ctx ends. A wrong id or key fails each time, so it ends the first round, as
// does a round without any sample. Whatever else fails may do so for a while, as when the server
// restarts: each failure is a line on the error output. Ticks that pass while a call takes long are
// left out, not made up for.
func (w *watcher) run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for first := true; ; first = false {
		samples, failures := w.take(ctx)
		if ctx.Err() != nil {
			return nil
		}
		final := slices.IndexFunc(failures, func(err error) bool { return len(samples) == 0 || !passes(err) })
		if first && final >= 0 {
			return failures[final]
		}
		for _, failure := range failures {
			// The next table stands below this line.
			w.drawn = 0
			if _, err := fmt.Fprintf(w.cmd.ErrOrStderr(), "%s  %s\n", cli.Moment(time.Now()), cli.Message(failure)); err != nil {
				return err
			}
		}
		if len(samples) > 0 {
			if err := w.draw(samples); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// passes reports whether a call that failed may succeed later.
func passes(err error) bool {
	var refused *client.Error
	return errors.Is(err, dibs.ErrUnavailable) || errors.As(err, &refused) && refused.Retryable
}

// take takes a sample of each campaign, one call after the other: their times differ by the calls. A
// campaign whose call is refused is left out. Without any answer the server is away, and the others
// are not asked.
func (w *watcher) take(ctx context.Context) (samples []sample, failures []error) {
	for _, id := range w.ids {
		v, err := w.Campaigns.Stats(ctx, id)
		var refused *client.Error
		if errors.As(err, &refused) && ctx.Err() == nil {
			failures = append(failures, fmt.Errorf("campaign %s: %w", id, err))
			continue
		}
		if err != nil {
			return samples, append(failures, err)
		}
		s := sample{
			At: time.Now().UTC(), ID: id, Left: v.Remaining, Granted: v.Granted, RefusedCountedBy: v.RefusedCountedBy,
			Backlog: v.JournalBacklog, LagMS: v.SettleLagMS, Away: v.ShardsAway, ever: v.Granted + v.Released,
		}
		for _, n := range v.Refused {
			s.Refused += n
		}
		if before, ok := w.last[id]; ok {
			s.Rate = float64(max(0, s.ever-before.ever)) / s.At.Sub(before.At).Seconds()
		}
		w.last[id] = s
		samples = append(samples, s)
	}
	return samples, failures
}

// draw shows samples in the form that the user asked for: as JSON one object on a line for each, on a
// terminal one table drawn over the last, elsewhere one line for each.
func (w *watcher) draw(samples []sample) error {
	if cli.WantsJSON(w.cmd) {
		lines := cli.JSONLines(w.cmd)
		for _, s := range samples {
			if err := lines.Encode(s); err != nil {
				return err
			}
		}
		return nil
	}
	if !w.inPlace {
		return w.drawLines(samples)
	}
	t := cli.NewTable("CAMPAIGN", "LEFT", "GRANTED", "RATE/S", refusedHead, "UNSETTLED", "LAG")
	for _, s := range samples {
		t.Add(s.cells()...)
	}
	var frame bytes.Buffer
	if w.drawn > 0 {
		// Up to the first line of the last table, and clear from there.
		fmt.Fprintf(&frame, "\x1b[%dA\x1b[J", w.drawn)
	}
	if err := t.Write(&frame); err != nil {
		return err
	}
	// The rows and the head.
	w.drawn = t.Len() + 1
	_, err := w.cmd.OutOrStdout().Write(frame.Bytes())
	return err
}

// refusedHead says that refusals are those of the node that answers: all else is of all nodes.
const refusedHead = "REFUSED HERE"

// drawLines writes a line for each sample, under one head. The columns have fixed
// widths, since later lines are not known yet.
func (w *watcher) drawLines(samples []sample) error {
	const form = "%-20s  %-24s  %10v  %10v  %10s  %12v  %10v  %8s\n"
	out := w.cmd.OutOrStdout()
	if !w.headed {
		w.headed = true
		if _, err := fmt.Fprintf(out, form, "TIME", "CAMPAIGN", "LEFT", "GRANTED", "RATE/S", refusedHead, "UNSETTLED", "LAG"); err != nil {
			return err
		}
	}
	for _, s := range samples {
		if _, err := fmt.Fprintf(out, form, append([]any{cli.Moment(s.At)}, s.cells()...)...); err != nil {
			return err
		}
	}
	return nil
}

// cells returns the campaign and its numbers, for both forms of the table.
func (s *sample) cells() []any {
	lag := strconv.FormatInt(s.LagMS, 10) + "ms"
	if s.Away > 0 {
		lag += " (without " + cli.Count(int64(s.Away), "shard") + ")"
	}
	return []any{s.ID, s.Left, s.Granted, strconv.FormatFloat(s.Rate, 'f', 0, 64), s.Refused, s.Backlog, lag}
}

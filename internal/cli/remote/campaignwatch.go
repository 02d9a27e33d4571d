package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newWatchCommand() *cobra.Command {
	var w watching
	var length time.Duration
	var changes bool
	cmd := &cobra.Command{
		Use:   "watch [ID…]",
		Short: "Watch campaigns live: what is left, granted, refused, and how fast",
		Long: `Watch campaigns live: what is left, granted, refused, and how fast. On a terminal
the table stays in its place, elsewhere every sample is a line. Without ids all
campaigns are watched that are published or paused. Ctrl-C, or --for, ends it.

With --changes the server tells what happens, at the moment when it does: opened,
paused, sold out, reopened, ended, and how much is left. It ends with the last of
the campaigns.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.every < 100*time.Millisecond || w.every > time.Hour {
				return cli.Usagef("--every must be from 100ms to 1h")
			}
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			w.api, w.ids, w.out, w.errOut = api, args, cmd.OutOrStdout(), cmd.ErrOrStderr()
			w.inPlace = w.output == cli.OutputTable && cli.IsTerminal(w.out)
			ctx := cmd.Context()
			if length > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, length)
				defer cancel()
			}
			if changes {
				return ExplainCall(c, w.changes(ctx))
			}
			return ExplainCall(c, w.run(ctx))
		},
	}
	cmd.Flags().BoolVar(&changes, "changes", false, "Show each change as it happens, instead of looking now and then")
	cmd.Flags().DurationVar(&w.every, "every", time.Second, "How often to look")
	cmd.Flags().DurationVar(&length, "for", 0, "How long to watch (default until Ctrl-C)")
	return addCall(cmd, &w.output)
}

// watching follows the numbers of some campaigns.
type watching struct {
	api     *client.Client
	ids     []string
	every   time.Duration
	output  string
	out     io.Writer
	errOut  io.Writer
	inPlace bool
	// drawn is how many lines the last table has.
	drawn  int
	headed bool
	last   map[string]sample
}

// sample is a campaign's numbers at one moment.
type sample struct {
	At      time.Time `json:"at"`
	ID      string    `json:"campaign_id"`
	Left    int64     `json:"remaining"`
	Granted int64     `json:"granted"`
	// Rate is grants per second since the sample before.
	Rate    float64 `json:"granted_per_second"`
	Refused int64   `json:"refused"`
	// Backlog is how many entries are not settled; the oldest has waited LagMS.
	Backlog int64 `json:"journal_backlog"`
	LagMS   int64 `json:"settle_lag_ms"`
}

// run looks until ctx ends, which is how watching ends well. The first look
// must succeed; later ones may fail for a while, as when the server restarts.
func (w *watching) run(ctx context.Context) error {
	if err := w.choose(ctx); err != nil {
		return err
	}
	w.last = make(map[string]sample)
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for first := true; ; first = false {
		samples, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			err = w.tell(cli.Message(err))
		default:
			err = w.draw(samples)
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// choose takes all campaigns that are published or paused when none is named.
func (w *watching) choose(ctx context.Context) error {
	if len(w.ids) > 0 {
		return nil
	}
	views, err := allCampaigns(ctx, w.api)
	if err != nil {
		return err
	}
	for _, v := range views {
		if v.State == dibs.Published || v.State == dibs.PausedState {
			w.ids = append(w.ids, v.ID)
		}
	}
	if len(w.ids) == 0 {
		return fmt.Errorf("no campaign is published")
	}
	return nil
}

// look takes a sample of each campaign.
func (w *watching) look(ctx context.Context) ([]sample, error) {
	samples := make([]sample, 0, len(w.ids))
	for _, id := range w.ids {
		v, err := w.api.Stats(ctx, id)
		if err != nil {
			return nil, err
		}
		s := sample{
			At: time.Now().UTC(), ID: id, Left: v.Remaining, Granted: v.Granted, Backlog: v.JournalBacklog, LagMS: v.SettleLagMS,
		}
		for _, n := range v.Refused {
			s.Refused += n
		}
		if before, ok := w.last[id]; ok {
			s.Rate = float64(s.Granted-before.Granted) / s.At.Sub(before.At).Seconds()
		}
		w.last[id] = s
		samples = append(samples, s)
	}
	return samples, nil
}

// draw shows samples in the form that was asked for.
func (w *watching) draw(samples []sample) error {
	if w.output == cli.OutputJSON {
		enc := json.NewEncoder(w.out)
		for _, s := range samples {
			if err := enc.Encode(s); err != nil {
				return err
			}
		}
		return nil
	}
	if !w.inPlace {
		return w.drawLines(samples)
	}
	t := cli.Table{Head: []string{"CAMPAIGN", "LEFT", "GRANTED", "RATE/S", "REFUSED", "UNSETTLED", "LAG"}}
	for _, s := range samples {
		t.Add(append([]string{s.ID}, s.cells()...)...)
	}
	var frame bytes.Buffer
	if w.drawn > 0 {
		// Up to the table's first line, and clear from there.
		fmt.Fprintf(&frame, "\x1b[%dA\x1b[J", w.drawn)
	}
	if err := t.Write(&frame); err != nil {
		return err
	}
	w.drawn = len(t.Rows) + 1
	_, err := w.out.Write(frame.Bytes())
	return err
}

// drawLines writes a line for each sample, under one head.
func (w *watching) drawLines(samples []sample) error {
	const form = "%-20s  %-24s  %10s  %10s  %10s  %10s  %10s  %8s\n"
	if !w.headed {
		w.headed = true
		if _, err := fmt.Fprintf(w.out, form, "TIME", "CAMPAIGN", "LEFT", "GRANTED", "RATE/S", "REFUSED", "UNSETTLED", "LAG"); err != nil {
			return err
		}
	}
	for _, s := range samples {
		c := s.cells()
		if _, err := fmt.Fprintf(w.out, form, cli.Moment(s.At), s.ID, c[0], c[1], c[2], c[3], c[4], c[5]); err != nil {
			return err
		}
	}
	return nil
}

// tell shows why there are no new numbers. The next table stands below it.
func (w *watching) tell(why string) error {
	w.drawn = 0
	_, err := fmt.Fprintf(w.errOut, "%s  %s\n", cli.Moment(time.Now()), why)
	return err
}

// cells are the numbers as text.
func (s *sample) cells() []string {
	return []string{
		strconv.FormatInt(s.Left, 10), strconv.FormatInt(s.Granted, 10), strconv.FormatFloat(s.Rate, 'f', 0, 64),
		strconv.FormatInt(s.Refused, 10), strconv.FormatInt(s.Backlog, 10), strconv.FormatInt(s.LagMS, 10) + "ms",
	}
}

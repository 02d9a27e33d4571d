package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newAnnouncementCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "announcement",
		Short: "See how far announcements are, pause, resume and cancel them",
		Long: `See how far announcements are, pause, resume and cancel them: those of the server
at --url, with the API key --admin-key or $DIBS_ADMIN_KEY. dibs campaign announce
begins one; docs/PUSH.md has more.`,
	})
	cmd.AddCommand(newAnnouncementShowCommand(), newAnnouncementListCommand())
	for _, act := range []struct {
		verb, short string
		do          func(*client.Client, context.Context, string) (dibs.AnnouncementView, error)
	}{
		{"pause", "Have nobody told until it is resumed", (*client.Client).PauseAnnouncement},
		{"resume", "Go on with an announcement that was paused", (*client.Client).ResumeAnnouncement},
		{"cancel", "End an announcement: whoever was not told never is", (*client.Client).CancelAnnouncement},
	} {
		cmd.AddCommand(eventsVerb(act.verb+" ID", act.short, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error) {
			v, err := act.do(api, ctx, args[0])
			return v, announcementTable(&v), err
		}))
	}
	return cmd
}

// newAnnounceCommand is `dibs campaign announce`.
func newAnnounceCommand() *cobra.Command {
	var spec dibs.AnnouncementSpec
	var output, key string
	var threshold, first, rate int64
	var watch bool
	cmd := &cobra.Command{
		Use:   "announce CAMPAIGN",
		Short: "Tell a campaign to the followers of a merchant",
		Long: `Tell a campaign to the followers of a merchant: to all of them at once, or, when
they are more than --threshold, to the --first by rank at once and to the others
at --rate a second. What is not said is as the server is configured. They are in
events, for the service that writes to their phones, and connected clients hear
it. Whoever follows later is not told.`,
		Example: `  dibs follower import --merchant shop followers.csv
  dibs campaign announce phone-noon --merchant shop --rate 500 --watch`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			for name, to := range map[string]struct {
				from *int64
				to   **int64
			}{"threshold": {&threshold, &spec.Threshold}, "first": {&first, &spec.First}, "rate": {&rate, &spec.Rate}} {
				if cmd.Flags().Changed(name) {
					*to.to = to.from
				}
			}
			v, err := api.Announce(cmd.Context(), args[0], spec, key)
			if err == nil && watch {
				return ExplainCall(c, watchAnnouncement(cmd, api, v.ID, output))
			}
			if err != nil {
				return ExplainCall(c, err)
			}
			t := announcementTable(&v)
			return cli.Show(cmd, output, v, &t)
		},
	}
	f := cmd.Flags()
	f.StringVar(&spec.Merchant, "merchant", "", "Whose followers, `ID` (default those whom the campaign is for)")
	f.StringVar(&spec.Message, "message", "", "What they read, `TEXT` of up to 1000 characters")
	f.StringVar(&spec.ID, "id", "", "The announcement's `ID` (default made up)")
	f.Int64Var(&threshold, "threshold", 0, "Up to so many followers, all hear at once, `N` (default as the server has it)")
	f.Int64Var(&first, "first", 0, "Above it, so many hear at once, by rank, `N` (default as the server has it)")
	f.Int64Var(&rate, "rate", 0, "And so many a second of the others, `N` (default as the server has it)")
	f.StringVar(&key, "key", "", "An idempotency `KEY`: the same under the same key is announced once")
	f.BoolVar(&watch, "watch", false, "Show how far it is until it is over")
	return addCall(cmd, &output)
}

func newAnnouncementShowCommand() *cobra.Command {
	var output string
	var watch bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show an announcement and how far it is", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			if watch {
				return ExplainCall(c, watchAnnouncement(cmd, api, args[0], output))
			}
			v, err := api.Announcement(cmd.Context(), args[0])
			if err != nil {
				return ExplainCall(c, err)
			}
			t := announcementTable(&v)
			return cli.Show(cmd, output, v, &t)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "Show how far it is until it is over")
	return addCall(cmd, &output)
}

func newAnnouncementListCommand() *cobra.Command {
	return eventsVerb("list CAMPAIGN", "List the latest announcements of a campaign, the newest first", cobra.ExactArgs(1),
		func(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error) {
			t := cli.Table{Head: []string{"ID", "MERCHANT", "STATE", "FOLLOWERS", "ENQUEUED", "CREATED"}}
			l, err := api.Announcements(ctx, args[0], dibs.Page{Limit: dibs.MaxPage})
			for i := range l.Items {
				v := &l.Items[i]
				t.Add(v.ID, v.Merchant, string(v.State), strconv.FormatInt(v.Followers, 10), strconv.FormatInt(v.Enqueued, 10), cli.Moment(v.CreatedAt))
			}
			return l, t, err
		})
}

func announcementTable(v *dibs.AnnouncementView) cli.Table {
	t := cli.Table{}
	t.Add("id", v.ID)
	t.Add("campaign", v.CampaignID)
	t.Add("merchant", v.Merchant)
	state := string(v.State)
	if v.Why != "" {
		state += ": " + v.Why
	}
	t.Add("state", state)
	how := "all at once"
	if v.Followers > v.Threshold {
		how = fmt.Sprintf("%d at once, the others at %d/s", v.First, v.Rate)
	}
	t.Add("how", how)
	t.Add("followers", strconv.FormatInt(v.Followers, 10))
	t.Add("enqueued", fmt.Sprintf("%d in %d events", v.Enqueued, v.Events))
	if v.Delivered != nil {
		t.Add("delivered", strconv.FormatInt(*v.Delivered, 10))
	}
	if v.Estimate > 0 {
		t.Add("estimate", time.Duration(v.Estimate).Round(time.Second).String())
	}
	return t
}

// watchAnnouncementEvery is how often it is looked how far an announcement is.
const watchAnnouncementEvery = 500 * time.Millisecond

// watchAnnouncement shows how far an announcement is until it is over: by a bar on
// a terminal, else by a line for each change.
func watchAnnouncement(cmd *cobra.Command, api *client.Client, id, output string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	bar := newAnnouncementBar(cmd.ErrOrStderr(), output)
	tick := time.NewTicker(watchAnnouncementEvery)
	defer tick.Stop()
	for last := ""; ; {
		v, err := api.Announcement(ctx, id)
		switch {
		case ctx.Err() != nil:
			// Whoever looked on has seen enough.
			return nil
		case err != nil:
			return err
		}
		over := v.State == dibs.AnnouncementDone || v.State == dibs.AnnouncementCancelled
		line := fmt.Sprintf("%s  %d of %d enqueued", v.State, v.Enqueued, v.Followers)
		switch {
		case over:
			bar.end()
			t := announcementTable(&v)
			return cli.Show(cmd, output, v, &t)
		case output == cli.OutputJSON && line != last:
			err = json.NewEncoder(out).Encode(v)
		case line != last:
			err = bar.show(&v, line)
		}
		if err != nil {
			return err
		}
		last = line
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// announcementBar shows how far an announcement is.
type announcementBar struct {
	to  io.Writer
	bar *progressbar.ProgressBar
}

func newAnnouncementBar(to io.Writer, output string) *announcementBar {
	b := &announcementBar{to: to}
	if cli.IsTerminal(to) && output != cli.OutputJSON {
		b.bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(to), progressbar.OptionShowCount(), progressbar.OptionSetWidth(30),
			progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
	}
	return b
}

func (b *announcementBar) show(v *dibs.AnnouncementView, line string) error {
	if b.bar == nil {
		_, err := fmt.Fprintln(b.to, line)
		return err
	}
	b.bar.ChangeMax64(max(v.Followers, v.Enqueued+1))
	b.bar.Describe(fmt.Sprintf("%s, %s left", v.State, time.Duration(v.Estimate).Round(time.Second)))
	return b.bar.Set64(v.Enqueued)
}

func (b *announcementBar) end() {
	if b.bar != nil {
		// What cannot be wiped away keeps nobody from reading on.
		_ = b.bar.Exit()
	}
}

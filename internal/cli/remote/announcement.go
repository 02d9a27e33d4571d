package remote

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/api"
)

// newAnnouncementCommand returns the verbs on /v1/announcements/{id}. All of them may be
// repeated.
func newAnnouncementCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "announcement",
		Short: "Show, pause, resume and cancel announcements, and propose their threshold",
		Long: `Show how far announcements are, pause, resume and cancel them: those of the server
at --url, with the API key --admin-key or $DIBS_ADMIN_KEY. dibs campaign announce
starts one; docs/PUSH.md has more.`,
	},
		newAnnouncementShowCommand(), newAnnouncementListCommand(),
		byID("pause ID", "Stop telling followers until the announcement is resumed",
			of(func(c *client.Client) one[announce.AnnouncementView] { return c.Announcements.Pause }), announcementTable),
		byID("resume ID", "Continue an announcement that was paused",
			of(func(c *client.Client) one[announce.AnnouncementView] { return c.Announcements.Resume }), announcementTable),
		byID("cancel ID", "End an announcement; it tells no more followers",
			of(func(c *client.Client) one[announce.AnnouncementView] { return c.Announcements.Cancel }), announcementTable),
		newThresholdCommand(),
	)
}

// newThresholdCommand proposes the threshold of announcements. It changes nothing: the threshold is
// a setting of the server.
func newThresholdCommand() *cobra.Command {
	cover := 99.0
	cmd := ask(&cobra.Command{
		Use:   "threshold",
		Short: "Propose the threshold of announcements from how many followers the merchants have",
		Long: `Propose the threshold of announcements: up to so many followers of a merchant, all are
told at once. The proposal is the lowest one that covers --cover percent of the
merchants, so that the queue is for the few large ones. dibs serve --push-threshold
sets it.`,
		Example: `  dibs announcement threshold
  dibs announcement threshold --cover 99.9`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, s *session) (announce.ThresholdView, error) {
		return s.Announcements.Threshold(ctx, cover)
	}, thresholdTable)
	cmd.Flags().Float64Var(&cover, "cover", cover, "Cover this `PERCENT` of the merchants")
	return cmd
}

// thresholdTable shows the distribution and the proposal.
func thresholdTable(v *announce.ThresholdView) *cli.Table {
	t := cli.NewTable("FOLLOWERS", "MERCHANTS", "SHARE")
	for _, s := range v.Sizes {
		t.Add(fmt.Sprintf("up to %s", humanize.Comma(s.UpTo)), humanize.Comma(s.Merchants),
			fmt.Sprintf("%.1f %%", 100*float64(s.Merchants)/float64(max(v.Merchants, 1))))
	}
	if v.Merchants == 0 {
		t.Foot = "No merchant has followers: import some with dibs follower import."
		return t
	}
	t.Foot = fmt.Sprintf("Proposed: %s, which covers %v %% of %s merchants; %s have more. In use: %s, which covers %v %%.",
		humanize.Comma(v.Proposed), v.Covered, humanize.Comma(v.Merchants), humanize.Comma(v.Above), humanize.Comma(v.Threshold), v.CoveredNow)
	return t
}

// newAnnounceCommand is `dibs campaign announce`. The answer comes when the announcement is stored;
// the server tells the followers afterwards, which --watch shows. --key makes a repeat safe.
func newAnnounceCommand() *cobra.Command {
	var spec announce.AnnouncementSpec
	var key string
	var threshold, first, rate int64
	cmd := watchable(&cobra.Command{
		Use:   "announce CAMPAIGN",
		Short: "Tell the followers of a merchant about a campaign",
		Long: `Tell the followers of a merchant about a campaign: all of them at once, or, when
there are more than --threshold, the --first by rank at once and the others at --rate
a second. The server's settings are the defaults. The server publishes the followers
in events, for the service that sends messages to their phones, and tells connected
clients. Users that follow later are not told.`,
		Example: `  dibs follower import --merchant shop followers.csv
  dibs campaign announce phone-noon --merchant shop --rate 500 --watch`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) (announce.AnnouncementView, error) {
		// A flag that was not given must stay out of the request: 0 is a value of its own, and the
		// server's settings are the defaults.
		for name, to := range map[string]struct {
			from *int64
			to   **int64
		}{"threshold": {&threshold, &spec.Threshold}, "first": {&first, &spec.First}, "rate": {&rate, &spec.Rate}} {
			if s.cmd.Flags().Changed(name) {
				*to.to = to.from
			}
		}
		return s.Announcements.Create(ctx, s.args[0], spec, key)
	})
	// The defaults shown as 0 are the server's: an announcement says which values it took.
	f := cmd.Flags()
	f.StringVar(&spec.Merchant, "merchant", "", "The `ID` of the merchant whose followers are told (default the campaign's audience)")
	f.StringVar(&spec.Message, "message", "", "The `TEXT` that they read, up to 1000 characters")
	f.StringVar(&spec.ID, "id", "", "The announcement's `ID` (default generated)")
	f.Int64Var(&threshold, "threshold", 0, "Up to `N` followers are all told at once (default the server's)")
	f.Int64Var(&first, "first", 0, "Of more followers, the first `N` by rank are told at once (default the server's)")
	f.Int64Var(&rate, "rate", 0, "The others are told at `N` a second (default the server's)")
	f.StringVar(&key, "key", "", "An idempotency `KEY`: the same announcement under the same key is made once")
	return cmd
}

// newAnnouncementShowCommand shows one announcement; with --watch it asks again until it is over.
func newAnnouncementShowCommand() *cobra.Command {
	return watchable(&cobra.Command{Use: "show ID", Short: "Show an announcement and how far it is", Args: cobra.ExactArgs(1)},
		func(ctx context.Context, s *session) (announce.AnnouncementView, error) {
			return s.Announcements.Get(ctx, s.args[0])
		})
}

// newAnnouncementListCommand lists one page of announcements, the latest 100: a campaign has few.
func newAnnouncementListCommand() *cobra.Command {
	return byID("list CAMPAIGN", "List the latest announcements of a campaign, newest first",
		func(admin *client.Client, ctx context.Context, campaign string) (api.ListView[announce.AnnouncementView], error) {
			return admin.Announcements.List(ctx, campaign, dibs.Page{Limit: dibs.MaxPage})
		}, columnsOf(func(v *announce.AnnouncementView) []any {
			return []any{v.ID, v.Merchant, v.State, v.Followers, v.Enqueued, v.CreatedAt}
		}, "ID", "MERCHANT", "STATE", "FOLLOWERS", "ENQUEUED", "CREATED").list)
}

// announcementTable shows an announcement, a row for each of its properties. "enqueued" counts the
// followers whose events are published; "delivered" those whose events every sink has taken, and is
// absent while there is no sink. The estimate is the time that the rest takes at the rate.
func announcementTable(v *announce.AnnouncementView) *cli.Table {
	t := cli.Facts("id", v.ID, "campaign", v.CampaignID, "merchant", v.Merchant)
	state := string(v.State)
	if v.Why != "" {
		state += ": " + v.Why
	}
	t.Add("state", state)
	// The numbers of users are those of the moment at which the announcement began.
	how := "all at once"
	if v.Followers > v.Threshold {
		how = fmt.Sprintf("%d at once, the others at %d/s", v.First, v.Rate)
	}
	t.Add("how", how)
	t.Add("followers", v.Followers)
	t.Add("enqueued", fmt.Sprintf("%s in %s", cli.Thousands(v.Enqueued), cli.Count(v.Events, "event")))
	if v.Delivered != nil {
		t.Add("delivered", *v.Delivered)
	}
	if v.Estimate > 0 {
		t.Add("estimate", time.Duration(v.Estimate).Round(time.Second))
	}
	return t
}

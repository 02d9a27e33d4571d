package remote

import (
	"context"
	"fmt"
	"time"

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
		Short: "Show, pause, resume and cancel announcements",
		Long: `Show how far announcements are, pause, resume and cancel them: those of the server
at --url, with the API key --admin-key or $DIBS_ADMIN_KEY. dibs campaign announce
starts one; docs/PUSH.md has more.`,
	},
		newAnnouncementShowCommand(), newAnnouncementListCommand(),
		byID("pause ID", "Stop telling followers until the announcement is resumed", (*client.Client).PauseAnnouncement, announcementTable),
		byID("resume ID", "Continue an announcement that was paused", (*client.Client).ResumeAnnouncement, announcementTable),
		byID("cancel ID", "End an announcement; it tells no more followers", (*client.Client).CancelAnnouncement, announcementTable),
	)
}

// newAnnounceCommand is `dibs campaign announce`.
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
		for name, to := range map[string]struct {
			from *int64
			to   **int64
		}{"threshold": {&threshold, &spec.Threshold}, "first": {&first, &spec.First}, "rate": {&rate, &spec.Rate}} {
			if s.cmd.Flags().Changed(name) {
				*to.to = to.from
			}
		}
		return s.Announce(ctx, s.args[0], spec, key)
	})
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

// newAnnouncementShowCommand shows one announcement, and follows it with --watch.
func newAnnouncementShowCommand() *cobra.Command {
	return watchable(&cobra.Command{Use: "show ID", Short: "Show an announcement and how far it is", Args: cobra.ExactArgs(1)},
		func(ctx context.Context, s *session) (announce.AnnouncementView, error) {
			return s.Announcement(ctx, s.args[0])
		})
}

// newAnnouncementListCommand lists a page of announcements: a campaign has few.
func newAnnouncementListCommand() *cobra.Command {
	return byID("list CAMPAIGN", "List the latest announcements of a campaign, newest first",
		func(admin *client.Client, ctx context.Context, campaign string) (api.ListView[announce.AnnouncementView], error) {
			return admin.Announcements(ctx, campaign, dibs.Page{Limit: dibs.MaxPage})
		}, func(l *api.ListView[announce.AnnouncementView]) *cli.Table {
			t := cli.NewTable("ID", "MERCHANT", "STATE", "FOLLOWERS", "ENQUEUED", "CREATED")
			for _, v := range l.Items {
				t.Add(v.ID, v.Merchant, v.State, v.Followers, v.Enqueued, v.CreatedAt)
			}
			return t
		})
}

// announcementTable shows an announcement, a row for each of its properties. delivered is
// there only when the server counts deliveries.
func announcementTable(v *announce.AnnouncementView) *cli.Table {
	t := cli.NewTable()
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
	t.Add("followers", v.Followers)
	t.Add("enqueued", fmt.Sprintf("%d in %d events", v.Enqueued, v.Events))
	if v.Delivered != nil {
		t.Add("delivered", *v.Delivered)
	}
	if v.Estimate > 0 {
		t.Add("estimate", time.Duration(v.Estimate).Round(time.Second))
	}
	return t
}

package remote

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newCampaignCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "campaign",
		Short: "Create, change and watch the campaigns of a server",
		Long: `Create, change and watch the campaigns of a server: the one at --url, with the
API key --admin-key or $DIBS_ADMIN_KEY.`,
	})
	cmd.AddCommand(newCreateCommand(), newApplyCommand(), newListCommand(), newShowCommand(), newStockCommand(), newWatchCommand(), newAnnounceCommand())
	for _, a := range actions {
		cmd.AddCommand(newActionCommand(a))
	}
	return cmd
}

// action is a verb that moves a campaign from state to state.
type action struct {
	verb, short string
	do          func(*client.Client, context.Context, string) (dibs.CampaignView, error)
}

var actions = []action{
	{"publish", "Open a draft to users", (*client.Client).Publish},
	{"pause", "Refuse claims until the campaign is resumed", (*client.Client).Pause},
	{"resume", "Let a paused campaign grant again", (*client.Client).Resume},
	{"end", "End a campaign for good", (*client.Client).End},
}

func newActionCommand(a action) *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use:   a.verb + " ID",
		Short: a.short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return call(cmd, output, func(ctx context.Context, api *client.Client) (dibs.CampaignView, error) {
				return a.do(api, ctx, args[0])
			})
		},
	}, &output)
}

func newListCommand() *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use:   "list",
		Short: "List all campaigns, newest first, drafts too",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			views, err := allCampaigns(cmd.Context(), api)
			if err != nil {
				return ExplainCall(c, err)
			}
			t := campaignTable(views...)
			return cli.Show(cmd, output, views, &t)
		},
	}, &output)
}

// allCampaigns reads every page.
func allCampaigns(ctx context.Context, api *client.Client) ([]dibs.CampaignView, error) {
	views := []dibs.CampaignView{}
	page := dibs.Page{Limit: dibs.MaxPage}
	for {
		l, err := api.Campaigns(ctx, page)
		if err != nil {
			return nil, err
		}
		views = append(views, l.Items...)
		if page.Cursor = l.NextCursor; page.Cursor == "" {
			return views, nil
		}
	}
}

// campaignTable lists campaigns.
func campaignTable(views ...dibs.CampaignView) cli.Table {
	t := cli.Table{Head: []string{"ID", "KIND", "STATE", "STOCK", "LEFT", "LIMIT", "STARTS", "ENDS", "TITLE"}}
	for _, v := range views {
		t.Add(v.ID, string(v.Kind), string(v.State), stockText(v.Stock), strconv.FormatInt(v.Remaining, 10),
			strconv.FormatInt(v.LimitPerUser, 10), cli.Moment(v.StartsAt), cli.Moment(v.EndsAt), v.Title)
	}
	return t
}

// stockText is a stock in words.
func stockText(s *dibs.StockView) string {
	switch {
	case s == nil:
		return "-"
	case s.Units != nil:
		return fmt.Sprintf("%d units", *s.Units)
	case s.Items != nil:
		return fmt.Sprintf("%d items", *s.Items)
	case s.RedPacket != nil:
		return fmt.Sprintf("%d %s in %d shares", s.RedPacket.Total.Amount, s.RedPacket.Total.Currency, s.RedPacket.Count)
	case s.Codes != nil:
		return fmt.Sprintf("%d codes", s.Codes.Count)
	}
	return "-"
}

func newShowCommand() *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use:   "show ID",
		Short: "Show a campaign and its numbers",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, err := api.Campaign(cmd.Context(), args[0])
			if err != nil {
				return ExplainCall(c, err)
			}
			stats, err := api.Stats(cmd.Context(), args[0])
			if err != nil {
				return ExplainCall(c, err)
			}
			t := detailTable(&v, &stats)
			return cli.Show(cmd, output, struct {
				Campaign dibs.CampaignView `json:"campaign"`
				Stats    dibs.StatsView    `json:"stats"`
			}{v, stats}, &t)
		},
	}, &output)
}

// detailTable is a campaign, a line for each of its sides.
func detailTable(v *dibs.CampaignView, s *dibs.StatsView) cli.Table {
	t := cli.Table{}
	line := func(name, text string) {
		if text != "" {
			t.Add(name, text)
		}
	}
	line("id", v.ID)
	line("title", v.Title)
	line("kind", string(v.Kind))
	line("state", string(v.State))
	line("window", cli.Moment(v.StartsAt)+" to "+cli.Moment(v.EndsAt))
	if v.ProductID != nil {
		line("product", *v.ProductID)
	}
	if v.Price != nil {
		line("price", fmt.Sprintf("%d %s (minor units)", v.Price.Amount, v.Price.Currency))
	}
	for _, tier := range v.Tiers {
		line("tier", fmt.Sprintf("from unit %d on %d %% of the price", tier.FromUnit, tier.Percent))
	}
	if v.PayWithin != nil {
		line("pay within", time.Duration(*v.PayWithin).String())
	}
	line("limit per user", strconv.FormatInt(v.LimitPerUser, 10))
	line("stock", stockText(v.Stock))
	line("left", strconv.FormatInt(s.Remaining, 10))
	if s.Low {
		line("low", fmt.Sprintf("no more than %d are left", s.LowStock))
	}
	line("granted", fmt.Sprintf("%d (pending %d, confirmed %d, refunded %d)", s.Granted, s.Pending, s.Confirmed, s.Refunded))
	line("released", strconv.FormatInt(s.Released, 10))
	if f := s.Funds; f != nil {
		line("sender", cmp.Or(v.SenderID, "the platform"))
		line("funds", fmt.Sprintf("%d %s: credited %d, returned %d, in escrow %d (minor units)",
			f.Funded.Amount, f.Funded.Currency, f.Credited.Amount, f.Returned.Amount, f.Escrow.Amount))
	}
	if s.Funds != nil {
		line("problem", s.Funds.Problem)
	}
	line("refused", refusedText(s.Refused))
	line("unsettled", fmt.Sprintf("%d entries, %d ms", s.JournalBacklog, s.SettleLagMS))
	if v.Comment != nil {
		line("comment", *v.Comment)
	}
	return t
}

// refusedText lists the refusals by reason.
func refusedText(refused map[string]int64) string {
	if len(refused) == 0 {
		return "none since the server started"
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(refused)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, refused[reason]))
	}
	return strings.Join(parts, ", ")
}

package remote

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// newCampaignCommand returns the verbs on /v1/campaigns. The verbs that change the state may be
// repeated: a campaign that is paused can be paused again. The server refuses a way that
// docs/STATES.md does not have, with exit code 1.
func newCampaignCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "campaign",
		Short: "Create, change and watch the campaigns of a server",
		Long: `Create, change and watch the campaigns of the server at --url, with the API key
--admin-key or $DIBS_ADMIN_KEY.`,
	}, newCreateCommand(), newApplyCommand(), newListCommand(), newShowCommand(), newStockCommand(), newAbandonCommand(), newWatchCommand(), newAnnounceCommand())
	for _, a := range actions {
		cmd.AddCommand(byID(a.verb+" ID", a.short, a.do, campaignColumns.one))
	}
	return cmd
}

// action is a verb that takes a campaign to another state. do returns the campaign after it.
type action struct {
	verb, short string
	do          func(*client.Client, context.Context, string) (api.CampaignView, error)
}

// actions are all such verbs; apply takes them too.
var actions = []action{
	{"publish", "Open a draft to users", of(func(c *client.Client) one[api.CampaignView] { return c.Campaigns.Publish })},
	{"pause", "Refuse claims until the campaign is resumed", of(func(c *client.Client) one[api.CampaignView] { return c.Campaigns.Pause })},
	{"resume", "Grant claims of a paused campaign again", of(func(c *client.Client) one[api.CampaignView] { return c.Campaigns.Resume })},
	{"end", "End a campaign for good", of(func(c *client.Client) one[api.CampaignView] { return c.Campaigns.End })},
}

// newListCommand lists all campaigns. It reads all pages, of 100 each, before it shows the first
// row, so that the columns are aligned. A campaign that is created meanwhile may be missing.
func newListCommand() *cobra.Command {
	var product string
	cmd := ask(&cobra.Command{Use: "list", Short: "List all campaigns, or those of a product, newest first, drafts too", Args: cobra.NoArgs},
		func(ctx context.Context, s *session) ([]api.CampaignView, error) {
			if product == "" {
				return s.campaigns(ctx)
			}
			return all(0, func(p dibs.Page) (api.ListView[api.CampaignView], error) { return s.Campaigns.Of(ctx, product, p) })
		},
		campaignColumns.table)
	cmd.Flags().StringVar(&product, "product", "", "Only those of the product `ID`")
	return cmd
}

// campaigns reads all campaigns, page by page.
func (s *session) campaigns(ctx context.Context) ([]api.CampaignView, error) {
	return all(0, func(p dibs.Page) (api.ListView[api.CampaignView], error) { return s.Campaigns.List(ctx, p) })
}

// campaignColumns show campaigns.
var campaignColumns = columnsOf(func(v *api.CampaignView) []any {
	return []any{v.ID, v.Kind, v.State, stockText(v.Stock), v.Remaining, v.LimitPerUser, v.StartsAt, v.EndsAt, v.Title}
}, "ID", "KIND", "STATE", "STOCK", "LEFT", "LIMIT", "STARTS", "ENDS", "TITLE")

// gateText says in words what a claim has to pass.
func gateText(g *dibs.GateSpec) string {
	var has []string
	if len(g.Limits) > 0 {
		has = append(has, fmt.Sprintf("limits of %d kinds", len(g.Limits)))
	}
	if a := g.Audience; a != nil && a.List != "" {
		has = append(has, "the users of the list "+a.List)
	} else if a != nil {
		has = append(has, "the followers of "+a.FollowersOf)
	}
	if g.Room != nil && g.Room.Mode == dibs.Lottery {
		has = append(has, "a lottery")
	} else if g.Room != nil {
		has = append(has, fmt.Sprintf("a waiting room (%s)", g.Room.Mode))
	}
	if g.Ticket != nil {
		has = append(has, "a ticket")
	}
	return strings.Join(has, ", ")
}

// stockText shows the size of a stock and what it consists of; a dash where the answer has none.
func stockText(s *api.StockView) string {
	switch {
	case s == nil:
		return "-"
	case s.Units != nil:
		return cli.Count(*s.Units, "unit")
	case s.Items != nil:
		return cli.Count(int64(*s.Items), "item")
	case s.RedPacket != nil:
		return amountText(&s.RedPacket.Total) + " in " + cli.Count(s.RedPacket.Count, "share")
	case s.Codes != nil:
		return cli.Count(s.Codes.Count, "code")
	}
	return "-"
}

// campaignDetail is a campaign with its numbers.
type campaignDetail struct {
	Campaign api.CampaignView `json:"campaign"`
	Stats    api.StatsView    `json:"stats"`
}

// newShowCommand shows a campaign by two calls, the second for its numbers: a claim in between makes
// the numbers newer than the campaign above them.
func newShowCommand() *cobra.Command {
	return byID("show ID", "Show a campaign and its numbers",
		func(admin *client.Client, ctx context.Context, id string) (d campaignDetail, err error) {
			if d.Campaign, err = admin.Campaigns.Get(ctx, id); err == nil {
				d.Stats, err = admin.Campaigns.Stats(ctx, id)
			}
			return d, err
		}, detailTable)
}

// detailTable shows a campaign, a row for each of its properties. "left" is
// the engine's number and "granted" the sum of what is unpaid, paid and refunded.
func detailTable(d *campaignDetail) *cli.Table {
	t, v, s := cli.NewTable(), &d.Campaign, &d.Stats
	t.Field("id", v.ID)
	t.Field("title", v.Title)
	t.Field("kind", v.Kind)
	t.Field("state", v.State)
	t.Field("window", cli.Moment(v.StartsAt)+" to "+cli.Moment(v.EndsAt))
	if v.EndedAt != nil {
		t.Field("ended", *v.EndedAt)
	}
	if v.ProductID != nil {
		t.Field("product", *v.ProductID)
	}
	t.Field("price", amountText(v.Price))
	for _, tier := range v.Tiers {
		t.Field("tier", fmt.Sprintf("from unit %d on %d %% of the price", tier.FromUnit, tier.Percent))
	}
	if v.PayWithin != nil {
		t.Field("pay within", time.Duration(*v.PayWithin))
	}
	t.Field("limit per user", v.LimitPerUser)
	if v.LimitPerProduct > 0 {
		t.Field("limit per product", v.LimitPerProduct)
	}
	if v.Shards > 1 {
		t.Field("shards", v.Shards)
	}
	if v.Gate != nil {
		t.Field("gate", gateText(v.Gate))
	}
	t.Field("stock", stockText(v.Stock))
	t.Field("left", s.Remaining)
	if s.Low {
		t.Field("low", cli.Thousands(s.LowStock)+" or fewer are left")
	}
	t.Field("granted", fmt.Sprintf("%s (pending %s, confirmed %s, refunded %s)",
		cli.Thousands(s.Granted), cli.Thousands(s.Pending), cli.Thousands(s.Confirmed), cli.Thousands(s.Refunded)))
	t.Field("released", s.Released)
	// Only a red packet has funds: what came in is what was credited, returned and is in escrow.
	if f := s.Funds; f != nil {
		t.Field("sender", cmp.Or(v.SenderID, "the platform"))
		t.Field("funds", fmt.Sprintf("%s: credited %s, returned %s, in escrow %s",
			amountText(&f.Funded), moneyDigits(f.Credited), moneyDigits(f.Returned), moneyDigits(f.Escrow)))
		t.Field("problem", f.Problem)
	}
	t.Field("refused", refusedText(s.Refused))
	t.Field("unsettled", settlingText(s))
	if s.ShardsAway > 0 {
		t.Field("shards away", fmt.Sprintf("%d: of them the numbers are the ledger's", s.ShardsAway))
	}
	if v.Comment != nil {
		t.Field("comment", *v.Comment)
	}
	return t
}

// settlingText says what waits for the ledger, and for how long.
func settlingText(s *api.StatsView) string {
	entries := "entries"
	if s.JournalBacklog == 1 {
		entries = "entry"
	}
	return fmt.Sprintf("%s %s, %s ms", cli.Thousands(s.JournalBacklog), entries, cli.Thousands(s.SettleLagMS))
}

// refusedText lists the refusals by reason. One node counts them, since its start: after a restart
// they begin at zero, and nodes that share a Redis have counts of their own.
func refusedText(refused map[string]int64) string {
	if len(refused) == 0 {
		return "none by this node since it started"
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(refused)) {
		parts = append(parts, reason+" "+cli.Thousands(refused[reason]))
	}
	return strings.Join(parts, ", ") + " (by this node since it started)"
}

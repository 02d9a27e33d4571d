package remote

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/webhooks"
)

// completePatience is how long a shell waits for the server's ids: a user who presses the tabulator
// must not wait for a server that is away.
const completePatience = 2 * time.Second

// lister lists the ids of things, the newest first, with a word to each.
type lister func(ctx context.Context, c *client.Client) ([]cobra.Completion, error)

// listers are by what an id names.
var listers = map[string]lister{
	"campaign": listerOf(func(c *client.Client) pages[api.CampaignView] { return c.Campaigns.List },
		func(v *api.CampaignView) (string, string) { return v.ID, string(v.State) + " · " + v.Title }),
	"product": listerOf(func(c *client.Client) pages[api.ProductView] { return c.Products.List },
		func(v *api.ProductView) (string, string) { return v.ID, v.Name }),
	"claim": listerOf(func(c *client.Client) pages[api.ClaimView] {
		return func(ctx context.Context, p dibs.Page) (api.ListView[api.ClaimView], error) {
			return c.Orders.List(ctx, dibs.OrderQuery{}, p)
		}
	}, func(v *api.ClaimView) (string, string) { return v.ID, v.Status + " · " + v.UserID }),
	"endpoints": listerOf(func(c *client.Client) pages[webhooks.EndpointView] {
		return func(ctx context.Context, _ dibs.Page) (api.ListView[webhooks.EndpointView], error) {
			return c.Webhooks.List(ctx)
		}
	}, func(v *webhooks.EndpointView) (string, string) { return v.ID, v.URL }),
	"approval": listerOf(func(c *client.Client) pages[access.ApprovalView] { return c.Approvals.List },
		func(v *access.ApprovalView) (string, string) { return v.ID, string(v.State) + " · " + v.Action }),
	"session": listerOf(func(c *client.Client) pages[access.ConsoleSessionView] { return c.Sessions.List },
		func(v *access.ConsoleSessionView) (string, string) { return v.ID, v.Name }),
	"audience": listerOf(func(c *client.Client) pages[api.AudienceView] { return c.Audiences.List },
		func(v *api.AudienceView) (string, string) { return v.ID, strconv.FormatInt(v.Users, 10) + " users" }),
	"token": listerOf(func(c *client.Client) pages[access.RevocationView] { return c.Tokens.Revocations },
		func(v *access.RevocationView) (string, string) { return v.ID, cmp.Or(v.User, v.JTI) }),
	"announcement": announcements,
}

// announcedCampaigns is how many campaigns a shell asks for their announcements.
const announcedCampaigns = 20

// announcements is the lister of announcements: the server lists those of one campaign at a time, so
// those of the newest campaigns are listed.
func announcements(ctx context.Context, c *client.Client) (found []cobra.Completion, err error) {
	campaigns, err := c.Campaigns.List(ctx, dibs.Page{Limit: announcedCampaigns})
	if err != nil {
		return nil, err
	}
	for i := range campaigns.Items {
		l, err := c.Announcements.List(ctx, campaigns.Items[i].ID, dibs.Page{Limit: dibs.MaxPage})
		if err != nil {
			return nil, err
		}
		for j := range l.Items {
			found = append(found, cobra.CompletionWithDesc(l.Items[j].ID, string(l.Items[j].State)+" · "+l.Items[j].CampaignID))
		}
	}
	return found, nil
}

// listerOf is a lister of one page: a list of thousands helps no one to choose.
func listerOf[T any](part func(*client.Client) pages[T], of func(*T) (id, what string)) lister {
	return func(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
		l, err := part(c)(ctx, dibs.Page{Limit: dibs.MaxPage})
		found := make([]cobra.Completion, len(l.Items))
		for i := range l.Items {
			id, what := of(&l.Items[i])
			found[i] = cobra.CompletionWithDesc(id, what)
		}
		return found, err
	}
}

// complete asks the server for ids. Without a server, or without its key, there are none: a shell has
// no place for an error.
func (l lister) complete(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	admin, _, err := Connect(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completePatience)
	defer cancel()
	found, err := l(ctx, admin)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// complete lets shells complete the ids of a family's verbs, and those in their flags. family is what
// an argument ID names.
func complete(cmd *cobra.Command, family string) *cobra.Command {
	if cmd.HasSubCommands() {
		family = cmp.Or(families[cmd.Name()], cmd.Name())
	}
	for _, flag := range []string{"campaign", "product"} {
		// Only a verb that talks to a server has an address to ask.
		if cmd.Flags().Lookup(flag) != nil && cmd.Flags().Lookup(config.ClientKeys[0]) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, listers[flag].complete)
		}
	}
	if l := listerFor(cmd, family); l != nil && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			words := strings.Fields(cmd.Use)[1:]
			switch {
			case len(args) == 0 || strings.Contains(words[0], "…"):
				return l.complete(cmd, args, typed)
			case len(args) < len(words) && words[len(args)] == "FILE":
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
	for _, sub := range cmd.Commands() {
		complete(sub, family)
	}
	return cmd
}

// families are those whose ids name something of another family.
var families = map[string]string{"lottery": "campaign"}

// listerFor returns what lists the first argument of a verb, by its line of use; nil for none.
func listerFor(cmd *cobra.Command, family string) lister {
	words := strings.Fields(cmd.Use)
	if len(words) < 2 {
		return nil
	}
	switch words[1] {
	case "CAMPAIGN", "[CAMPAIGN…|product:ID…]":
		return listers["campaign"]
	case "ENDPOINT":
		return listers["endpoints"]
	case "ID", "[ID…]":
		return listers[family]
	}
	return nil
}

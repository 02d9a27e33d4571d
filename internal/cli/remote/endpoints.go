package remote

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/webhooks"
)

// newEndpointsCommand returns the verbs on /v1/webhook-endpoints. A secret is shown only when it is
// new: the server never tells it again. enable and disable may be repeated.
func newEndpointsCommand() *cobra.Command {
	return cli.Family(&cobra.Command{Use: "endpoints", Short: "List, add, change, test and delete webhooks"},
		newEndpointListCommand(), newEndpointCreateCommand(), newEndpointTestCommand(), newEndpointRotateCommand(),
		byID("show ID", "Show a webhook", of(func(c *client.Client) one[webhooks.EndpointView] { return c.Webhooks.Get }), endpointTable),
		byID("delete ID", "Delete a webhook with its deliveries",
			of(func(c *client.Client) one[webhooks.EndpointView] { return c.Webhooks.Delete }), endpointTable),
		byID("disable ID", "Post nothing to a webhook until it is enabled", disable(true), endpointTable),
		byID("enable ID", "Post to a webhook again, what waited first", disable(false), endpointTable),
	)
}

// disable returns the call that disables an endpoint, or enables it.
func disable(disabled bool) func(*client.Client, context.Context, string) (webhooks.EndpointView, error) {
	return func(admin *client.Client, ctx context.Context, id string) (webhooks.EndpointView, error) {
		return admin.Webhooks.Patch(ctx, id, webhooks.EndpointPatch{Disabled: &disabled})
	}
}

// endpointTable shows a webhook. The server tells its secret only when it is new.
func endpointTable(v *webhooks.EndpointView) *cli.Table {
	t := cli.Facts("id", v.ID, "url", v.URL, "types", cmp.Or(strings.Join(v.Types, ", "), "all"), "disabled", disabledText(v))
	t.Field("failing since", failingText(v))
	// Field leaves out an empty secret.
	t.Field("secret", v.Secret)
	return t
}

// disabledText says whether an endpoint is disabled, and why.
func disabledText(v *webhooks.EndpointView) string {
	if v.DisabledReason == "" {
		return strconv.FormatBool(v.Disabled)
	}
	return strconv.FormatBool(v.Disabled) + ": " + v.DisabledReason
}

// failingText says since when every attempt has failed; empty when they succeed.
func failingText(v *webhooks.EndpointView) string {
	if v.FailingSince == nil {
		return ""
	}
	return cli.Moment(*v.FailingSince)
}

// newEndpointListCommand lists all webhooks in one call: the server has a hundred at most.
func newEndpointListCommand() *cobra.Command {
	return ask(&cobra.Command{Use: "list", Short: "List the webhooks", Args: cobra.NoArgs},
		func(ctx context.Context, s *session) (api.ListView[webhooks.EndpointView], error) {
			return s.Webhooks.List(ctx)
		},
		columnsOf(func(e *webhooks.EndpointView) []any {
			return []any{e.ID, e.URL, disabledText(e), failingText(e)}
		}, "ID", "URL", "DISABLED", "FAILING SINCE").list)
}

// newEndpointCreateCommand adds a webhook. A repeat adds another one, with a secret of its own, so
// look at the list after a call without an answer. The server judges the address.
func newEndpointCreateCommand() *cobra.Command {
	spec := webhooks.EndpointSpec{}
	cmd := byID("create URL", "Add a webhook; its secret is shown only now",
		func(admin *client.Client, ctx context.Context, url string) (webhooks.EndpointView, error) {
			spec.URL = url
			// Without a key: the server remembers no secret, so a repeat by key would show none.
			return admin.Webhooks.Create(ctx, spec, "")
		}, endpointTable)
	cmd.Flags().StringSliceVar(&spec.Types, "types", nil, "Only events of these `TYPES`, separated by commas")
	cmd.Flags().StringVar(&spec.Description, "description", "", "A `TEXT` about its purpose")
	return cmd
}

// newEndpointTestCommand has the server post an event that means nothing, to try address and
// signature. The answer has the event's id and does not wait for the delivery: dibs events
// deliveries shows how it went.
func newEndpointTestCommand() *cobra.Command {
	return byID("test ID", "Post a test event to a webhook",
		func(admin *client.Client, ctx context.Context, id string) (map[string]string, error) {
			event, err := admin.Webhooks.Test(ctx, id)
			return map[string]string{"event_id": event}, err
		}, func(v *map[string]string) *cli.Table { return cli.Facts("event", (*v)["event_id"]) })
}

// newEndpointRotateCommand changes the secret. For a day, or --keep-old-for, the old secret signs
// too, so that the receiver can be changed meanwhile. A repeat makes yet another secret: the one
// that it shows last counts.
func newEndpointRotateCommand() *cobra.Command {
	keep := 24 * time.Hour
	cmd := byID("rotate-secret ID", "Give a webhook a new secret, which is shown only now",
		func(admin *client.Client, ctx context.Context, id string) (webhooks.EndpointView, error) {
			d := dibs.Duration(keep)
			return admin.Webhooks.RotateSecret(ctx, id, webhooks.RotateSpec{KeepOldFor: &d})
		}, endpointTable)
	cmd.Flags().DurationVar(&keep, "keep-old-for", keep, "The `TIME` for which the old secret signs too")
	return cmd
}

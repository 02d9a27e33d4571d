package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
)

func newEventsCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "events",
		Short: "Follow events, see who takes them, and manage webhooks",
		Long: `Follow the events of a server, see how far each sink has taken them, and manage
webhooks: the server at --url, with the API key --admin-key or $DIBS_ADMIN_KEY.
docs/EVENTS.md has the events and the sinks.`,
	})
	cmd.AddCommand(newTailCommand(), newSinksCommand(), newEndpointsCommand(), newDeliveriesCommand(), newRedeliverCommand(), newDeadCommand())
	return cmd
}

// tailEvery is how often the server is asked for news.
const tailEvery = 500 * time.Millisecond

func newTailCommand() *cobra.Command {
	after, once := int64(-1), false
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print events as they happen, one JSON object a line",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			lines := json.NewEncoder(cmd.OutOrStdout())
			lines.SetEscapeHTML(false)
			for place := after; ; {
				events, next, err := api.Events(cmd.Context(), place)
				switch {
				case cmd.Context().Err() != nil:
					// Whoever looked on has seen enough.
					return nil //nolint:nilerr // It is the end of the call that failed.
				case err != nil:
					return ExplainCall(c, err)
				}
				for i := range events {
					if err := lines.Encode(&events[i]); err != nil {
						return err
					}
				}
				if next == place || place < 0 {
					if once {
						return nil
					}
					select {
					case <-time.After(tailEvery):
					case <-cmd.Context().Done():
						return nil
					}
				}
				place = next
			}
		},
	}
	config.AddFlags(cmd, config.ClientKeys)
	cmd.Flags().Int64Var(&after, "after", -1, "Begin after this `ROW` of the feed: 0 for all that is kept, a day at least (default from now on)")
	cmd.Flags().BoolVar(&once, "once", false, "End where the feed ends")
	return cmd
}

func newSinksCommand() *cobra.Command {
	return eventsVerb("sinks", "Show how far each sink has taken the events", cobra.NoArgs,
		func(ctx context.Context, api *client.Client, _ []string) (any, cli.Table, error) {
			t := cli.Table{Head: []string{"SINK", "OK", "BEHIND", "LAG", "PUBLISHED", "PROBLEM"}}
			v, err := api.EventSinks(ctx)
			for i := range v.Items {
				s := &v.Items[i]
				t.Add(s.Name, strconv.FormatBool(s.OK), strconv.FormatInt(s.Behind, 10),
					(time.Duration(s.LagMS) * time.Millisecond).String(), strconv.FormatInt(s.Published, 10), s.Problem)
			}
			return v, t, err
		})
}

func newDeliveriesCommand() *cobra.Command {
	var status string
	limit := dibs.DefaultPage
	cmd := eventsVerb("deliveries ENDPOINT", "List what was posted to a webhook, newest first", cobra.ExactArgs(1),
		func(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error) {
			t := cli.Table{Head: []string{"EVENT", "TYPE", "STATUS", "ATTEMPTS", "UPDATED", "PROBLEM"}}
			v, err := api.Deliveries(ctx, args[0], dibs.DeliveryStatus(status), dibs.Page{Limit: limit})
			for i := range v.Items {
				d := &v.Items[i]
				t.Add(d.EventID, d.Type, string(d.Status), strconv.Itoa(d.Attempts), cli.Moment(d.UpdatedAt), d.Problem)
			}
			return v, t, err
		})
	cmd.Flags().StringVar(&status, "status", "", "Only those of a `STATUS`: pending, delivered or failed")
	cmd.Flags().IntVar(&limit, "limit", limit, "How many at most, `N`")
	return cmd
}

func newRedeliverCommand() *cobra.Command {
	var failed bool
	cmd := eventsVerb("redeliver ENDPOINT [EVENT]", "Post an event to a webhook again, or all that were given up", cobra.RangeArgs(1, 2),
		func(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error) {
			event := ""
			if len(args) == 2 {
				event = args[1]
			}
			if failed == (event != "") {
				return nil, cli.Table{}, cli.Usagef("name an EVENT, or say --failed")
			}
			n, err := api.Redeliver(ctx, args[0], event)
			t := cli.Table{}
			t.Add("redelivered", strconv.FormatInt(n, 10))
			return map[string]int64{"redelivered": n}, t, err
		})
	cmd.Flags().BoolVar(&failed, "failed", false, "All that were given up")
	return cmd
}

func newEndpointsCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{Use: "endpoints", Short: "List, add, change, try and drop webhooks"})
	cmd.AddCommand(newEndpointListCommand(), newEndpointCreateCommand(), newEndpointTestCommand(), newEndpointRotateCommand())
	cmd.AddCommand(
		endpointVerb("show", "Show a webhook", func(ctx context.Context, api *client.Client, id string) (dibs.EndpointView, error) {
			return api.Endpoint(ctx, id)
		}),
		endpointVerb("delete", "Drop a webhook with its deliveries", func(ctx context.Context, api *client.Client, id string) (dibs.EndpointView, error) {
			return api.DeleteEndpoint(ctx, id)
		}),
		endpointVerb("disable", "Post nothing to a webhook until it is enabled", disabled(true)),
		endpointVerb("enable", "Post to a webhook again, from now on", disabled(false)),
	)
	return cmd
}

func disabled(yes bool) func(ctx context.Context, api *client.Client, id string) (dibs.EndpointView, error) {
	return func(ctx context.Context, api *client.Client, id string) (dibs.EndpointView, error) {
		return api.PatchEndpoint(ctx, id, dibs.EndpointPatch{Disabled: &yes})
	}
}

// endpointVerb is a verb on one endpoint.
func endpointVerb(use, short string, do func(ctx context.Context, api *client.Client, id string) (dibs.EndpointView, error)) *cobra.Command {
	return eventsVerb(use+" ID", short, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error) {
		v, err := do(ctx, api, args[0])
		return v, endpointTable(&v), err
	})
}

func endpointTable(v *dibs.EndpointView) cli.Table {
	t := cli.Table{}
	t.Add("id", v.ID)
	t.Add("url", v.URL)
	t.Add("types", fmt.Sprint(v.Types))
	t.Add("disabled", disabledText(v))
	if v.FailingSince != nil {
		t.Add("failing since", failingText(v))
	}
	if v.Secret != "" {
		t.Add("secret", v.Secret)
	}
	return t
}

// disabledText says whether an endpoint is disabled, and why.
func disabledText(v *dibs.EndpointView) string {
	if v.DisabledReason == "" {
		return strconv.FormatBool(v.Disabled)
	}
	return strconv.FormatBool(v.Disabled) + ": " + v.DisabledReason
}

// failingText says since when every attempt has failed; nothing when they do not.
func failingText(v *dibs.EndpointView) string {
	if v.FailingSince == nil {
		return ""
	}
	return cli.Moment(*v.FailingSince)
}

func newEndpointListCommand() *cobra.Command {
	return eventsVerb("list", "List the webhooks", cobra.NoArgs, func(ctx context.Context, api *client.Client, _ []string) (any, cli.Table, error) {
		t := cli.Table{Head: []string{"ID", "URL", "DISABLED", "FAILING SINCE"}}
		v, err := api.Endpoints(ctx)
		for i := range v.Items {
			e := &v.Items[i]
			t.Add(e.ID, e.URL, disabledText(e), failingText(e))
		}
		return v, t, err
	})
}

func newEndpointCreateCommand() *cobra.Command {
	spec := dibs.EndpointSpec{}
	cmd := eventsVerb("create URL", "Have events posted to an address; the secret is shown this once", cobra.ExactArgs(1),
		func(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error) {
			spec.URL = args[0]
			v, err := api.CreateEndpoint(ctx, spec, "")
			return v, endpointTable(&v), err
		})
	cmd.Flags().StringSliceVar(&spec.Types, "types", nil, "Only events of these `TYPES`, by commas")
	cmd.Flags().StringVar(&spec.Description, "description", "", "What it is for, `TEXT`")
	return cmd
}

func newEndpointTestCommand() *cobra.Command {
	return eventsVerb("test ID", "Post an event that only tries a webhook", cobra.ExactArgs(1),
		func(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error) {
			id, err := api.TestEndpoint(ctx, args[0])
			t := cli.Table{}
			t.Add("event", id)
			return map[string]string{"event_id": id}, t, err
		})
}

func newEndpointRotateCommand() *cobra.Command {
	keep := 24 * time.Hour
	cmd := eventsVerb("rotate-secret ID", "Give a webhook another secret, shown this once", cobra.ExactArgs(1),
		func(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error) {
			d := dibs.Duration(keep)
			v, err := api.RotateSecret(ctx, args[0], dibs.RotateSpec{KeepOldFor: &d})
			return v, endpointTable(&v), err
		})
	cmd.Flags().DurationVar(&keep, "keep-old-for", keep, "How long the old secret signs too, `TIME`")
	return cmd
}

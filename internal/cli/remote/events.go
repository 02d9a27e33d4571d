package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/wait"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

// newEventsCommand returns the verbs on events, their sinks and webhooks.
func newEventsCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "events",
		Short: "Follow events, see how far their sinks are, and manage webhooks",
		Long: `Follow the events of the server at --url, see how far each sink is, and manage
webhooks, with the API key --admin-key or $DIBS_ADMIN_KEY. docs/EVENTS.md has the
events and the sinks.`,
	}, newTailCommand(), newSinksCommand(), newEndpointsCommand(), newDeliveriesCommand(), newRedeliverCommand(), newDeadCommand())
}

// tailEvery is the time between two calls for new events when there are none. While there are some,
// the next call follows at once.
const tailEvery = 500 * time.Millisecond

// newTailCommand follows the feed, without a place of its own on the server: it is for looking, and a
// consumer that must miss nothing needs a sink. It has no --output: an event is JSON.
func newTailCommand() *cobra.Command {
	after, once := int64(-1), false
	cmd := talk(&cobra.Command{Use: "tail", Short: "Print events as they happen, one JSON object a line", Args: cobra.NoArgs},
		func(ctx context.Context, s *session) error { return s.tail(ctx, after, once) })
	cmd.Flags().Int64Var(&after, "after", -1, "Begin after this `ROW` of the feed: 0 for everything that is kept, a day at least; -1 for new events only")
	cmd.Flags().BoolVar(&once, "once", false, "Stop at the end of the feed")
	return cmd
}

// tail prints events until ctx ends, or with once until the end of the feed, about 500 with each
// call. A negative row asks for the feed's end: the first answer then has no events and only says
// where to go on. A call that fails ends it with exit code 1; --after with the last row's number
// continues.
func (s *session) tail(ctx context.Context, after int64, once bool) error {
	lines := cli.JSONLines(s.cmd)
	for row := after; ; {
		events, next, err := s.Events.After(ctx, row)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // The call failed because the user stopped it.
		case err != nil:
			return err
		}
		for i := range events {
			if err := lines.Encode(&events[i]); err != nil {
				return err
			}
		}
		// Nothing new, or the place where new events will follow.
		if next == row || row < 0 {
			if once {
				return nil
			}
			if !wait.Sleep(ctx, tailEvery) {
				return nil
			}
		}
		row = next
	}
}

// newSinksCommand shows how far each sink is: rows of the feed that it has not taken, and the age of
// the oldest of them. All webhooks together are one sink.
func newSinksCommand() *cobra.Command {
	return ask(&cobra.Command{Use: "sinks", Short: "Show how far each sink has taken the events", Args: cobra.NoArgs},
		func(ctx context.Context, s *session) (api.ListView[events.SinkView], error) {
			return s.Events.Sinks(ctx)
		},
		columnsOf(func(s *events.SinkView) []any {
			return []any{s.Name, s.OK, s.Behind, time.Duration(s.LagMS) * time.Millisecond, s.Published, s.Problem}
		}, "SINK", "OK", "BEHIND", "LAG", "PUBLISHED", "PROBLEM").list)
}

// newDeliveriesCommand lists one page of deliveries, the newest: a webhook may have millions. The
// server bounds --limit.
func newDeliveriesCommand() *cobra.Command {
	var status webhooks.DeliveryStatus
	limit := dibs.DefaultPage
	cmd := ask(&cobra.Command{Use: "deliveries ENDPOINT", Short: "List the deliveries to a webhook, newest first", Args: cobra.ExactArgs(1)},
		func(ctx context.Context, s *session) (api.ListView[webhooks.DeliveryView], error) {
			return onePage(s, limit, func(p dibs.Page) (api.ListView[webhooks.DeliveryView], error) {
				return s.Webhooks.Deliveries(ctx, s.args[0], status, p)
			})
		}, columnsOf(func(d *webhooks.DeliveryView) []any {
			return []any{d.EventID, d.Type, d.Status, d.Attempts, d.UpdatedAt, d.Problem}
		}, "EVENT", "TYPE", "STATUS", "ATTEMPTS", "UPDATED", "PROBLEM").list)
	cmd.Flags().Var(cli.OneOf(&status, webhooks.DeliveryPending, webhooks.DeliveryDelivered, webhooks.DeliveryFailed), "status", "Only those of this `STATUS`: pending, delivered or failed")
	cmd.Flags().IntVar(&limit, "limit", limit, "At most `N`")
	return cmd
}

// newRedeliverCommand has the server post an event again, or all that it gave up. It may be repeated:
// the receiver recognises an event by its id. All of them must be asked for by --failed, since a
// command without an EVENT may be a mistake.
func newRedeliverCommand() *cobra.Command {
	var failed bool
	cmd := ask(&cobra.Command{Use: "redeliver ENDPOINT [EVENT]", Short: "Post an event to a webhook again, or all failed ones", Args: cobra.RangeArgs(1, 2)},
		func(ctx context.Context, s *session) (map[string]int64, error) {
			event := ""
			if len(s.args) == 2 {
				event = s.args[1]
			}
			// Neither, or both: what is meant is unclear, and the receiver gets what it may not expect.
			if failed == (event != "") {
				return nil, cli.Usagef("name an EVENT, or give --failed")
			}
			n, err := s.Webhooks.Redeliver(ctx, s.args[0], event)
			return map[string]int64{"redelivered": n}, err
		}, func(v *map[string]int64) *cli.Table { return cli.Facts("redelivered", (*v)["redelivered"]) })
	cmd.Flags().BoolVar(&failed, "failed", false, "All that the server gave up")
	return cmd
}

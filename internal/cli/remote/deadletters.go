package remote

import (
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/consumer"
	"github.com/dibs-dev/dibs/internal/cli"
)

// newDeadCommand returns the verbs on a consumer's dead letters. They ask the consumer's broker, not
// the server, and so take no --url and no admin key: the broker's URL has its credentials.
func newDeadCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "dead",
		Short: "List a consumer's dead letters, and replay them",
		Long: `List the events that a consumer gave up, and replay them. They are in the broker
that the consumer reads from; the server is not asked.`,
	}, newDeadListCommand(), newDeadReplayCommand())
}

// ofConsumer gives a verb the flags that name a consumer.
func ofConsumer(cmd *cobra.Command, d *consumer.Dead) *cobra.Command {
	cmd.Flags().StringVar(&d.URL, "from", "redis://127.0.0.1:6379", "The `URL` that the consumer reads from: redis://… or nats://…, as in --events of the server")
	cmd.Flags().StringVar(&d.Stream, "stream", "", "The `NAME` of the stream that it reads (default the URL's, or dibs:events, or DIBS in NATS)")
	cmd.Flags().StringVar(&d.Group, "group", "", "The `NAME` of its group (required)")
	return cli.Require(cli.WithOutput(cmd), "group")
}

// newDeadListCommand lists one page of dead letters. The ENTRY of the last row, given to --after,
// continues: an entry keeps its place while others are replayed.
func newDeadListCommand() *cobra.Command {
	d, after, limit := consumer.Dead{}, "", 20
	cmd := ofConsumer(&cobra.Command{
		Use: "list", Short: "List dead letters, oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
			letters, err := consumer.DeadLetters(cmd.Context(), d, after, limit)
			if err != nil {
				return err
			}
			return cli.Show(cmd, letters, columnsOf(func(l *consumer.DeadLetter) []any {
				return []any{l.Entry, l.EventID, l.Type, l.Attempts, l.Why}
			}, "ENTRY", "EVENT", "TYPE", "ATTEMPTS", "WHY").table(&letters))
		},
	}, &d)
	cmd.Flags().StringVar(&after, "after", "", "Only those after this `ENTRY`")
	cmd.Flags().IntVar(&limit, "limit", limit, "At most `N`")
	return cmd
}

// newDeadReplayCommand returns dead letters to the stream, where their consumer reads them again, and
// shows how many. All of them must be asked for by --all, since a missing ENTRY may be a mistake. A
// consumer may see a letter twice when a replay is repeated, as it may see every event.
func newDeadReplayCommand() *cobra.Command {
	d, all := consumer.Dead{}, false
	cmd := ofConsumer(&cobra.Command{
		Use: "replay [ENTRY]", Short: "Return a dead letter to its consumer, or all of them", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return cli.Usagef("name an ENTRY, or give --all")
			}
			entry := ""
			if len(args) == 1 {
				entry = args[0]
			}
			n, err := consumer.Replay(cmd.Context(), d, entry)
			if err != nil {
				return err
			}
			return cli.Show(cmd, map[string]int{"replayed": n}, cli.Facts("replayed", n))
		},
	}, &d)
	cmd.Flags().BoolVar(&all, "all", false, "All of them")
	return cmd
}

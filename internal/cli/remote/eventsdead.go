package remote

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/consumer"

	"github.com/dibs-dev/dibs/internal/cli"
)

// newDeadCommand is about a consumer's dead letters, which are in its broker
// and not in the server.
func newDeadCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "dead",
		Short: "List a consumer's dead letters, and bring them back",
		Long: `List the events that a consumer has given up, and bring them back to it. They are
in the broker that it reads from; the server is not asked.`,
	})
	cmd.AddCommand(newDeadListCommand(), newDeadReplayCommand())
	return cmd
}

func addDead(cmd *cobra.Command, d *consumer.Dead, output *string) *cobra.Command {
	cmd.Flags().StringVar(&d.URL, "from", "redis://127.0.0.1:6379", "The address that it reads from, `URL`: redis://… or nats://…, as --events of the server has it")
	cmd.Flags().StringVar(&d.Stream, "stream", "", "The stream that it reads, `NAME` (default as the address says, or dibs:events, or DIBS in NATS)")
	cmd.Flags().StringVar(&d.Group, "group", "", "Its group, `NAME` (required)")
	cli.AddOutput(cmd, output)
	return cmd
}

func newDeadListCommand() *cobra.Command {
	d, after, limit, output := consumer.Dead{}, "", 20, ""
	cmd := addDead(&cobra.Command{
		Use: "list", Short: "List dead letters, oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			letters, err := consumer.DeadLetters(cmd.Context(), d, after, limit)
			if err != nil {
				return err
			}
			t := cli.Table{Head: []string{"ENTRY", "EVENT", "TYPE", "ATTEMPTS", "WHY"}}
			for i := range letters {
				l := &letters[i]
				t.Add(l.Entry, l.EventID, l.Type, strconv.Itoa(l.Attempts), l.Why)
			}
			return cli.Show(cmd, output, letters, &t)
		},
	}, &d, &output)
	cmd.Flags().StringVar(&after, "after", "", "Only those after an `ENTRY`")
	cmd.Flags().IntVar(&limit, "limit", limit, "How many at most, `N`")
	return cmd
}

func newDeadReplayCommand() *cobra.Command {
	d, all, output := consumer.Dead{}, false, ""
	cmd := addDead(&cobra.Command{
		Use: "replay [ENTRY]", Short: "Bring a dead letter back to its consumer, or all", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return cli.Usagef("name an ENTRY, or say --all")
			}
			entry := ""
			if len(args) == 1 {
				entry = args[0]
			}
			n, err := consumer.Replay(cmd.Context(), d, entry)
			if err != nil {
				return err
			}
			t := cli.Table{}
			t.Add("replayed", strconv.Itoa(n))
			return cli.Show(cmd, output, map[string]int{"replayed": n}, &t)
		},
	}, &d, &output)
	cmd.Flags().BoolVar(&all, "all", false, "All of them")
	return cmd
}

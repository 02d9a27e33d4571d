package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/remote"
	"github.com/dibs-dev/dibs/internal/cli/store"
)

func newVerifyCommand() *cobra.Command {
	var output string
	var repair bool
	var older string
	cmd := &cobra.Command{
		Use:   "verify [CAMPAIGN…|product:ID…]",
		Short: "Compare engine and ledger, promise by promise; exit 1 on a difference",
		Long: `Compare engine and ledger, campaign by campaign, promise by promise. With --url
the running server there does it; without, the engine and the ledger are opened,
beside the nodes on Redis, or instead of the one server on the memory engine.
What was granted and not settled yet is settled first.

With --repair, what can be put right is: sums that differ from their rows,
changes of stock that wait for the engine, journal entries in quarantine that
settle by now, and an engine that differs from a ledger that is whole. Claims
are never changed. It says what it did, what it left and what to do about that,
compares again, and exits with 0 only when all is well then.

A ledger that was restored from a backup older than what the journal has kept
lacks claims that nobody knows any more: nothing of such a campaign is sold until
you restore a newer backup, or decide with --repair --older-ledger:
  continue  go on from the ledger as it is; the lost claims' units are sold again
  end       end the campaign

product:ID stands for the regular orders of a product.`,
		Example: `  dibs verify --data /var/lib/dibs
  dibs verify --url http://127.0.0.1:8080 --admin-key "$DIBS_ADMIN_KEY" phone-noon
  dibs verify --data /var/lib/dibs --repair
  dibs verify --data /var/lib/dibs --repair --older-ledger continue phone-noon`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if given := cmd.Flags().Changed("older-ledger"); given && !repair {
				return cli.Usagef("--older-ledger goes with --repair")
			} else if given && !slices.Contains(dibs.OlderLedgers, dibs.OlderLedger(older)) {
				return cli.Usagef("--older-ledger %q: must be continue or end", older)
			}
			if repair {
				return runRepair(cmd, dibs.RepairRequest{Campaigns: args, OlderLedger: dibs.OlderLedger(older)}, output)
			}
			return runVerify(cmd, args, output)
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "put right what can be, and compare again")
	cmd.Flags().StringVar(&older, "older-ledger", "", "with --repair, where the ledger is older than the journal: continue or end")
	config.AddFlags(cmd, config.StoreKeys, config.ClientKeys, config.LogKeys, []string{"migrate"})
	cli.AddOutput(cmd, &output)
	return cmd
}

func runVerify(cmd *cobra.Command, campaigns []string, output string) error {
	from, report, err := checked(cmd,
		func(ctx context.Context, s *dibs.Service) (*dibs.Report, error) { return s.Verify(ctx, campaigns...) },
		func(ctx context.Context, c *client.Client) (dibs.Report, error) { return c.Verify(ctx, campaigns...) })
	if err != nil {
		return err
	}
	t := reportTable(report)
	if err := cli.Show(cmd, output, report, &t); err != nil {
		return err
	}
	return verdict(cmd, from, report, output)
}

func runRepair(cmd *cobra.Command, req dibs.RepairRequest, output string) error {
	from, repair, err := checked(cmd,
		func(ctx context.Context, s *dibs.Service) (*dibs.RepairReport, error) { return s.Repair(ctx, req) },
		func(ctx context.Context, c *client.Client) (dibs.RepairReport, error) { return c.Repair(ctx, req) })
	if err != nil {
		return err
	}
	before, after := reportTable(repair.Before), reportTable(repair.After)
	if output == cli.OutputTable {
		cmd.Println("before:")
		if err := cli.Show(cmd, output, repair, &before); err != nil {
			return err
		}
		cmd.Println()
		for _, step := range repair.Steps {
			done := "repaired"
			if !step.Done {
				done = "NOT REPAIRED"
			}
			cmd.Printf("%s, %s: %s\n", done, step.CampaignID, step.What)
		}
		if len(repair.Steps) == 0 {
			cmd.Println("there was nothing to repair")
		}
		cmd.Println("\nafter:")
	}
	if err := cli.Show(cmd, output, repair, &after); err != nil {
		return err
	}
	return verdict(cmd, from, repair.After, output)
}

// verdict ends a command by a report.
func verdict(cmd *cobra.Command, from string, report *dibs.Report, output string) error {
	if !report.OK {
		return fmt.Errorf("a promise is broken in %s", from)
	}
	if output == cli.OutputTable {
		cmd.Printf("\n%s\n", cli.PaintFor(cmd.OutOrStdout()).Green(fmt.Sprintf("every promise holds, campaigns verified: %d", len(report.Campaigns))))
	}
	return nil
}

// checked lets a service in this process, or a server, check itself, and
// returns what it says and where that comes from.
func checked[T any](cmd *cobra.Command,
	here func(context.Context, *dibs.Service) (*T, error), there func(context.Context, *client.Client) (T, error),
) (from string, r *T, err error) {
	c, err := config.Load(cmd, config.StoreRules)
	if err != nil {
		return "", nil, err
	}
	if asksServer(c) {
		c, api, err := remote.Connect(cmd)
		if err != nil {
			return "", nil, err
		}
		said, err := there(cmd.Context(), api)
		if err != nil {
			return "", nil, remote.ExplainCall(c, err)
		}
		return c.URL, &said, nil
	}
	// The memory engine makes its journal before anything can be verified.
	first := c.JournalAt()
	if c.OnRedis() {
		first = c.LedgerAt()
	}
	found, err := store.Exists(first)
	if err != nil {
		return "", nil, err
	}
	if !found {
		return "", nil, fmt.Errorf("there is nothing to verify in %s: name a --data folder that dibs has used, or the --url of a server", c.Data)
	}
	if sqlledger.InServer(c.Ledger) {
		// A database that holds something else must not get tables by being
		// looked at.
		c.Migrate = false
	}
	log, err := store.NewLogger(cmd, c)
	if err != nil {
		return "", nil, err
	}
	ctx := cmd.Context()
	node, err := store.OpenNode(ctx, c, log, nil, "ask that server with --url and --admin-key, or stop it")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, node.Close(context.WithoutCancel(ctx))) }()
	r, err = here(ctx, node.Service)
	return c.Place(), r, err
}

// asksServer reports whether a server was meant, or a folder: a flag says so
// more clearly than an environment that is there for other verbs too.
func asksServer(c *config.Config) bool {
	byFlag := func(key string) bool { return strings.HasPrefix(c.Values.Of(key).From, "flag ") }
	if byFlag("url") || byFlag("data") || byFlag("ledger") || byFlag("engine") {
		return byFlag("url")
	}
	return c.Given("url")
}

// reportTable lists every promise of every campaign.
func reportTable(r *dibs.Report) cli.Table {
	t := cli.Table{Head: []string{"CAMPAIGN", "STOCK", "GRANTED", "LEFT", "CLAIMS", "PROMISE", "HELD", "DETAIL"}}
	for _, c := range r.Campaigns {
		cells := []string{
			c.CampaignID, strconv.FormatInt(c.Stock, 10), strconv.FormatInt(c.Granted, 10),
			strconv.FormatInt(c.Remaining, 10), strconv.FormatInt(c.Claims, 10),
		}
		for _, promise := range c.Promises {
			held := "yes"
			if !promise.Held {
				held = "NO"
			}
			t.Add(slices.Concat(cells, []string{promise.Promise, held, promise.Detail})...)
			// The campaign's numbers stand on its first line alone.
			cells = []string{"", "", "", "", ""}
		}
	}
	return t
}

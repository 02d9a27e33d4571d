package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/remote"
	"github.com/dibs-dev/dibs/internal/cli/store"
	"github.com/dibs-dev/dibs/ledger/sqlledger"

	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/node"
)

// newVerifyCommand returns the verb that proves the promises, and repairs. It exits with 0 only when
// every promise holds, after a repair too; with 1 when one is broken, or the comparison was not
// possible; with 2 for a bad command line. It may be repeated.
func newVerifyCommand() *cobra.Command {
	var repair bool
	var older audit.OlderLedger
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "verify [CAMPAIGN…|product:ID…]",
		Short: "Compare engine and ledger, promise by promise; exit 1 on a difference",
		Long: `Compare engine and ledger, campaign by campaign, promise by promise. With --url the
running server there compares them. Without, verify opens them itself: with Redis
beside the running nodes, with the memory engine in place of the one server. It first
settles claims that are granted and not settled yet.

--repair repairs sums that differ from their rows, changes of stock that wait for the
engine, journal entries in quarantine that can be settled now, and an engine that
differs from an intact ledger. It never changes claims. It says what it did, what it
left and what to do about that, compares again, and exits with 0 only if every promise
holds then.

A ledger that was restored from a backup older than the journal lacks claims that no
record knows any more: such a campaign grants nothing until you restore a newer
backup, or decide with --repair --older-ledger:
  continue  go on from the ledger as it is; the lost claims' units are sold again
  end       end the campaign

product:ID stands for the regular orders of a product.`,
		Example: `  dibs verify --data /var/lib/dibs
  dibs verify --url http://127.0.0.1:8080 --admin-key "$DIBS_ADMIN_KEY" phone-noon
  dibs verify --data /var/lib/dibs --repair
  dibs verify --data /var/lib/dibs --repair --older-ledger continue phone-noon`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Before anything is opened: what is decided here is not easily undone.
			if given := cmd.Flags().Changed("older-ledger"); given && !repair {
				return cli.Usagef("--older-ledger goes with --repair")
			}
			if repair {
				return runRepair(cmd, audit.RepairRequest{Campaigns: args, OlderLedger: older})
			}
			return runVerify(cmd, args)
		},
	})
	cmd.Flags().BoolVar(&repair, "repair", false, "Repair what can be repaired, and compare again")
	cmd.Flags().Var(cli.OneOf(&older, audit.OlderLedgers...), "older-ledger", "With --repair, the `CHOICE` of what to do where the ledger is older than the journal: continue or end")
	config.AddFlags(cmd, config.StoreKeys, config.ClientKeys, config.LogKeys, []string{"migrate"})
	return cmd
}

// runVerify compares engine and ledger and shows the report, of all campaigns when none is named.
func runVerify(cmd *cobra.Command, campaigns []string) error {
	from, report, err := hereOrThere(cmd, "comparing", campaigns,
		func(ctx context.Context, s *node.Service) (*audit.Report, error) {
			return s.Audit.Verify(ctx, campaigns...)
		},
		func(ctx context.Context, c *client.Client) (audit.Report, error) {
			return c.Audit.Verify(ctx, campaigns...)
		})
	if err != nil {
		return err
	}
	if err := cli.Show(cmd, report, reportTable(report)); err != nil {
		return err
	}
	return verdict(cmd, from, report)
}

// runRepair repairs and shows the reports of before and after, and each step between them. What could
// not be repaired is a step too, with what to do about it. JSON has all of it in one document.
func runRepair(cmd *cobra.Command, req audit.RepairRequest) error {
	from, repair, err := hereOrThere(cmd, "repairing", req.Campaigns,
		func(ctx context.Context, s *node.Service) (*audit.RepairReport, error) {
			return repairHere(ctx, s, req)
		},
		func(ctx context.Context, c *client.Client) (audit.RepairReport, error) {
			return c.Audit.Repair(ctx, req)
		})
	if err != nil {
		return err
	}
	// Both tables have the same columns, so they can be read side by side.
	after := reportTable(repair.After)
	if !cli.WantsJSON(cmd) {
		before := reportTable(repair.Before)
		before.Caption, after.Caption = "before:", "\nafter:"
		if err := before.Write(cmd.OutOrStdout()); err != nil {
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
	}
	if err := cli.Show(cmd, repair, after); err != nil {
		return err
	}
	return verdict(cmd, from, repair.After)
}

// repairHere repairs on a node that is opened for it, and notes that as the API does.
func repairHere(ctx context.Context, s *node.Service, req audit.RepairRequest) (*audit.RepairReport, error) {
	a, err := actionHere("repair", "/verify", req)
	if err != nil {
		return nil, err
	}
	if err := s.Access.BeginAction(ctx, a); err != nil {
		return nil, err
	}
	r, err := s.Audit.Repair(ctx, req)
	if a.Status = http.StatusOK; err != nil {
		a.Status, a.After = http.StatusInternalServerError, nil
	}
	s.Access.EndAction(ctx, a)
	return r, err
}

// verdict ends a verb by its report: a broken promise is an error, so that the exit code is 1 and a
// script need not read the table.
func verdict(cmd *cobra.Command, from string, report *audit.Report) error {
	if !report.OK {
		return fmt.Errorf("a promise is broken in %s", from)
	}
	if !cli.WantsJSON(cmd) {
		cmd.Printf("\n%s\n", cli.PaintFor(cmd.OutOrStdout()).Green(fmt.Sprintf("every promise holds, campaigns verified: %d", len(report.Campaigns))))
	}
	return nil
}

// hereOrThere runs a check by a node that it opens in this process, or by the server at --url. It
// returns the result and the name of what was checked. The node that it opens settles what is granted
// and not settled yet, and takes part in leases while it is open. It refuses to open a data folder
// that has none of the files: it would make them, verify nothing and say that all is well. Before, it
// says what it is about to do with which campaigns where.
func hereOrThere[T any](cmd *cobra.Command, doing string, campaigns []string,
	here func(context.Context, *node.Service) (*T, error), there func(context.Context, *client.Client) (T, error),
) (from string, r *T, err error) {
	c, err := config.Load(cmd, config.StoreRules)
	if err != nil {
		return "", nil, err
	}
	ctx := cmd.Context()
	if asksServer(c) {
		api, url, err := remote.Connect(cmd)
		if err != nil {
			return "", nil, err
		}
		announce(cmd, doing, campaigns, "the engine and the ledger of the server at "+url)
		// Explain returns nil for nil.
		result, err := there(ctx, api)
		return url, &result, remote.Explain(url, err)
	}
	// The memory engine makes its journal at its first start, Redis has no file.
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
		// A database that holds something else must not get tables from a look at it.
		c.Migrate = false
	}
	log, err := c.Logger(cmd.ErrOrStderr())
	if err != nil {
		return "", nil, err
	}
	engine := c.EnginePlace()
	if !c.OnRedis() {
		engine = "memory with its journal " + c.JournalPlace()
	}
	nd, err := store.OpenNode(ctx, c, log, nil, "ask that server with --url and --admin-key, or stop it")
	if err != nil {
		return "", nil, err
	}
	// Ctrl-C must not keep the node from giving its leases and its journal back.
	defer func() { err = errors.Join(err, nd.Close(context.WithoutCancel(ctx))) }()
	announce(cmd, doing, campaigns, "engine "+engine+", ledger "+sqlledger.Place(c.LedgerAt()))
	r, err = here(ctx, nd.Service)
	return c.Place(), r, err
}

// announce tells people what is compared or repaired, and where. JSON has it in its own words.
func announce(cmd *cobra.Command, doing string, campaigns []string, where string) {
	what := "all campaigns"
	if len(campaigns) > 0 {
		what = strings.Join(campaigns, ", ")
	}
	if !cli.WantsJSON(cmd) {
		cmd.PrintErrf("dibs: %s %s: %s\n", doing, cli.Plain(what), where)
	}
}

// asksServer reports whether the user means a server, and not a folder. Flags decide, if there are
// any: the environment may be there for other verbs. Opening the files beside a server that the user
// did not mean, or the reverse, would judge the wrong campaigns.
func asksServer(c *config.Config) bool {
	if c.ByFlag("url") || c.ByFlag("data") || c.ByFlag("ledger") || c.ByFlag("engine") {
		return c.ByFlag("url")
	}
	return c.Given("url")
}

// reportTable shows every promise of every campaign, a row for each. Numbers are units of stock.
func reportTable(r *audit.Report) *cli.Table {
	t := cli.NewTable("CAMPAIGN", "STOCK", "GRANTED", "LEFT", "CLAIMS", "PROMISE", "HELD", "DETAIL")
	for _, c := range r.Campaigns {
		cells := []any{c.CampaignID, c.Stock, c.Granted, c.Remaining, c.Claims}
		for _, promise := range c.Promises {
			held := "yes"
			if !promise.Held {
				held = "NO"
			}
			t.Add(slices.Concat(cells, []any{promise.Promise, held, promise.Detail})...)
			// Only the first row of a campaign has its numbers.
			cells = []any{"", "", "", "", ""}
		}
	}
	return t
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/sqlledger"
)

func newVerifyCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "verify [CAMPAIGN…]",
		Short: "Compare engine and ledger, promise by promise; exit 1 on a difference",
		Long: `Compare engine and ledger, campaign by campaign, promise by promise. With --url
the running server there does it; without, the engine and the ledger are opened,
beside the nodes on Redis, or instead of the one server on the memory engine. What was granted and not settled yet is settled first.`,
		Example: `  dibs verify --data /var/lib/dibs
  dibs verify --url http://127.0.0.1:8080 --admin-key "$DIBS_ADMIN_KEY" phone-noon`,
		RunE: func(cmd *cobra.Command, args []string) error {
			from, report, err := verify(cmd, args)
			if err != nil {
				return err
			}
			t := reportTable(report)
			if err := show(cmd, output, report, &t); err != nil {
				return err
			}
			if !report.OK {
				return fmt.Errorf("a promise is broken in %s", from)
			}
			if output == outputTable {
				cmd.Printf("\n%s\n", paintFor(cmd.OutOrStdout()).green(fmt.Sprintf("every promise holds, campaigns verified: %d", len(report.Campaigns))))
			}
			return nil
		},
	}
	addSettings(cmd, storeKeys, clientKeys, logKeys, []string{"migrate"})
	addOutput(cmd, &output)
	return cmd
}

// verify returns the report and where it comes from.
func verify(cmd *cobra.Command, campaigns []string) (from string, r *dibs.Report, err error) {
	c, err := loadConfig(cmd, storeRules)
	if err != nil {
		return "", nil, err
	}
	if asksServer(c) {
		return verifyServer(cmd, campaigns)
	}
	// The memory engine makes its journal before anything can be verified.
	first := c.journal()
	if c.onRedis() {
		first = c.ledger()
	}
	found, err := exists(first)
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
	log, err := newLogger(cmd, c)
	if err != nil {
		return "", nil, err
	}
	ctx := cmd.Context()
	node, err := openNode(ctx, c, log, "ask that server with --url and --admin-key, or stop it")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, node.Close(context.WithoutCancel(ctx))) }()
	r, err = node.Service.Verify(ctx, campaigns...)
	return c.store(), r, err
}

// asksServer reports whether a server was meant, or a folder: a flag says so
// more clearly than an environment that is there for other verbs too.
func asksServer(c *config) bool {
	byFlag := func(key string) bool { return strings.HasPrefix(c.values.Of(key).From, "flag ") }
	if byFlag("url") || byFlag("data") || byFlag("ledger") || byFlag("engine") {
		return byFlag("url")
	}
	return c.given("url")
}

// verifyServer lets a server verify itself.
func verifyServer(cmd *cobra.Command, campaigns []string) (from string, r *dibs.Report, err error) {
	c, api, err := connect(cmd)
	if err != nil {
		return "", nil, err
	}
	report, err := api.Verify(cmd.Context(), campaigns...)
	if err != nil {
		return "", nil, explainCall(c, err)
	}
	return c.URL, &report, nil
}

// reportTable lists every promise of every campaign.
func reportTable(r *dibs.Report) table {
	t := table{head: []string{"CAMPAIGN", "STOCK", "GRANTED", "LEFT", "CLAIMS", "PROMISE", "HELD", "DETAIL"}}
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
			t.add(slices.Concat(cells, []string{promise.Promise, held, promise.Detail})...)
			// The campaign's numbers stand on its first line alone.
			cells = []string{"", "", "", "", ""}
		}
	}
	return t
}

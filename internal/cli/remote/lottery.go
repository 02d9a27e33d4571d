package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/gate"
)

// newLotteryCommand returns the verbs on /v1/campaigns/{id}/lottery. show and verify read what is
// public, so that every user can check: they need no admin key.
func newLotteryCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "lottery",
		Short: "Show a lottery, tell its public value, verify its draw",
		Long: `Show a lottery of the server at --url; tell the public value that it waits for, with
the API key --admin-key or $DIBS_ADMIN_KEY; and verify its draw. show and verify read
what everybody can see, and need no key. docs/LOTTERY.md has the rule.`,
	}, public(byID("show ID", "Show a lottery and what it has fixed so far",
		of(func(c *client.Client) one[gate.LotteryView] { return c.Lotteries.Get }), lotteryTable)), newPublicValueCommand(), newLotteryVerifyCommand())
}

// newPublicValueCommand tells the public value that the draw waits for, such as a later index of an
// exchange: nobody knew it when the list of entries closed. The same value may be told again; the
// server refuses another one, or the operator could choose among draws.
func newPublicValueCommand() *cobra.Command {
	return ask(&cobra.Command{Use: "public-value ID VALUE", Short: "Tell the public value that was named beforehand, once", Args: cobra.ExactArgs(2)},
		func(ctx context.Context, s *session) (gate.LotteryView, error) {
			return s.Lotteries.TellPublicValue(ctx, s.args[0], s.args[1])
		}, lotteryTable)
}

// lotteryTable shows a lottery's values in the order in which they become known: what is not known
// yet has no row. That order is what makes the draw checkable.
func lotteryTable(v *gate.LotteryView) *cli.Table {
	t := cli.Facts("campaign", v.CampaignID, "state", v.State, "rule", v.Rule, "winners", v.Winners,
		"closes", v.ClosesAt.Format(time.RFC3339), "seed_hash", v.SeedHash, "committed", v.CommittedAt.Format(time.RFC3339))
	if v.PublicValueIs == "" {
		t.Add("public value", "none was named: users have to trust the operator")
	} else {
		t.Add("public value", v.PublicValueIs)
		t.Field("its format", v.PublicValueFormat)
	}
	if v.ListHash != "" {
		t.Add("entries", v.Entries)
		t.Add("list_hash", v.ListHash)
	}
	if v.PublicValue != nil {
		t.Add("it is", *v.PublicValue)
	}
	if v.DrawnAt != nil {
		t.Add("seed", v.Seed)
		t.Add("key", v.Key)
		t.Add("cutoff", v.Cutoff)
		t.Add("drawn", v.DrawnAt.Format(time.RFC3339))
	}
	return t
}

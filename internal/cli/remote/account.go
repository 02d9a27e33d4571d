package remote

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newAccountCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "account",
		Short: "Put money on a user's account, and show what is there",
		Long: `Put money on a user's account, and show what is there: on the server at --url,
with the API key --admin-key or $DIBS_ADMIN_KEY. Accounts pay for the red packets
that users send, and hold what they were given.`,
	})
	cmd.AddCommand(newDepositCommand(), newAccountShowCommand())
	return cmd
}

func newDepositCommand() *cobra.Command {
	var output string
	d := dibs.DepositSpec{}
	cmd := &cobra.Command{
		Use:     "deposit USER --amount AMOUNT --ref NAME",
		Short:   "Note money that came in from outside for a user",
		Example: `  dibs account deposit host --amount 10000000 --ref transfer-1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, replayed, err := api.Deposit(cmd.Context(), args[0], d)
			if err != nil {
				return ExplainCall(c, err)
			}
			if replayed {
				fmt.Fprintln(cmd.ErrOrStderr(), "dibs: this had been done before; nothing changed")
			}
			t := balanceTable(v.Balances)
			return cli.Show(cmd, output, v, &t)
		},
	}
	cmd.Flags().Int64Var(&d.Amount.Amount, "amount", 0, "What came in, in minor units, `AMOUNT` (required)")
	cmd.Flags().StringVar(&d.Amount.Currency, "currency", "CNY", "Its currency, a `CODE` such as CNY")
	cmd.Flags().StringVar(&d.Ref, "ref", "", "The deposit's own `NAME`: the same one again changes nothing (required)")
	return addCall(cmd, &output)
}

func newAccountShowCommand() *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use:   "show USER",
		Short: "Show a user's balances and the newest entries",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, err := api.Account(cmd.Context(), args[0])
			if err != nil {
				return ExplainCall(c, err)
			}
			entries, err := api.AccountEntries(cmd.Context(), args[0], dibs.Page{})
			if err != nil {
				return ExplainCall(c, err)
			}
			t := balanceTable(v.Balances)
			for _, e := range entries.Items {
				t.Add("entry", strings.Join(strings.Fields(fmt.Sprintf("%s %s %+d %s %s %s %s",
					cli.Moment(e.At), e.Kind, e.Amount.Amount, e.Amount.Currency, e.CampaignID, e.ClaimID, e.Ref)), " "))
			}
			return cli.Show(cmd, output, struct {
				dibs.BalanceView
				Entries []dibs.PostingView `json:"entries"`
			}{v, entries.Items}, &t)
		},
	}, &output)
}

// balanceTable lists balances.
func balanceTable(balances []dibs.Money) cli.Table {
	t := cli.Table{}
	for _, m := range balances {
		t.Add("balance", strconv.FormatInt(m.Amount, 10)+" "+m.Currency+" (minor units)")
	}
	if len(balances) == 0 {
		t.Add("balance", "nothing yet")
	}
	return t
}

package remote

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/funds"
)

// newAccountCommand returns the verbs on /v1/accounts/{user}.
func newAccountCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "account",
		Short: "Put money on a user's account, and show the balance",
		Long: `Put money on a user's account, and show the balance, on the server at --url with
the API key --admin-key or $DIBS_ADMIN_KEY. An account pays for the red packets
that its user sends, and receives the shares that the user was given.`,
	}, newDepositCommand(), newAccountShowCommand())
}

// newDepositCommand records a deposit. The ref makes it safe to repeat: the server
// knows the deposit again and changes nothing.
func newDepositCommand() *cobra.Command {
	d := funds.DepositSpec{}
	cmd := ask(&cobra.Command{
		Use:     "deposit USER --amount AMOUNT --ref NAME",
		Short:   "Record money that came in from outside for a user",
		Example: `  dibs account deposit host --amount 10000000 --ref transfer-1`,
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) (funds.DepositView, error) {
		v, replayed, err := s.Deposit(ctx, s.args[0], d)
		s.noteReplay(replayed)
		return v, err
	}, func(v *funds.DepositView) *cli.Table { return balanceTable(v.Balances) })
	cmd.Flags().Int64Var(&d.Amount.Amount, "amount", 0, "The `AMOUNT` that came in, in minor units (required)")
	cmd.Flags().StringVar(&d.Amount.Currency, "currency", "CNY", "Its currency, a `CODE` such as CNY")
	cmd.Flags().StringVar(&d.Ref, "ref", "", "The `NAME` of the deposit; a second deposit of this name changes nothing (required)")
	return cmd
}

// account is a user's balances with the newest entries.
type account struct {
	funds.BalanceView
	Entries []funds.PostingView `json:"entries"`
}

// newAccountShowCommand shows an account by two calls, so that an entry may be newer than
// the balances above it.
func newAccountShowCommand() *cobra.Command {
	return ask(&cobra.Command{
		Use:   "show USER",
		Short: "Show a user's balances and the newest entries",
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) (a account, err error) {
		if a.BalanceView, err = s.Account(ctx, s.args[0]); err != nil {
			return a, err
		}
		entries, err := s.AccountEntries(ctx, s.args[0], dibs.Page{})
		a.Entries = entries.Items
		return a, err
	}, func(a *account) *cli.Table {
		t := balanceTable(a.Balances)
		for _, e := range a.Entries {
			line := fmt.Sprintf("%s %s %+d %s %s %s %s", cli.Moment(e.At), e.Kind, e.Amount.Amount, e.Amount.Currency, e.CampaignID, e.ClaimID, e.Ref)
			t.Add("entry", strings.Join(strings.Fields(line), " "))
		}
		return t
	})
}

// balanceTable lists balances.
func balanceTable(balances []dibs.Money) *cli.Table {
	t := cli.NewTable()
	for _, m := range balances {
		t.Add("balance", amountText(&m)+" (minor units)")
	}
	if len(balances) == 0 {
		t.Add("balance", "nothing yet")
	}
	return t
}

// amountText shows an amount in minor units; nothing for none.
func amountText(m *dibs.Money) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%d %s", m.Amount, m.Currency)
}

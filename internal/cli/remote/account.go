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

// newDepositCommand records a deposit: the money has come in already, and dibs moves none from
// outside. The ref makes it safe to repeat: the server recognises the deposit by it and changes
// nothing; the verb says so and exits with 0. The server refuses an amount that is not positive and
// a missing ref.
func newDepositCommand() *cobra.Command {
	d, m := funds.DepositSpec{}, moneyFlags{}
	cmd := ask(&cobra.Command{
		Use:     "deposit USER --amount AMOUNT --ref NAME",
		Short:   "Record money that came in from outside for a user",
		Example: `  dibs account deposit host --amount 100,000.00CNY --ref transfer-1`,
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) (v funds.DepositView, err error) {
		amount, err := m.value(s.cmd)
		if err != nil {
			return v, err
		}
		d.Amount = *amount
		v, replayed, err := s.Accounts.Deposit(ctx, s.args[0], d)
		s.noteReplay(replayed)
		return v, err
	}, func(v *funds.DepositView) *cli.Table { return balanceTable(v.Balances) })
	// An account has a balance in each currency, so a wrong currency is a wrong balance.
	m.add(cmd, "amount", "The `AMOUNT` that came in, such as 12.50CNY (required)", "CNY")
	cmd.Flags().StringVar(&d.Ref, "ref", "", "The `NAME` of the deposit; a second deposit of this name changes nothing (required)")
	return cli.Require(cmd, "amount", "ref")
}

// account is a user's balances with the newest entries.
type account struct {
	funds.BalanceView
	Entries []funds.PostingView `json:"entries"`
}

// newAccountShowCommand shows an account by two calls, so an entry may be newer than the balances
// above it. It shows one page of entries, the newest: an account may have any number.
func newAccountShowCommand() *cobra.Command {
	return ask(&cobra.Command{
		Use:   "show USER",
		Short: "Show a user's balances and the newest entries",
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) (a account, err error) {
		if a.BalanceView, err = s.Accounts.Get(ctx, s.args[0]); err != nil {
			return a, err
		}
		entries, err := s.Accounts.Entries(ctx, s.args[0], dibs.Page{})
		a.Entries = entries.Items
		return a, err
	}, func(a *account) *cli.Table {
		t := balanceTable(a.Balances)
		for _, e := range a.Entries {
			// An entry has a campaign and a claim, or a ref; Fields removes the gaps of what it lacks.
			line := fmt.Sprintf("%s %s %s %s %s %s", cli.Moment(e.At), e.Kind, signedText(dibs.Money(e.Amount)), e.CampaignID, e.ClaimID, e.Ref)
			t.Add("entry", strings.Join(strings.Fields(line), " "))
		}
		return t
	})
}

// balanceTable lists balances, one for each currency that the user ever had.
func balanceTable(balances []dibs.Money) *cli.Table {
	t := cli.NewTable()
	for _, m := range balances {
		t.Add("balance", amountText(&m))
	}
	// A user without an account is no error: they have had no money yet.
	if len(balances) == 0 {
		t.Add("balance", "nothing yet")
	}
	return t
}

// signedText shows what an entry adds to a balance, or takes from it.
func signedText(m dibs.Money) string {
	if m.Amount < 0 {
		return amountText(&m)
	}
	return "+" + amountText(&m)
}

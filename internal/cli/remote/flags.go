package remote

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
)

// moneyFlags are an amount with its currency: a flag that has a name, and
// --currency.
type moneyFlags struct {
	name string
	dibs.Money
}

// add adds the flags to a verb.
func (m *moneyFlags) add(cmd *cobra.Command, name, usage string) {
	m.name = name
	cmd.Flags().Int64Var(&m.Amount, name, 0, usage)
	cmd.Flags().StringVar(&m.Currency, "currency", "", "Its currency, a `CODE` such as CNY")
}

// value returns the amount; nil when neither flag was given.
func (m *moneyFlags) value(cmd *cobra.Command) (*dibs.Money, error) {
	amount, currency := cmd.Flags().Changed(m.name), cmd.Flags().Changed("currency")
	if amount != currency {
		return nil, cli.Usagef("--%s and --currency belong together", m.name)
	}
	if !amount {
		return nil, nil
	}
	return &m.Money, nil
}

// given returns the value of a flag; nil when the flag was not given, so that the
// server's default holds.
func given[T any](cmd *cobra.Command, flag string, value T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// givenDuration is given for a duration.
func givenDuration(cmd *cobra.Command, flag string, value time.Duration) *dibs.Duration {
	return given(cmd, flag, dibs.Duration(value))
}

package remote

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestMoneyFlags: an amount needs a currency, and names one at most.
func TestMoneyFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "none"},
		{[]string{"--price", "0", "--currency", "CNY"}, "0.00 CNY"},
		{[]string{"--price", "12.50CNY"}, "12.50 CNY"},
		{[]string{"--price", "5EUR", "--currency", "CNY"}, "--price is in EUR and --currency says CNY: leave --currency out"},
		{[]string{"--price", "5"}, `--price must name its currency, such as 12.50CNY, not "5"`},
		{[]string{"--currency", "CNY"}, "--currency belongs to --price, such as --price 12.50CNY"},
	} {
		var m moneyFlags
		cmd := &cobra.Command{}
		m.add(cmd, "price", "The `AMOUNT`", "")
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		got := "none"
		if v, err := m.value(cmd); err != nil {
			got = err.Error()
		} else if v != nil {
			got = amountText(v)
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.args, got, c.want)
		}
	}
}

// TestGiven tells a zero that the user gave from a flag that was left out.
func TestGiven(t *testing.T) {
	cmd := &cobra.Command{}
	n := cmd.Flags().Int("n", 3, "")
	d := cmd.Flags().Duration("d", time.Hour, "")
	if given(cmd, "n", *n) != nil || givenDuration(cmd, "d", *d) != nil {
		t.Error("defaults count as given")
	}
	if err := cmd.ParseFlags([]string{"--n", "0", "--d", "0s"}); err != nil {
		t.Fatal(err)
	}
	if v := given(cmd, "n", *n); v == nil || *v != 0 {
		t.Errorf("%v", v)
	}
	if v := givenDuration(cmd, "d", *d); v == nil || *v != 0 {
		t.Errorf("%v", v)
	}
}

package remote

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
)

// moneyFlags are an amount of money: a flag that has a name, and --currency for an amount that does
// not name its own. A verb has one amount at most, or two flags would be called --currency.
type moneyFlags struct {
	name, text, currency string
}

// add adds the flags to a verb. usage says what the amount is, and what holds without it. assumed is
// the currency when none is given; empty when one has to be.
func (m *moneyFlags) add(cmd *cobra.Command, name, usage, assumed string) {
	m.name = name
	cmd.Flags().StringVar(&m.text, name, "", usage)
	cmd.Flags().StringVar(&m.currency, "currency", assumed, "The currency, a `CODE` such as CNY, of an amount that does not name it; a whole number is of minor units then, so that 999 beside CNY is 9.99 CNY")
}

// value returns the amount; nil when it was not given. The server judges its size.
func (m *moneyFlags) value(cmd *cobra.Command) (*dibs.Money, error) {
	if !cmd.Flags().Changed(m.name) {
		if cmd.Flags().Changed("currency") {
			return nil, cli.Usagef("--currency belongs to --%s, such as --%s 12.50%s", m.name, m.name, m.currency)
		}
		return nil, nil
	}
	amount, err := parseMoney("--"+m.name, m.text, m.currency)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("currency") && amount.Currency != m.currency {
		return nil, cli.Usagef("--%s is in %s and --currency says %s: leave --currency out", m.name, amount.Currency, m.currency)
	}
	amount.warn(cmd, m.name, m.text)
	return &amount.Money, nil
}

// warn says how a whole number without a currency was read.
func (a *amount) warn(cmd *cobra.Command, flag, text string) {
	if a.bare && a.Amount > 0 && a.Decimals() > 0 {
		cmd.PrintErrf("dibs: --%s %s is read as %s, since a whole number without its currency is of minor units; write %s%s if you mean that much\n",
			flag, text, amountText(&a.Money), text, a.Currency)
	}
}

// amount is money as it was read. bare says that it was written as minor units: whole, with the
// currency in a flag of its own, as all amounts were once.
type amount struct {
	dibs.Money
	bare bool
}

// moneyForm has the forms of an amount: 12.50CNY, 12.50 CNY, CNY 12.50, 100,000.00CNY, and 12.50 or
// 1250 with the currency elsewhere.
var moneyForm = regexp.MustCompile(`^([A-Za-z]{3})?\s*([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.([0-9]+))?\s*([A-Za-z]{3})?$`)

// parseMoney reads an amount as people write it. An amount with its currency, or with a point, is of
// the currency's main unit; a whole number beside --currency is of minor units: that is what it
// meant before amounts could be written otherwise, and scripts rely on it.
func parseMoney(flag, text, currency string) (a amount, err error) {
	wrong := func(why string) (amount, error) {
		return amount{}, cli.Usagef("%s %s, not %q", flag, why, text)
	}
	form := moneyForm.FindStringSubmatch(strings.TrimSpace(text))
	if form == nil {
		return wrong("must be an amount of money, such as 12.50CNY")
	}
	own := strings.ToUpper(form[1] + form[4])
	switch {
	case len(own) > 3:
		return wrong("must name one currency, such as 12.50CNY")
	case own == "" && currency == "":
		return wrong("must name its currency, such as 12.50CNY")
	}
	a.Currency = cmp.Or(own, currency)
	digits, fraction := strings.ReplaceAll(form[2], ",", ""), form[3]
	decimals := a.Decimals()
	if a.bare = own == "" && fraction == "" && !strings.Contains(form[2], ","); a.bare {
		decimals = 0
	}
	if len(fraction) > decimals {
		return wrong(fmt.Sprintf("must have at most %s behind the point in %s", cli.Count(int64(decimals), "digit"), a.Currency))
	}
	a.Amount, err = strconv.ParseInt(digits+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil {
		a.Amount = math.MaxInt64
		return wrong("must be smaller")
	}
	return a, nil
}

// amountText shows an amount as people write it, 1,234.50 CNY; an empty text for none.
func amountText(m *dibs.Money) string {
	if m == nil {
		return ""
	}
	return moneyDigits(*m) + " " + m.Currency
}

// moneyDigits is an amount without its currency, with commas.
func moneyDigits(m dibs.Money) string {
	sign, size := "", m
	if m.Amount < 0 {
		sign, size.Amount = "-", -m.Amount
	}
	whole, fraction, point := strings.Cut(size.Digits(), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return m.Digits()
	}
	text := sign + humanize.Comma(n)
	if point {
		text += "." + fraction
	}
	return text
}

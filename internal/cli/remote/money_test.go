package remote

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
)

func TestParseMoney(t *testing.T) {
	for _, test := range []struct {
		text, currency string
		want           int64
		of             string
	}{
		{"12.50CNY", "", 1250, "CNY"}, {"12.5 cny", "", 1250, "CNY"}, {"CNY 12.50", "", 1250, "CNY"}, {"12CNY", "", 1200, "CNY"},
		{"100,000.00 CNY", "", 10_000_000, "CNY"}, {"9.99", "CNY", 999, "CNY"}, {"999", "CNY", 999, "CNY"}, {"1,000", "CNY", 100_000, "CNY"},
		{"500JPY", "", 500, "JPY"}, {"500", "JPY", 500, "JPY"}, {"1.234KWD", "", 1234, "KWD"}, {"0CNY", "", 0, "CNY"}, {"12.50EUR", "CNY", 1250, "EUR"},
		{" 12.50CNY ", "CNY", 1250, "CNY"},
	} {
		if a, err := parseMoney("--price", test.text, test.currency); err != nil || a.Money != (dibs.Money{Amount: test.want, Currency: test.of}) {
			t.Errorf("%q %s: %+v, %v", test.text, test.currency, a, err)
		}
	}
	for text, why := range map[string]string{
		"9.99": "must name its currency", "9.999CNY": "must have at most 2 digits behind the point in CNY, not", "5.5JPY": "must have at most 0 digits behind the point in JPY, not", "": "must be an amount", "-5CNY": "must be an amount",
		"1e5CNY": "must be an amount", "10,00CNY": "must be an amount", "5CNYX": "must be an amount", "CNY5CNY": "one currency", "99999999999999999999CNY": "must be smaller, not",
		"12.50.1CNY": "must be an amount", "free": "must be an amount",
	} {
		if a, err := parseMoney("--price", text, ""); err == nil || !strings.Contains(err.Error(), why) || strings.HasSuffix(why, ", not") == strings.Contains(err.Error(), "12.50CNY") {
			t.Errorf("%q: %+v, %v", text, a, err)
		}
	}
}

// What is read is shown again as it was written, but for commas.
func TestAmountText(t *testing.T) {
	for want, m := range map[string]dibs.Money{
		"1,234.50 CNY": {Amount: 123450, Currency: "CNY"}, "500 JPY": {Amount: 500, Currency: "JPY"}, "0.05 CNY": {Amount: 5, Currency: "CNY"},
		"1,000,000.000 KWD": {Amount: 1_000_000_000, Currency: "KWD"}, "-9.99 CNY": {Amount: -999, Currency: "CNY"},
	} {
		if got := amountText(&m); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
		if m.Amount < 0 {
			continue
		}
		if a, err := parseMoney("--x", want, ""); err != nil || a.Money != m {
			t.Errorf("%q: %+v, %v", want, a, err)
		}
	}
	if got := amountText(nil); got != "" {
		t.Errorf("no amount: %q", got)
	}
}

package dibs

import "testing"

// Amounts are written as their currency is: with two decimals, none, or more.
func TestMoneyDigits(t *testing.T) {
	for _, c := range []struct {
		money Money
		want  string
	}{
		{Money{99_900, "CNY"}, "999.00"},
		{Money{5, "CNY"}, "0.05"},
		{Money{0, "EUR"}, "0.00"},
		{Money{500, "JPY"}, "500"},
		{Money{0, "KRW"}, "0"},
		{Money{1, "KWD"}, "0.001"},
		{Money{12_345, "CLF"}, "1.2345"},
		{Money{MaxMinor - 1, "USD"}, "90071992547409.91"},
		{Money{Amount: 5}, "0.05"},
	} {
		if got := c.money.Digits(); got != c.want {
			t.Errorf("%+v is written %q, want %q", c.money, got, c.want)
		}
	}
}

package dibs

import (
	"fmt"
	"slices"
	"strings"
)

// MaxMinor bounds every amount: above 2^53 a double no longer holds each
// integer, and JSON clients and Lua both count in doubles.
const MaxMinor int64 = 1 << 53

// Money is an amount in integer minor units (fen, cents) of one currency.
type Money struct {
	// Amount is in minor units, 0 ≤ Amount < MaxMinor.
	Amount int64 `json:"amount"`
	// Currency is an ISO 4217 code, `CNY`.
	Currency string `json:"currency"`
}

// decimals has the currencies of ISO 4217 whose digits behind the point are not
// two.
var decimals = map[string]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0,
	"RWF": 0, "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
	"CLF": 4, "UYW": 4,
}

// Decimals is how many of the amount's digits stand behind the point, by ISO
// 4217: 2 for CNY, 0 for JPY, 3 for KWD.
func (m Money) Decimals() int {
	if d, ok := decimals[m.Currency]; ok {
		return d
	}
	return 2
}

// Digits writes the amount as people do, `999.00` of CNY and `500` of JPY.
func (m Money) Digits() string {
	d := m.Decimals()
	text := fmt.Sprintf("%0*d", d+1, m.Amount)
	if d == 0 {
		return text
	}
	return text[:len(text)-d] + "." + text[len(text)-d:]
}

// Faults reports what is wrong with m, found at the JSON pointer field.
func (m Money) Faults(field string) []Fault {
	return slices.Concat(
		within(field+"/amount", m.Amount, 0, MaxMinor-1), unless(isCurrency(m.Currency), field+"/currency", badCurrency),
	)
}

var badCurrency = Text{"must be three capital letters, such as CNY", "必须是三个大写字母，例如 CNY"}

func isCurrency(s string) bool {
	return len(s) == 3 && !strings.ContainsFunc(s, func(r rune) bool { return r < 'A' || r > 'Z' })
}

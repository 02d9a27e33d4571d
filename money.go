package dibs

import (
	"fmt"
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

// Decimals is how many of the amount's digits stand behind the point, by ISO
// 4217: 2 for CNY, 0 for JPY, 3 for KWD.
func (m Money) Decimals() int {
	switch {
	case strings.Contains("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF", m.Currency):
		return 0
	case strings.Contains("BHD IQD JOD KWD LYD OMR TND", m.Currency):
		return 3
	case strings.Contains("CLF UYW", m.Currency):
		return 4
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

// faults reports what is wrong with m, found at the JSON pointer field.
func (m Money) faults(field string) []Fault {
	var fs []Fault
	if m.Amount < 0 || m.Amount >= MaxMinor {
		fs = append(fs, Fault{field + "/amount", Textf("must be from 0 to %d", "必须在 0 到 %d 之间", MaxMinor-1)})
	}
	if !isCurrency(m.Currency) {
		fs = append(fs, Fault{field + "/currency", badCurrency})
	}
	return fs
}

var badCurrency = Text{"must be three capital letters, such as CNY", "必须是三个大写字母,例如 CNY"}

func isCurrency(s string) bool {
	if len(s) != 3 {
		return false
	}
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}

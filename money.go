package dibs

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

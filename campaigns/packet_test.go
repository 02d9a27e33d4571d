package campaigns

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
)

// FuzzParseShare: what is read as a share is one, and is written as it was; no
// amount is read that Money could not hold.
func FuzzParseShare(f *testing.F) {
	for _, seed := range []string{"1:1", "17:250", "1:0", "1:-5", "1:+5", "1: 5", ":5", "1:", "1", "a:b:5", "1:9007199254740991", "1:9007199254740992", "1:99999999999999999999", "1:007"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		id, amount, ok := dibs.ParseShare(value)
		if !ok {
			return
		}
		if amount < 1 || amount >= dibs.MaxMinor || id == "" || strings.Contains(id, ":") {
			t.Errorf("%q is read as share %q of %d", value, id, amount)
		}
		if again := ShareValue(id, amount); again != value {
			t.Errorf("%q is read as what is written %q", value, again)
		}
	})
}

package httpapi

import (
	"strconv"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/tokens"
)

// The two benchmarks show what remembering verified tokens saves, and what it
// costs where nobody comes twice.
func benchTokens(b *testing.B, distinct int, remember bool) {
	secret := []byte("a secret of the tests, 32 bytes+")
	u, err := newUserTokens(tokens.OfSecret(secret, time.Now), false, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	all := make([]string, distinct)
	for i := range all {
		if all[i], err = IssueToken(secret, "user-"+strconv.Itoa(i), time.Hour); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		token := all[i%distinct]
		if remember {
			if _, ok := u.verify(token); !ok {
				b.Fatal("refused")
			}
		} else if _, _, err := u.users.Verify(token); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTokenVerified(b *testing.B)   { benchTokens(b, 1000, false) }
func BenchmarkTokenRemembered(b *testing.B) { benchTokens(b, 1000, true) }
func BenchmarkTokenNew(b *testing.B)        { benchTokens(b, 300_000, true) }

package httpapi

import (
	"strconv"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/tokens"
)

// The two benchmarks show what remembering verified tokens saves, and what it
// costs where no user comes twice.
func benchTokens(b *testing.B, distinct int, remember bool) {
	secret := []byte("a secret of the tests, 32 bytes+")
	u, err := newUserTokens(tokens.OfSecret(secret, time.Now), nil, false, time.Now)
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
		} else if _, err := u.describe(token); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTokenVerified(b *testing.B)   { benchTokens(b, 1000, false) }
func BenchmarkTokenRemembered(b *testing.B) { benchTokens(b, 1000, true) }
func BenchmarkTokenNew(b *testing.B)        { benchTokens(b, 300_000, true) }

// slowChecks counts the signatures that are checked.
type slowChecks struct{ n int }

func (c *slowChecks) Verify(token string) (string, time.Time, error) {
	c.n++
	return "u" + token[len(token)-1:], time.Now().Add(time.Hour), nil
}

// However many requests carry a token, its signature is checked once.
func TestSignaturesAreCheckedOnce(t *testing.T) {
	checks := &slowChecks{}
	u, err := newUserTokens(checks, nil, false, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	const tokens = 8
	for i := range 1000 * tokens {
		token := "eyJ.eyJ." + string(rune('0'+i%tokens))
		if v, ok := u.verify(token); !ok || v.User != "u"+token[len(token)-1:] {
			t.Fatalf("%s: %+v, %v", token, v, ok)
		}
	}
	if checks.n != tokens {
		t.Errorf("%d signatures were checked for %d tokens", checks.n, tokens)
	}
}

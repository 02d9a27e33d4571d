package tokens_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/tokens"
)

// FuzzToken: whatever a client sends, it is the one token that was signed, or worth nothing.
func FuzzToken(f *testing.F) {
	// The processes of a run have one token and one time.
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	good, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "42", "exp": noon.Add(24 * time.Hour).Unix()}).SignedString([]byte(secret))
	if err != nil {
		f.Fatal(err)
	}
	head, rest, _ := strings.Cut(good, ".")
	for _, seed := range []string{good, "", ".", "..", "...", head, head + "." + rest[:len(rest)-1], "eyJhbGciOiJub25lIn0." + rest, good + "=", "dev_42"} {
		f.Add(seed)
	}
	v := tokens.OfSecret([]byte(secret), func() time.Time { return noon })
	f.Fuzz(func(t *testing.T, token string) {
		is, err := v.VerifyToken(token)
		switch {
		case err == nil && token != good:
			// Base64 has several spellings of a last character; the bytes signed are the same.
			if !strings.HasPrefix(token, good[:strings.LastIndexByte(good, '.')+1]) {
				t.Fatalf("%q is a token of %+v", token, is)
			}
		case err == nil && (is.User != "42" || !dibs.IsID(is.User)):
			t.Fatalf("%q is a token of %+v", token, is)
		}
	})
}

// FuzzJWKS: whatever an issuer's address answers, no token is good that none of its keys
// has signed, and the verifier opens.
func FuzzJWKS(f *testing.F) {
	for _, seed := range []string{
		`{"keys":[]}`, `{}`, `[]`, ``, `{"keys":[{"kty":"oct","k":"YSBzZWNyZXQgb2YgdGhlIHRlc3RzLCAzMiBieXRlcys"}]}`,
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"1"}]}`, `{"kty":"RSA","n":"","e":""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			// A client that left is no fault of the document.
			_, _ = w.Write(document)
		}))
		defer server.Close()
		v, err := tokens.Open(t.Context(), tokens.Config{JWKS: server.URL, Refresh: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		forged := signed(t, jwt.SigningMethodHS256, []byte(secret), "1")
		if is, err := v.VerifyToken(forged); err == nil {
			t.Fatalf("with %q a token by a secret is one of %+v", document, is)
		}
	})
}

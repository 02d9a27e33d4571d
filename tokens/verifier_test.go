package tokens_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/lestrrat-go/jwx/v3/jwk"

	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/tokens"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const secret = "a secret of the tests, 32 bytes+"

// issuer is who signs tokens, with a JWKS of its own.
type issuer struct {
	t      *testing.T
	server *httptest.Server
	mu     sync.Mutex
	keys   []jwk.Key
	down   bool
	reads  int
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.reads++
		if i.down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		set := jwk.NewSet()
		for _, k := range i.keys {
			must(t, set.AddKey(k))
		}
		must(t, json.NewEncoder(w).Encode(set))
	}))
	t.Cleanup(i.server.Close)
	return i
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// publish makes the JWKS list these keys, each a public one with its id and
// what else is said of it.
func (i *issuer) publish(keys ...jwk.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

func (i *issuer) set(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

func (i *issuer) asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reads
}

func public(t *testing.T, raw any, fields map[string]any) jwk.Key {
	t.Helper()
	k, err := jwk.Import(raw)
	must(t, err)
	for name, value := range fields {
		must(t, k.Set(name, value))
	}
	return k
}

// signed makes a token; change edits its claims or header.
func signed(t *testing.T, m jwt.SigningMethod, key any, kid string, change ...func(*jwt.Token)) string {
	t.Helper()
	token := jwt.NewWithClaims(m, jwt.MapClaims{
		"sub": "42", "exp": time.Now().Add(time.Hour).Unix(), "iss": "https://issuer.example", "aud": []string{"dibs"},
	})
	if kid != "" {
		token.Header["kid"] = kid
	}
	for _, f := range change {
		f(token)
	}
	text, err := token.SignedString(key)
	must(t, err)
	return text
}

func claim(name string, value any) func(*jwt.Token) {
	return func(t *jwt.Token) { t.Claims.(jwt.MapClaims)[name] = value }
}

func header(name string, value any) func(*jwt.Token) {
	return func(t *jwt.Token) { t.Header[name] = value }
}

func open(t *testing.T, cfg tokens.Config) *tokens.Verifier {
	t.Helper()
	v, err := tokens.Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(v.Close)
	return v
}

func good(t *testing.T, v *tokens.Verifier, what, token string) {
	t.Helper()
	user, until, err := v.Verify(token)
	if err != nil || user != "42" || time.Until(until) < time.Hour {
		t.Errorf("%s: user %q until %s: %v", what, user, until, err)
	}
}

func bad(t *testing.T, v *tokens.Verifier, what, token string) {
	t.Helper()
	if user, _, err := v.Verify(token); err == nil {
		t.Errorf("%s is taken, for user %q", what, user)
	}
}

// pair are the keys of most tests; making RSA keys is slow.
var pair = sync.OnceValues(func() (*rsa.PrivateKey, *ecdsa.PrivateKey) {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	e, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err, err2); err != nil {
		panic(err)
	}
	return r, e
})

func TestJWKS(t *testing.T) {
	rsaKey, ecKey := pair()
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	i := newIssuer(t)
	i.publish(
		public(t, rsaKey.Public(), map[string]any{"kid": "r", "alg": "RS256", "use": "sig"}),
		public(t, ecKey.Public(), map[string]any{"kid": "e"}),
		public(t, other.Public(), map[string]any{"kid": "for encryption", "use": "enc"}),
		public(t, other.Public(), map[string]any{"kid": "for another algorithm", "alg": "ES384"}),
		public(t, p384.Public(), map[string]any{"kid": "another curve"}),
		public(t, []byte(secret), map[string]any{"kid": "a secret", "alg": "HS256"}),
	)
	v := open(t, tokens.Config{JWKS: i.server.URL, Secrets: [][]byte{[]byte(secret)}, Issuer: "https://issuer.example", Audience: "dibs"})
	hs, rs, es := jwt.SigningMethodHS256, jwt.SigningMethodRS256, jwt.SigningMethodES256
	good(t, v, "RS256", signed(t, rs, rsaKey, "r"))
	good(t, v, "ES256", signed(t, es, ecKey, "e"))
	good(t, v, "ES256 of a key that is not named", signed(t, es, ecKey, ""))
	good(t, v, "HS256", signed(t, hs, []byte(secret), ""))

	der := rsaKey.N.Bytes()
	for what, token := range map[string]string{
		"a key that is not in the set":         signed(t, es, other, ""),
		"a key under another's name":           signed(t, es, other, "e"),
		"a name of another kind":               signed(t, es, ecKey, "r"),
		"a key for encryption":                 signed(t, es, other, "for encryption"),
		"a key for another algorithm":          signed(t, es, other, "for another algorithm"),
		"another curve":                        signed(t, jwt.SigningMethodES384, p384, "another curve"),
		"RS512":                                signed(t, jwt.SigningMethodRS512, rsaKey, "r"),
		"PS256":                                signed(t, jwt.SigningMethodPS256, rsaKey, "r"),
		"HS256 under the public key":           signed(t, hs, der, "r"),
		"alg none":                             signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "e"),
		"another issuer":                       signed(t, es, ecKey, "e", claim("iss", "https://evil.example")),
		"another audience":                     signed(t, es, ecKey, "e", claim("aud", "shop")),
		"no audience":                          signed(t, es, ecKey, "e", func(t *jwt.Token) { delete(t.Claims.(jwt.MapClaims), "aud") }),
		"expired":                              signed(t, es, ecKey, "e", claim("exp", time.Now().Add(-time.Minute).Unix())),
		"not yet":                              signed(t, es, ecKey, "e", claim("nbf", time.Now().Add(time.Minute).Unix())),
		"without end":                          signed(t, es, ecKey, "e", func(t *jwt.Token) { delete(t.Claims.(jwt.MapClaims), "exp") }),
		"no user":                              signed(t, es, ecKey, "e", claim("sub", "")),
		"a user with a space":                  signed(t, es, ecKey, "e", claim("sub", "4 2")),
		"a key of its own in the token":        signed(t, es, other, "", header("jwk", public(t, other.Public(), nil))),
		"what must be understood":              signed(t, es, ecKey, "e", header("crit", []string{"exp"})),
		"a kid that is no text":                signed(t, es, other, "", header("kid", 7)),
		"garbage":                              "eyJhbGciOiJFUzI1NiJ9.e30.AAAA",
		"a signature cut short":                strings.TrimSuffix(signed(t, es, ecKey, "e"), "A")[:80],
		"an unsigned token with alg in claims": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256"}`)) + ".." + "x",
	} {
		bad(t, v, what, token)
	}
}

// A clock may be off by the leeway, and no more.
func TestLeeway(t *testing.T) {
	_, ecKey := pair()
	i := newIssuer(t)
	i.publish(public(t, ecKey.Public(), map[string]any{"kid": "e"}))
	v := open(t, tokens.Config{JWKS: i.server.URL, Leeway: 2 * time.Minute})
	for _, c := range []struct {
		claim string
		off   time.Duration
		ok    bool
	}{{"exp", -time.Minute, true}, {"exp", -3 * time.Minute, false}, {"nbf", time.Minute, true}, {"nbf", 3 * time.Minute, false}} {
		_, _, err := v.Verify(signed(t, jwt.SigningMethodES256, ecKey, "e", claim(c.claim, time.Now().Add(c.off).Unix())))
		if (err == nil) != c.ok {
			t.Errorf("%s %s from here: %v", c.claim, c.off, err)
		}
	}
}

// A key that is new is found at once, one that is gone is refused after the
// next reading, and what was remembered is known to be old.
func TestRotation(t *testing.T) {
	_, old := pair()
	fresh, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	clock := struct {
		sync.Mutex
		now time.Time
	}{now: time.Now()}
	now := func() time.Time { clock.Lock(); defer clock.Unlock(); return clock.now }
	pass := func(d time.Duration) { clock.Lock(); defer clock.Unlock(); clock.now = clock.now.Add(d) }
	i := newIssuer(t)
	i.publish(public(t, old.Public(), map[string]any{"kid": "old"}))
	v := open(t, tokens.Config{JWKS: i.server.URL, Refresh: time.Hour, Now: now})
	oldToken, freshToken := signed(t, jwt.SigningMethodES256, old, "old"), signed(t, jwt.SigningMethodES256, fresh, "fresh")
	good(t, v, "the only key", oldToken)
	bad(t, v, "a key that nobody knows", freshToken)
	if n := i.asked(); n != 1 {
		t.Errorf("the set was read %d times; right after the first it is not read for an unknown key", n)
	}
	before := v.Epoch()
	i.publish(public(t, old.Public(), map[string]any{"kid": "old"}), public(t, fresh.Public(), map[string]any{"kid": "fresh"}))
	pass(11 * time.Second)
	good(t, v, "a key that is new", freshToken)
	good(t, v, "the key before it", oldToken)
	if v.Epoch() == before {
		t.Error("the keys changed and the epoch did not")
	}
	asked := i.asked()
	for range 50 {
		bad(t, v, "a made-up key", signed(t, jwt.SigningMethodES256, fresh, "made up"))
	}
	if n := i.asked(); n > asked+1 {
		t.Errorf("50 made-up keys had the set read %d times", n-asked)
	}
	// The old key is taken out: an unknown one has the set read, and it is gone.
	before = v.Epoch()
	i.publish(public(t, fresh.Public(), map[string]any{"kid": "fresh"}))
	pass(11 * time.Second)
	bad(t, v, "a made-up key", signed(t, jwt.SigningMethodES256, fresh, "made up"))
	bad(t, v, "a key that was taken out", oldToken)
	good(t, v, "the key that is left", freshToken)
	if v.Epoch() == before {
		t.Error("a key is gone and the epoch did not say so")
	}
	// While it cannot be read, what is known stays.
	i.set(true)
	pass(11 * time.Second)
	bad(t, v, "a made-up key", signed(t, jwt.SigningMethodES256, fresh, "made up"))
	good(t, v, "a known key while the issuer is down", freshToken)
}

// The set is read again by itself, and an issuer that is down at start is found
// when it is up.
func TestReadAgain(t *testing.T) {
	_, ecKey := pair()
	i := newIssuer(t)
	i.set(true)
	v := open(t, tokens.Config{JWKS: i.server.URL, Refresh: 5 * time.Millisecond})
	token := signed(t, jwt.SigningMethodES256, ecKey, "")
	bad(t, v, "a token while no key is known", token)
	i.publish(public(t, ecKey.Public(), nil))
	i.set(false)
	before := v.Epoch()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(time.Millisecond); v.Epoch() == before; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the set was not read again")
		}
	}
	good(t, v, "a token once the issuer is up", token)
}

func TestSecretsRotate(t *testing.T) {
	next := []byte("the next secret, of 32 bytes too")
	v := open(t, tokens.Config{Secrets: [][]byte{[]byte(secret)}})
	before, after := signed(t, jwt.SigningMethodHS256, []byte(secret), ""), signed(t, jwt.SigningMethodHS256, next, "")
	good(t, v, "the first secret", before)
	bad(t, v, "a secret to come", after)
	epoch := v.Epoch()
	v.SetSecrets([][]byte{next, []byte(secret)})
	good(t, v, "the next secret", after)
	good(t, v, "the first beside it", before)
	v.SetSecrets([][]byte{next})
	good(t, v, "the next secret alone", after)
	bad(t, v, "a secret that was taken away", before)
	// The same again changes nothing for those who remember what was verified.
	v.SetSecrets([][]byte{[]byte(string(next))})
	good(t, v, "the next secret, read again", after)
	if v.Epoch() != epoch+2 {
		t.Errorf("the epoch went from %d to %d", epoch, v.Epoch())
	}
	v.SetSecrets(nil)
	bad(t, v, "any token without secrets", after)
}

func TestOpenRefuses(t *testing.T) {
	for _, cfg := range []tokens.Config{
		{}, {JWKS: "issuer.example/keys"}, {JWKS: "http://issuer.example/keys"}, {JWKS: "ftp://127.0.0.1/"}, {JWKS: "https://me:secret@issuer.example/keys"},
	} {
		if v, err := tokens.Open(t.Context(), cfg); err == nil {
			v.Close()
			t.Errorf("%+v was taken", cfg)
		}
	}
}

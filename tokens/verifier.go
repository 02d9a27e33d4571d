package tokens

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dibs-dev/dibs"
)

// DefaultLeeway is how far the clocks of the issuer and of dibs may differ.
const DefaultLeeway = 30 * time.Second

// Config configures a Verifier. Secrets, JWKS or both are required; the zero
// value of any other field means the default named beside it.
type Config struct {
	// Secrets are those of HS256, each good for verifying; at least 32 random
	// bytes are advised.
	Secrets [][]byte
	// JWKS is the address of the issuer's public keys, https:// but for this
	// machine and tests. RSA keys verify RS256, keys on P-256 verify ES256; others
	// are left out.
	JWKS string
	// Refresh is how often the JWKS is read again: a key that was taken out of it
	// is good that long at most, unless it cannot be read. Default 5m. A token with
	// an unknown key has it read at once, every 10s at most.
	Refresh time.Duration
	// Issuer and Audience must be in the token when they are given.
	Issuer, Audience string
	// Leeway is how far the issuer's clock may be off; default DefaultLeeway.
	Leeway time.Duration
	// Client reads the JWKS; default: one that follows no redirects and waits 5s.
	Client *http.Client
	// Logger is told when the JWKS cannot be read; default: nobody.
	Logger *slog.Logger
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// ErrNoUser: the token's subject cannot be a user's id.
var ErrNoUser = errors.New("tokens: the token's subject is not a user id")

// errNoKey: the token is signed by a key that nobody knows.
var errNoKey = errors.New("tokens: no known key has signed the token")

// errCritical: RFC 7515 says to refuse a token whose issuer lists header parameters that
// must be understood, and none of those is understood here.
var errCritical = errors.New("tokens: the token has critical parameters")

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	parser  *jwt.Parser
	secrets atomic.Pointer[jwt.VerificationKeySet]
	keys    *keySet
	epoch   atomic.Uint64
	leeway  time.Duration
}

// Open returns a verifier. With a JWKS it tries to read that first, for a few
// seconds: when it cannot, the verifier works all the same, and reads it as soon
// as it can be read. Close it.
func Open(ctx context.Context, cfg Config) (*Verifier, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Leeway = cmp.Or(cfg.Leeway, DefaultLeeway)
	if len(cfg.Secrets) == 0 && cfg.JWKS == "" {
		return nil, errors.New("tokens: Secrets or JWKS is required")
	}
	v := &Verifier{leeway: cfg.Leeway}
	var methods []string
	if len(cfg.Secrets) > 0 {
		methods = append(methods, jwt.SigningMethodHS256.Alg())
		v.SetSecrets(cfg.Secrets)
	}
	if cfg.JWKS != "" {
		if err := CheckJWKS(cfg.JWKS); err != nil {
			return nil, fmt.Errorf("tokens: JWKS %w", err)
		}
		methods = append(methods, jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg())
		v.keys = newKeySet(&cfg, &v.epoch)
		v.keys.start(ctx)
	}
	v.parser = newParser(&cfg, methods)
	return v, nil
}

// OfSecret returns a verifier of HS256 under one secret. There is nothing to
// close.
func OfSecret(secret []byte, now func() time.Time) *Verifier {
	v := &Verifier{leeway: DefaultLeeway}
	v.SetSecrets([][]byte{secret})
	v.parser = newParser(&Config{Leeway: DefaultLeeway, Now: now}, []string{jwt.SigningMethodHS256.Alg()})
	return v
}

func newParser(cfg *Config, methods []string) *jwt.Parser {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(methods), jwt.WithExpirationRequired(), jwt.WithLeeway(cfg.Leeway), jwt.WithTimeFunc(cfg.Now),
	}
	if cfg.Issuer != "" {
		options = append(options, jwt.WithIssuer(cfg.Issuer))
	}
	if cfg.Audience != "" {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	return jwt.NewParser(options...)
}

// CheckJWKS says what is wrong with the address of a JWKS, as far as it can be
// seen without going there; nil when nothing is.
func CheckJWKS(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("must be an address such as https://issuer.example/.well-known/jwks.json")
	case u.User != nil:
		return errors.New("must not have a password in it")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return errors.New("must be https://: who can change the keys on the way can be any user")
	}
	return nil
}

// SetSecrets replaces the secrets of HS256. Tokens of those that are gone are
// refused from now on. The same ones again are no change: a server reads their file
// once more when it begins to watch it.
func (v *Verifier) SetSecrets(secrets [][]byte) {
	set := &jwt.VerificationKeySet{}
	for _, s := range secrets {
		set.Keys = append(set.Keys, s)
	}
	if before := v.secrets.Load(); before != nil && reflect.DeepEqual(before, set) {
		return
	}
	v.secrets.Store(set)
	v.epoch.Add(1)
}

// Epoch rises whenever secrets or keys have changed: what was verified in an
// earlier one may not be valid any more.
func (v *Verifier) Epoch() uint64 { return v.epoch.Load() }

// Token is what a valid token says.
type Token struct {
	// User is its subject.
	User string
	// ID is its jti, empty without one.
	ID string
	// Issued is its iat, zero without one; Until is when it stops to be valid, zero for a
	// token without end.
	Issued, Until time.Time
}

// Verify returns the user that a token names and when it stops to be valid. Any
// error means that it is not valid. A token with a key that is not known yet may
// wait for the JWKS to be read, for a few seconds.
func (v *Verifier) Verify(token string) (user string, until time.Time, err error) {
	is, err := v.VerifyToken(token)
	return is.User, is.Until, err
}

// VerifyToken is Verify, and returns what else the token says.
func (v *Verifier) VerifyToken(token string) (Token, error) {
	var claims jwt.RegisteredClaims
	if _, err := v.parser.ParseWithClaims(token, &claims, v.key); err != nil {
		return Token{}, err
	}
	if !dibs.IsID(claims.Subject) {
		return Token{}, ErrNoUser
	}
	is := Token{User: claims.Subject, ID: claims.ID, Until: claims.ExpiresAt.Add(v.leeway)}
	if claims.IssuedAt != nil {
		is.Issued = claims.IssuedAt.Time
	}
	return is, nil
}

// key returns the keys that may have signed a token. The kind of a key decides what it
// may verify, never the token alone.
func (v *Verifier) key(t *jwt.Token) (any, error) {
	if _, given := t.Header["crit"]; given {
		return nil, errCritical
	}
	switch t.Method {
	case jwt.SigningMethodHS256:
		set := v.secrets.Load()
		if set == nil || len(set.Keys) == 0 {
			return nil, errNoKey
		}
		return *set, nil
	case jwt.SigningMethodRS256:
		return keyOf[*rsa.PublicKey](v.keys, t)
	case jwt.SigningMethodES256:
		return keyOf[*ecdsa.PublicKey](v.keys, t)
	}
	return nil, errNoKey
}

// keyOf finds a token's key, of one kind. A token that names no key is verified
// by any of the kind.
func keyOf[K any](s *keySet, t *jwt.Token) (any, error) {
	if s == nil {
		return nil, errNoKey
	}
	kid, _ := t.Header["kid"].(string)
	var set jwt.VerificationKeySet
	for _, known := range s.find(kid) {
		if _, ok := known.(K); ok {
			set.Keys = append(set.Keys, known)
		}
	}
	if len(set.Keys) == 0 {
		return nil, errNoKey
	}
	return set, nil
}

// Close stops reading the JWKS.
func (v *Verifier) Close() {
	if v.keys != nil {
		v.keys.close()
	}
}

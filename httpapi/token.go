package httpapi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/maypok86/otter/v2"

	"github.com/dibs-dev/dibs"
)

// Authenticator verifies the tokens of users. Implementations are safe for
// concurrent use.
type Authenticator interface {
	// Verify returns the user that a token names and when it stops to be valid.
	// Any error means that the token is not valid; clients never see it.
	Verify(token string) (user string, until time.Time, err error)
}

// epochs is an Authenticator whose tokens may become invalid before they end. The
// epoch rises then, and tokens that were verified in an earlier one are verified
// again.
type epochs interface{ Epoch() uint64 }

// IssueToken makes an HS256 token for a user, valid from now for ttl.
func IssueToken(secret []byte, user string, ttl time.Duration) (string, error) {
	if !dibs.ValidID(user) {
		return "", fmt.Errorf("issue a token for %q: a user id is 1-64 characters of A-Z a-z 0-9 . _ -", user)
	}
	if len(secret) == 0 {
		return "", errors.New("issue a token: the secret is empty")
	}
	now := time.Now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Subject: user, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
	}).SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("issue a token: %w", err)
	}
	return token, nil
}

// The bounds of the cache of verified tokens: how many, and how many bytes one may
// have. Longer tokens are verified each time.
const (
	cachedTokens   = 1 << 16
	maxCachedToken = 1024
	// devPrefix marks the user tokens of development.
	devPrefix = "dev_"
)

// verified is what a valid token says.
type verified struct {
	user  string
	until time.Time
	epoch uint64
}

// userTokens verifies user tokens and caches the valid ones, since users press the
// button more than once. Invalid tokens are not cached: they could push out the
// valid ones.
type userTokens struct {
	users    Authenticator
	epoch    func() uint64
	allowDev bool
	now      func() time.Time
	known    *otter.Cache[string, verified]
}

// newUserTokens returns what verifies tokens by users, nil for none, and where
// allowDev is set accepts those of development.
func newUserTokens(users Authenticator, allowDev bool, now func() time.Time) (*userTokens, error) {
	known, err := otter.New(&otter.Options[string, verified]{MaximumSize: cachedTokens})
	if err != nil {
		return nil, err
	}
	t := &userTokens{users: users, allowDev: allowDev, now: now, known: known, epoch: func() uint64 { return 0 }}
	if e, ok := users.(epochs); ok {
		t.epoch = e.Epoch
	}
	return t, nil
}

// looksLikeUserToken tells the shapes of user tokens from API keys.
func looksLikeUserToken(token string) bool {
	return strings.HasPrefix(token, devPrefix) || strings.HasPrefix(token, "eyJ") && strings.Count(token, ".") == 2
}

// verify returns what a valid token says. Tokens of development have no end.
func (t *userTokens) verify(token string) (verified, bool) {
	if name, ok := strings.CutPrefix(token, devPrefix); ok {
		return verified{user: name}, t.allowDev && dibs.ValidID(name)
	}
	if t.users == nil {
		return verified{}, false
	}
	// The epoch is read first, so that a change during the verification counts.
	epoch := t.epoch()
	if v, ok := t.known.GetIfPresent(token); ok && v.epoch == epoch && t.now().Before(v.until) {
		return v, true
	}
	user, until, err := t.users.Verify(token)
	if err != nil {
		return verified{}, false
	}
	v := verified{user, until, epoch}
	if len(token) <= maxCachedToken {
		t.known.Set(token, v)
	}
	return v, true
}

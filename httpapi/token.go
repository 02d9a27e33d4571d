package httpapi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/bounded"
	"github.com/dibs-dev/dibs/tokens"
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

// Revoked reports whether a token counts no longer, by its user, its jti (empty without
// one) and when it was issued (zero without that), as access.Revocations does. Each claim
// asks it, so it takes no lock.
type Revoked func(user, id string, issued time.Time) bool

// describer is an Authenticator that says more of a token, as tokens.Verifier does. Without
// it, a token can be revoked by its user alone, whenever it was issued.
type describer interface {
	VerifyToken(token string) (tokens.Token, error)
}

// IssueToken makes an HS256 token for a user, valid from now for ttl.
func IssueToken(secret []byte, user string, ttl time.Duration) (string, error) {
	if !dibs.IsID(user) {
		return "", fmt.Errorf("issue a token for %q: a user id is 1-64 characters of A-Z a-z 0-9 . _ -", user)
	}
	if len(secret) == 0 {
		return "", errors.New("issue a token: the secret is empty")
	}
	now := time.Now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		ID: rand.Text(), Subject: user, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
	}).SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("issue a token: %w", err)
	}
	return token, nil
}

// The bounds of the cache of verified tokens: how many, and how many bytes one may
// have. Longer tokens are verified each time.
// 65,536 tokens of a few hundred bytes take some tens of megabytes.
const (
	cachedTokens   = 1 << 16
	maxCachedToken = 1024
	// devPrefix marks the user tokens of development.
	devPrefix = "dev_"
)

// verified is what a valid token says, and the epoch in which it was valid.
type verified struct {
	tokens.Token
	epoch uint64
}

// userTokens verifies user tokens and caches the valid ones, since users press the
// button more than once. Invalid tokens are not cached: they could push out the
// valid ones.
//
// It is safe for concurrent use: known locks itself. An entry counts only in the
// epoch in which it was verified, before its token ends, and until it is revoked.
type userTokens struct {
	describe func(token string) (tokens.Token, error)
	epoch    func() uint64
	revoked  Revoked
	allowDev bool
	now      func() time.Time
	known    bounded.Cache[string, verified]
}

// newUserTokens returns what verifies tokens by users, nil for none, and where
// allowDev is set accepts those of development.
func newUserTokens(users Authenticator, revoked Revoked, allowDev bool, now func() time.Time) (*userTokens, error) {
	known, err := bounded.New[string, verified](cachedTokens)
	if err != nil {
		return nil, err
	}
	t := &userTokens{revoked: revoked, allowDev: allowDev, now: now, known: known, epoch: func() uint64 { return 0 }}
	if e, ok := users.(epochs); ok {
		t.epoch = e.Epoch
	}
	if d, ok := users.(describer); ok {
		t.describe = d.VerifyToken
	} else if users != nil {
		t.describe = func(token string) (is tokens.Token, err error) {
			is.User, is.Until, err = users.Verify(token)
			return is, err
		}
	}
	return t, nil
}

// still reports whether a token that was valid a moment ago is so now.
func (t *userTokens) still(is *tokens.Token) bool {
	return (is.Until.IsZero() || t.now().Before(is.Until)) && !t.isRevoked(is)
}

func (t *userTokens) isRevoked(is *tokens.Token) bool {
	return t.revoked != nil && t.revoked(is.User, is.ID, is.Issued)
}

// looksLikeUserToken tells the shapes of user tokens from API keys.
func looksLikeUserToken(token string) bool {
	return strings.HasPrefix(token, devPrefix) || strings.HasPrefix(token, "eyJ") && strings.Count(token, ".") == 2
}

// verify returns what a valid token says. Tokens of development have no end.
func (t *userTokens) verify(token string) (tokens.Token, bool) {
	is, ok := t.read(token)
	return is, ok && !t.isRevoked(&is)
}

func (t *userTokens) read(token string) (tokens.Token, bool) {
	if name, ok := strings.CutPrefix(token, devPrefix); ok {
		return tokens.Token{User: name}, t.allowDev && dibs.IsID(name)
	}
	if t.describe == nil {
		return tokens.Token{}, false
	}
	// The epoch is read first, so that a change during the verification counts.
	epoch := t.epoch()
	if v, ok := t.known.GetIfPresent(token); ok && v.epoch == epoch && t.now().Before(v.Until) {
		return v.Token, true
	}
	is, err := t.describe(token)
	if err != nil {
		return tokens.Token{}, false
	}
	if len(token) <= maxCachedToken {
		t.known.Set(token, verified{is, epoch})
	}
	return is, true
}

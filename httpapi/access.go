package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/internal/web"
)

// callers says which callers a route serves.
type callers uint8

const (
	// open routes read no credentials.
	open callers = iota
	// public routes show more to admins; credentials are optional, but bad ones are
	// refused.
	public
	// userOnly routes act for the user of the token.
	userOnly
	// adminOnly routes need an API key.
	adminOnly
	// either routes serve users what is theirs and admins everything.
	either
)

// caller is the sender of a request: a user, an admin's key, or neither.
type caller struct {
	user string
	// until is when the user's token ends, zero for no end.
	until time.Time
	// key is a key's id, keyName what it is called and role what it may do.
	key, keyName string
	role         access.Role
}

func (c caller) isAdmin() bool { return c.key != "" }

// name tells callers apart where their requests are remembered.
func (c caller) name() string {
	if c.isAdmin() {
		return c.key
	}
	return "user:" + c.user
}

var (
	errNoToken  = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "send Authorization: Bearer with a token", ZH: "请在 Authorization: Bearer 中携带令牌"})
	errBadToken = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the token is not valid or has expired", ZH: "令牌无效或已过期"})
	// errNoUserToken answers a claim with an API key, or with anything else.
	errNoUserToken = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "Sign in again: the token is not a user's.", ZH: "请重新登录：当前令牌不是用户令牌。"})
	errUsersOnly   = dibs.Fail(dibs.Forbidden, dibs.Text{EN: "this call is for users: send a user token, not an API key", ZH: "该接口仅供用户调用：请使用用户令牌而非 API 密钥"})
	errAdminOnly   = dibs.Fail(dibs.Forbidden, dibs.Text{EN: "this call needs an API key", ZH: "该接口需要 API 密钥"})
)

// errRole names the role that a key lacks.
func errRole(need access.Role) error {
	return dibs.Fail(dibs.Forbidden, dibs.Textf("this call needs an API key of the role %s", "该接口需要 %s 角色的 API 密钥", need))
}

// Keys checks the API keys of administrators.
type Keys interface {
	// CheckKey returns the key of a secret. *dibs.Error of Unauthenticated for a secret
	// without one, or with one that was revoked; of Overloaded when too many unknown
	// secrets are tried at once.
	CheckKey(ctx context.Context, secret string) (*access.APIKey, error)
}

// authenticator finds the caller of a request, and decides whether the caller may
// use a route.
type authenticator struct {
	users *userTokens
	keys  Keys
}

// claimant returns the user of a claim. API keys are refused, and not looked up: a
// route that everyone calls within the same second must not ask the ledger about
// anything that looks like a key.
func (a *authenticator) claimant(h http.Header) (caller, error) {
	token, ok := web.Bearer(h)
	switch {
	case !ok:
		return caller{}, errBadToken
	case token == "":
		return caller{}, errNoToken
	case !looksLikeUserToken(token):
		return caller{}, errNoUserToken
	}
	return a.user(token)
}

// user returns the user that a token names.
func (a *authenticator) user(token string) (caller, error) {
	v, ok := a.users.verify(token)
	if !ok {
		return caller{}, errBadToken
	}
	return caller{user: v.user, until: v.until}, nil
}

// identify returns the caller of a request; the zero caller when it sends no
// credentials. outside says that the request came to the listener for users.
func (a *authenticator) identify(ctx context.Context, h http.Header, outside bool) (caller, error) {
	token, ok := web.Bearer(h)
	switch {
	case !ok:
		return caller{}, errBadToken
	case token == "":
		return caller{}, nil
	case looksLikeUserToken(token):
		return a.user(token)
	case outside:
		// Keys work on the admins' listener only. They are not looked up here, so that
		// a good key and a bad one get the same answer.
		return caller{}, errBadToken
	}
	key, err := a.keys.CheckKey(ctx, token)
	if err != nil {
		var e *dibs.Error
		if errors.As(err, &e) && (e.Reason == dibs.Unauthenticated || e.Reason == dibs.NotFound) {
			return caller{}, errBadToken
		}
		return caller{}, err
	}
	return caller{key: key.ID, keyName: key.Name, role: key.Role}, nil
}

// admit returns the caller of a request, or why the caller may not use a route. A
// key needs the role, or a higher one.
func (a *authenticator) admit(c *call, need callers, role access.Role) (caller, error) {
	if need == open {
		return caller{}, nil
	}
	who, err := a.identify(c.request.Context(), c.request.Header, c.outside)
	if err != nil {
		return caller{}, err
	}
	switch {
	case who.isAdmin() && need != userOnly && !who.role.May(role):
		return caller{}, errRole(role)
	case need == public:
		return who, nil
	case who == caller{}:
		return caller{}, errNoToken
	case need == userOnly && who.isAdmin():
		return caller{}, errUsersOnly
	case need == adminOnly && !who.isAdmin():
		return caller{}, errAdminOnly
	}
	return who, nil
}

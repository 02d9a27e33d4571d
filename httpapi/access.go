package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// access says who may call a route.
type access uint8

const (
	// open routes read no credentials.
	open access = iota
	// public routes show more to admins; credentials are optional but not false.
	public
	// userOnly routes act for the user of the token.
	userOnly
	// adminOnly routes need an API key.
	adminOnly
	// either routes serve users what is theirs and admins everything.
	either
)

var accessNames = [...]string{"everyone", "everyone; an API key shows more", "user token", "API key", "user token or API key"}

func (a access) String() string { return accessNames[a] }

// caller is who sent a request: a user, an admin's key, or neither.
type caller struct {
	user string
	// until is when the user's token ends, zero for no end.
	until time.Time
	// key is a key's id, keyName what it is called and role what it may do.
	key, keyName string
	role         dibs.Role
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
	errBadToken = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the token is not valid, or no longer", ZH: "令牌无效或已过期"})
	// errNoUserToken answers a claim with an API key, or with anything else.
	errNoUserToken = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "claims are made with a user's token, and this is none", ZH: "领取须使用用户令牌，当前令牌不是用户令牌"})
	errUsersOnly   = dibs.Fail(dibs.Forbidden, dibs.Text{EN: "this call is for users: send a user token, not an API key", ZH: "该接口仅供用户调用：请使用用户令牌而非 API 密钥"})
	errAdminOnly   = dibs.Fail(dibs.Forbidden, dibs.Text{EN: "this call needs an API key", ZH: "该接口需要 API 密钥"})
)

// bearer returns the token of a request; "" when there is none.
func bearer(h http.Header) (string, error) {
	v := h["Authorization"]
	if len(v) == 0 {
		return "", nil
	}
	const scheme = "Bearer "
	if len(v) > 1 || len(v[0]) <= len(scheme) || !strings.EqualFold(v[0][:len(scheme)], scheme) {
		return "", errBadToken
	}
	return v[0][len(scheme):], nil
}

// errRole says what a key lacks.
func errRole(need dibs.Role) error {
	return dibs.Fail(dibs.Forbidden, dibs.Textf("this call needs an API key of the role %s", "该接口需要 %s 角色的 API 密钥", need))
}

// identify returns who sent a request. No credentials are no error here. outside
// says that it came to the listener that is not for admins.
func (a *api) identify(ctx context.Context, h http.Header, outside bool) (caller, error) {
	token, err := bearer(h)
	if err != nil || token == "" {
		return caller{}, err
	}
	if looksLikeUserToken(token) {
		return a.userOf(token)
	}
	if outside {
		// Keys are for the listener of admins: here they are worth nothing.
		return caller{}, errBadToken
	}
	key, err := a.svc.CheckKey(ctx, token)
	if err != nil {
		var e *dibs.Error
		if errors.As(err, &e) && (e.Reason == dibs.Unauthenticated || e.Reason == dibs.NotFound) {
			return caller{}, errBadToken
		}
		return caller{}, err
	}
	return caller{key: key.ID, keyName: key.Name, role: key.Role}, nil
}

// admitClaimant returns who sent a claim. Keys are worth nothing there, true or
// false, and are not looked up: what everybody may call at once must not ask the
// ledger for whatever looks like one.
func (a *api) admitClaimant(h http.Header) (caller, error) {
	token, err := bearer(h)
	switch {
	case err != nil:
		return caller{}, err
	case token == "":
		return caller{}, errNoToken
	case !looksLikeUserToken(token):
		return caller{}, errNoUserToken
	}
	return a.userOf(token)
}

// userOf returns who a user's token names.
func (a *api) userOf(token string) (caller, error) {
	v, ok := a.users.verify(token)
	if !ok {
		return caller{}, errBadToken
	}
	return caller{user: v.user, until: v.until}, nil
}

// admitRole returns who sent a call, when they may call a route of this access:
// of keys, those of a role, or of one that may do more.
func (a *api) admitRole(ctx context.Context, h http.Header, need access, role dibs.Role) (caller, error) {
	c := callOf(ctx)
	return a.admit(ctx, h, need, role, c != nil && c.outside)
}

func (a *api) admit(ctx context.Context, h http.Header, need access, role dibs.Role, outside bool) (caller, error) {
	if need == open {
		return caller{}, nil
	}
	who, err := a.identify(ctx, h, outside)
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

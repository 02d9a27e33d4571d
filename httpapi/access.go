package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/httpapi/internal/sessions"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/tokens"
)

// callers says which callers a route serves.
// The order matters: routes from userOnly on answer with what only their caller may
// see, and are never cached.
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
	// token is the user's.
	token tokens.Token
	// key is a key's id, keyName what it is called and role what it may do.
	key, keyName string
	role         access.Role
	// scopes narrow the role; nil for all of it.
	scopes *access.Scopes
	// person is the subject of one who signed in at the identity provider; empty for a key that was made.
	person string
	// origins are those of a key, as APIKey.Origins says.
	origins []string
	// ends is the end of a key that ends soon; zero for another one.
	ends time.Time
}

// callerOf is the caller of a key.
func callerOf(k *access.APIKey, now time.Time) caller {
	c := caller{key: k.ID, keyName: k.Name, role: k.Role, scopes: k.Scopes, person: k.Person, origins: k.Origins()}
	if k.EndsSoon(now) {
		c.ends = k.ExpiresAt
	}
	return c
}

func (c caller) isAdmin() bool { return c.key != "" }

// name tells callers apart where their requests are remembered.
// An admin's name is the key's id, which never begins like a user's.
func (c caller) name() string {
	if c.isAdmin() {
		return c.key
	}
	return "user:" + c.user
}

// None of these refusals had an effect. The same request would be refused again: the
// client signs in, or takes another credential, first.
var (
	errNoToken  = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "send Authorization: Bearer with a token", ZH: "请在 Authorization: Bearer 中携带令牌"})
	errBadToken = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the token is not valid or has expired", ZH: "令牌无效或已过期"})
	// errNoUserToken answers a claim with an API key, or with anything else.
	errNoUserToken = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "sign in again: the token is not a user's", ZH: "请重新登录：当前令牌不是用户令牌"})
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
// It does not change while it serves. users and keys have locks of their own.
type authenticator struct {
	users *userTokens
	keys  Keys
	claim findClaim
	now   func() time.Time
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
	is, ok := a.users.verify(token)
	if !ok {
		return caller{}, errBadToken
	}
	return caller{user: is.User, token: is}, nil
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
	if e, ok := errors.AsType[*dibs.Error](err); ok && (e.Reason == dibs.NotFound || e.Reason == dibs.Unauthenticated) {
		return caller{}, errBadToken
	}
	if err != nil {
		return caller{}, err
	}
	return callerOf(key, a.now()), nil
}

// admit returns the caller of a request, or why the caller may not use a route: with the
// caller, where it is known. A key needs the role, or a higher one.
func (a *authenticator) admit(c *call, need callers, op *operation) (caller, error) {
	if need == open {
		return caller{}, nil
	}
	who, err := a.identify(c.request.Context(), c.request.Header, c.outside)
	if err != nil {
		return caller{}, err
	}
	if who.isAdmin() && need != userOnly {
		if err := a.withinScopes(c, op, who.scopes); err != nil && need == public {
			// The key counts for what it may act on; for the rest its holder is anyone.
			return caller{}, nil
		} else if err != nil {
			return who, err
		}
	}
	switch {
	case who.isAdmin() && need != userOnly && !who.role.May(op.needs()):
		return who, errRole(op.needs())
	case need == public:
		return who, nil
	case who.user == "" && !who.isAdmin():
		return caller{}, errNoToken
	case need == userOnly && who.isAdmin():
		return who, errUsersOnly
	case need == adminOnly && !who.isAdmin():
		return who, errAdminOnly
	}
	return who, nil
}

var (
	errScope    = dibs.Fail(dibs.Forbidden, dibs.Text{EN: "this call is outside of the key's scopes", ZH: "该调用超出密钥的权限范围"})
	errUnscoped = dibs.Fail(dibs.Forbidden, dibs.Text{EN: "this call needs an API key without scopes", ZH: "该接口需要没有范围限制的 API 密钥"})
)

// findClaim returns a claim, to see which campaign it is of.
type findClaim func(ctx context.Context, id string) (*dibs.Claim, error)

// withinScopes returns nil when a call is within the scopes of its key. A call that is
// about no campaign and no merchant is outside of scopes that name some.
// A claim that there is not is outside, like a claim of another campaign: a key
// learns nothing of campaigns that it may not act on.
func (a *authenticator) withinScopes(c *call, op *operation, s *access.Scopes) error {
	switch {
	// Signing out, and one's own sessions, are about the key itself.
	case s.Empty() || op.path == sessions.Path || isAbout(op.path, "/v1/sessions"):
		return nil
	// These calls reach beyond any campaign, or could make a key without scopes.
	case op.unscoped:
		return errUnscoped
	case !s.MayAct(op.id):
		return errScope
	case !s.OnThings():
		return nil
	}
	id, may := c.request.PathValue("id"), false
	switch {
	case isAbout(op.path, "/v1/campaigns/{id}"):
		may = s.MayCampaign(id)
	case isAbout(op.path, "/v1/merchants/{id}"):
		may = s.MayMerchant(id)
	case op.path == "/v1/claims":
		may = s.MayCampaign(c.request.URL.Query().Get("campaign_id"))
	case isAbout(op.path, "/v1/claims/{id}"):
		claim, err := a.claim(c.request.Context(), id)
		if err != nil && !errors.Is(err, dibs.ErrNotFound) {
			return err
		}
		may = err == nil && s.MayCampaign(claim.CampaignID)
	}
	if !may {
		return errScope
	}
	return nil
}

// mayName returns nil when a key may name a merchant in the body of a call about a campaign: one of its scopes, or the one
// for whose followers the campaign is already. The path alone has passed withinScopes.
// Scopes that name campaigns alone allow no merchant: the followers of one would be told of the campaign.
func mayName(s *access.Scopes, campaign *dibs.Campaign, merchant string) error {
	if merchant == "" || !s.OnThings() || s.MayMerchant(merchant) || campaign.Gate.FollowersOf() == merchant {
		return nil
	}
	return errScope
}

// isAbout reports whether a path is a thing's, or below it.
func isAbout(path, thing string) bool { return path == thing || strings.HasPrefix(path, thing+"/") }

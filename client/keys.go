package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
)

// Keys manages API keys, for admins whose key has no scopes.
type Keys struct{ *caller }

const keysPath = "/v1/keys"

// Create makes a key. The answer has the key itself, this once: the repeat of a call with an
// idempotency key does not have it.
func (c Keys) Create(ctx context.Context, spec access.KeySpec, key string) (access.KeyView, error) {
	return admin[access.KeyView](ctx, c.caller, http.MethodPost, keysPath, key, spec)
}

// List lists keys, newest first; revoked and expired ones too.
func (c Keys) List(ctx context.Context, page dibs.Page) (api.ListView[access.KeyView], error) {
	return list[access.KeyView](ctx, c.caller, keysPath, pageQuery(page), c.opts.AdminKey)
}

// Get returns a key, without its secret.
func (c Keys) Get(ctx context.Context, id string) (access.KeyView, error) {
	return admin[access.KeyView](ctx, c.caller, http.MethodGet, keysPath+"/"+url.PathEscape(id), "", nil)
}

// Revoke ends a key, and the sessions of the console that were begun with it.
func (c Keys) Revoke(ctx context.Context, id string) (access.KeyView, error) {
	return admin[access.KeyView](ctx, c.caller, http.MethodDelete, keysPath+"/"+url.PathEscape(id), "", nil)
}

// Rotate makes a key like another one, which stays valid for a while. The answer has the new
// key, this once.
func (c Keys) Rotate(ctx context.Context, id string, r access.KeyRotation, key string) (access.KeyView, error) {
	return admin[access.KeyView](ctx, c.caller, http.MethodPost, keysPath+"/"+url.PathEscape(id)+"/rotate", key, r)
}

// Sessions lists and ends sessions of the console, for admins, and signs people in.
type Sessions struct{ *caller }

// SignInPath is where a browser begins to sign in at the identity provider of a server.
const SignInPath = "/console/oidc"

const sessionsPath = "/v1/sessions"

// Offered reports whether the server signs people in at an identity provider, at the address that the client calls.
func (c Sessions) Offered(ctx context.Context) (bool, error) {
	resp, err := c.send(ctx, request{method: http.MethodGet, path: SignInPath})
	if err != nil {
		return false, err
	}
	// Where there is none, the console answers at all addresses below its own, and its page says so to browsers alone.
	none := resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotFound
	return !none, resp.Body.Close()
}

// List lists sessions that last, newest first: of all keys for an admin whose key has no
// scopes, else those of the client's own key.
func (c Sessions) List(ctx context.Context, page dibs.Page) (api.ListView[access.ConsoleSessionView], error) {
	return list[access.ConsoleSessionView](ctx, c.caller, sessionsPath, pageQuery(page), c.opts.AdminKey)
}

// End ends a session, and returns it as it was.
func (c Sessions) End(ctx context.Context, id string) (access.ConsoleSessionView, error) {
	return admin[access.ConsoleSessionView](ctx, c.caller, http.MethodDelete, sessionsPath+"/"+url.PathEscape(id), "", nil)
}

// SignedIn is a person's key.
type SignedIn struct {
	KeyID     string      `json:"key_id"`
	Name      string      `json:"name"`
	Role      access.Role `json:"role"`
	ExpiresAt time.Time   `json:"expires_at"`
	Secret    string      `json:"secret"`
}

// Exchange returns the key of a person for the code that their browser brought from SignInPath, once. verifier is what
// the challenge there is the SHA-256 of. It needs no key.
func (c Sessions) Exchange(ctx context.Context, code, verifier string) (v SignedIn, err error) {
	body := struct {
		Code     string `json:"code"`
		Verifier string `json:"verifier"`
	}{code, verifier}
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/v1/session/token", body: body}, &v)
	return v, err
}

// Leave ends the session of the client's own key, if that is a person's: the key is revoked with it.
func (c Sessions) Leave(ctx context.Context) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/v1/session", token: c.opts.AdminKey}, nil)
	return err
}

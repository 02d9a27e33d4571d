package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
)

// Tokens ends tokens of users before their time, for admins.
type Tokens struct{ *caller }

const revocationsPath = "/v1/token-revocations"

// Revoke revokes one token, or all of a user. With a key, the call can be repeated.
func (c Tokens) Revoke(ctx context.Context, spec access.RevocationSpec, key string) (access.RevocationView, error) {
	return admin[access.RevocationView](ctx, c.caller, http.MethodPost, revocationsPath, key, spec)
}

// Revocations lists what is revoked, newest first.
func (c Tokens) Revocations(ctx context.Context, page dibs.Page) (api.ListView[access.RevocationView], error) {
	return list[access.RevocationView](ctx, c.caller, revocationsPath, pageQuery(page), c.opts.AdminKey)
}

// Allow takes a revocation back, and returns it as it was.
func (c Tokens) Allow(ctx context.Context, id string) (access.RevocationView, error) {
	return admin[access.RevocationView](ctx, c.caller, http.MethodDelete, revocationsPath+"/"+url.PathEscape(id), "", nil)
}

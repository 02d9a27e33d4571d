package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/erasure"
)

// Erasures shows what is stored about a user, and erases it, for admins.
type Erasures struct{ *caller }

// Record tells what there is about a user.
func (c Erasures) Record(ctx context.Context, user string) (erasure.UserRecord, error) {
	return admin[erasure.UserRecord](ctx, c.caller, http.MethodGet, "/v1/users/"+url.PathEscape(user), "", nil)
}

// Erase begins to erase a user, or returns the erasure under way, and then
// true.
func (c Erasures) Erase(ctx context.Context, user string, spec erasure.ErasureSpec) (v erasure.ErasureView, known bool, err error) {
	return change[erasure.ErasureView](ctx, c.caller, request{
		path: "/v1/users/" + url.PathEscape(user) + "/erasure", token: c.opts.AdminKey, body: spec,
	})
}

// Get shows how far an erasure is.
func (c Erasures) Get(ctx context.Context, id string) (erasure.ErasureView, error) {
	return admin[erasure.ErasureView](ctx, c.caller, http.MethodGet, "/v1/erasures/"+url.PathEscape(id), "", nil)
}

// List lists erasures, the newest first; open narrows it to those not done.
func (c Erasures) List(ctx context.Context, open bool, page dibs.Page) (api.ListView[erasure.ErasureView], error) {
	query := pageQuery(page)
	if open {
		query.Set("open", "true")
	}
	return list[erasure.ErasureView](ctx, c.caller, "/v1/erasures", query, c.opts.AdminKey)
}

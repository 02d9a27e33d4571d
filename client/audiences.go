package client

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/gate"
)

// Audiences manages the lists of users who may claim, for admins.
type Audiences struct{ *caller }

// Get shows a list of users.
func (c Audiences) Get(ctx context.Context, id string) (api.AudienceView, error) {
	return get[api.AudienceView](ctx, c.caller, "/v1/audiences/"+url.PathEscape(id), nil, c.opts.AdminKey)
}

// List lists the lists of users by id.
func (c Audiences) List(ctx context.Context, page dibs.Page) (api.ListView[api.AudienceView], error) {
	return list[api.AudienceView](ctx, c.caller, "/v1/audiences", pageQuery(page), c.opts.AdminKey)
}

// Import replaces a list of users by those of a CSV file, all of them
// or none; an *Error lists the lines that are bad. done, unless nil, is told now
// and then how many users have been written, from another goroutine.
func (c Audiences) Import(ctx context.Context, id string, csv io.Reader, done func(written int64)) (v api.AudienceView, err error) {
	r := request{method: http.MethodPut, path: "/v1/audiences/" + url.PathEscape(id), token: c.opts.AdminKey, file: csv}
	_, err = c.do(withProgress(ctx, &r, done), r, &v)
	return v, err
}

// Followers manages the users who follow a merchant, for admins.
type Followers struct{ *caller }

// Set makes a user follow a merchant, or stop following it.
func (c Followers) Set(ctx context.Context, merchant, user string, rank int64, follows bool) error {
	r := request{method: http.MethodDelete, path: merchantPath(merchant) + "/followers/" + url.PathEscape(user), token: c.opts.AdminKey}
	if follows {
		r.method, r.body = http.MethodPost, map[string]int64{"rank": rank}
	}
	_, err := c.do(ctx, r, nil)
	return err
}

// List lists a merchant's followers, the highest rank first.
func (c Followers) List(ctx context.Context, merchant string, page dibs.Page) (api.ListView[gate.Follower], error) {
	return list[gate.Follower](ctx, c.caller, merchantPath(merchant)+"/followers", pageQuery(page), c.opts.AdminKey)
}

// Import has the users of a CSV file, `user` or `user,rank` on each
// line, follow a merchant; an *Error lists the lines that are bad, and nobody
// follows then. done, unless nil, is told now and then how many have been
// written, from another goroutine.
func (c Followers) Import(ctx context.Context, merchant string, csv io.Reader, done func(written int64)) (v api.FollowersView, err error) {
	r := request{method: http.MethodPost, path: merchantPath(merchant) + "/followers", token: c.opts.AdminKey, file: csv}
	_, err = c.do(withProgress(ctx, &r, done), r, &v)
	return v, err
}

// Count is how many follow a merchant.
func (c Followers) Count(ctx context.Context, merchant string) (int64, error) {
	v, err := admin[struct {
		Followers int64 `json:"followers"`
	}](ctx, c.caller, http.MethodGet, merchantPath(merchant), "", nil)
	return v.Followers, err
}

func merchantPath(id string) string { return "/v1/merchants/" + url.PathEscape(id) }

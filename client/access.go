package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"

	"github.com/dibs-dev/dibs/gate"
)

// Acts lists what administrators did, newest first.
func (c *Client) Acts(ctx context.Context, f access.ActFilter, page dibs.Page) (l api.ListView[access.ActView], err error) {
	v := pageQuery(page)
	for name, value := range map[string]string{"key": f.Key, "action": f.Action, "target": f.Target} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/audit", query: v, token: c.opts.AdminKey}, &l)
	return l, err
}

// Audience shows a list of users.
func (c *Client) Audience(ctx context.Context, id string) (v api.AudienceView, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/audiences/" + url.PathEscape(id), token: c.opts.AdminKey}, &v)
	return v, err
}

// Audiences lists the lists of users by id.
func (c *Client) Audiences(ctx context.Context, page dibs.Page) (l api.ListView[api.AudienceView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/audiences", query: pageQuery(page), token: c.opts.AdminKey}, &l)
	return l, err
}

// Follow has a user follow a merchant, or no longer.
func (c *Client) Follow(ctx context.Context, merchant, user string, rank int64, follows bool) error {
	r := request{method: http.MethodDelete, path: "/v1/merchants/" + url.PathEscape(merchant) + "/followers/" + url.PathEscape(user), token: c.opts.AdminKey}
	if follows {
		r.method, r.body = http.MethodPost, map[string]int64{"rank": rank}
	}
	_, err := c.do(ctx, r, nil)
	return err
}

// Followers lists a merchant's followers, the highest rank first.
func (c *Client) Followers(ctx context.Context, merchant string, page dibs.Page) (l api.ListView[gate.Follower], err error) {
	_, err = c.do(ctx, request{
		method: http.MethodGet, path: "/v1/merchants/" + url.PathEscape(merchant) + "/followers", query: pageQuery(page), token: c.opts.AdminKey,
	}, &l)
	return l, err
}

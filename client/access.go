package client

import (
	"context"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
)

// Acts lists what administrators did, newest first.
func (c *Client) Acts(ctx context.Context, f dibs.ActFilter, page dibs.Page) (l dibs.ListView[dibs.ActView], err error) {
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

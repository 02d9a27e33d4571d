package client

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strconv"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/campaigns"
)

// ImportCodes adds the codes of a CSV file to a campaign of items, all of them
// or none; an *Error lists the lines that are bad. With a key, the call can be
// repeated. done, unless nil, is told now and then how many codes have been
// written, from another goroutine.
func (c *Client) ImportCodes(ctx context.Context, id string, csv io.Reader, key string, done func(written int64)) (v api.ImportView, replayed bool, err error) {
	r := request{
		method: http.MethodPost, path: campaignPath(id) + "/codes", token: c.opts.AdminKey, key: key, file: csv, kind: "text/csv",
	}
	replayed, err = c.do(hearing(ctx, &r, done), r, &v)
	return v, replayed, err
}

// ImportAudience replaces a list of users by those of a CSV file, all of them
// or none; an *Error lists the lines that are bad. done, unless nil, is told now
// and then how many users have been written, from another goroutine.
func (c *Client) ImportAudience(ctx context.Context, id string, csv io.Reader, done func(written int64)) (v api.AudienceView, err error) {
	r := request{method: http.MethodPut, path: "/v1/audiences/" + url.PathEscape(id), token: c.opts.AdminKey, file: csv, kind: "text/csv"}
	_, err = c.do(hearing(ctx, &r, done), r, &v)
	return v, err
}

// hearing asks for progress, when somebody wants to hear it.
func hearing(ctx context.Context, r *request, done func(written int64)) context.Context {
	if done == nil {
		return ctx
	}
	r.prefer = "progress"
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		if n, err := strconv.ParseInt(h.Get("Dibs-Imported"), 10, 64); err == nil {
			done(n)
		}
		return nil
	}})
}

// UnclaimedCodes lists the codes of a campaign that nobody has claimed.
func (c *Client) UnclaimedCodes(ctx context.Context, id string, page dibs.Page) (l api.ListView[campaigns.CodeView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: campaignPath(id) + "/codes", query: pageQuery(page), token: c.opts.AdminKey}, &l)
	return l, err
}

// UnclaimedCodesCSV writes all of them to w, as a file that can be imported
// again. When it returns an error, what was written may be a part.
func (c *Client) UnclaimedCodesCSV(ctx context.Context, id string, w io.Writer) error {
	q := url.Values{"format": {"csv"}}
	return c.stream(ctx, request{method: http.MethodGet, path: campaignPath(id) + "/codes", query: q, token: c.opts.AdminKey}, w)
}

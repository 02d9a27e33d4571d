package client

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"

	"github.com/dibs-dev/dibs"
)

// ImportCodes adds the codes of a CSV file to a campaign of items, all of them
// or none; an *Error lists the lines that are bad. With a key, the call can be
// repeated. done, unless nil, is told now and then how many codes have been
// written, from another goroutine.
func (c *Client) ImportCodes(ctx context.Context, id string, csv io.Reader, key string, done func(written int64)) (v dibs.ImportView, replayed bool, err error) {
	r := request{
		method: http.MethodPost, path: campaignPath(id) + "/codes", token: c.opts.AdminKey, key: key, file: csv, kind: "text/csv",
	}
	if done != nil {
		r.prefer = "progress"
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			if n, err := strconv.ParseInt(h.Get("Dibs-Imported"), 10, 64); err == nil {
				done(n)
			}
			return nil
		}})
	}
	replayed, err = c.do(ctx, r, &v)
	return v, replayed, err
}

package client

import (
	"context"
	"io"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/campaigns"
)

// ImportCodes adds the codes of a CSV file to a campaign of items, all of them
// or none; an *Error lists the lines that are bad. With a key, the call can be
// repeated. done, unless nil, is told now and then how many codes have been
// written, from another goroutine.
func (c Campaigns) ImportCodes(ctx context.Context, id string, csv io.Reader, key string, done func(written int64)) (v api.ImportView, replayed bool, err error) {
	r := request{path: campaignPath(id) + "/codes", token: c.opts.AdminKey, key: key, file: csv}
	return change[api.ImportView](withProgress(ctx, &r, done), c.caller, r)
}

// UnclaimedCodes lists the codes of a campaign that nobody has claimed.
func (c Campaigns) UnclaimedCodes(ctx context.Context, id string, page dibs.Page) (api.ListView[campaigns.CodeView], error) {
	return list[campaigns.CodeView](ctx, c.caller, campaignPath(id)+"/codes", pageQuery(page), c.opts.AdminKey)
}

// UnclaimedCodesCSV writes all of them to w, as a file that can be imported
// again. When it returns an error, what was written may be a part.
func (c Campaigns) UnclaimedCodesCSV(ctx context.Context, id string, w io.Writer) error {
	return c.csv(ctx, campaignPath(id)+"/codes", url.Values{}, w)
}

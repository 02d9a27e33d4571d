package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/funds"
)

// Balance returns what is on the user's account, by currency.
func (c *Client) Balance(ctx context.Context) (v funds.BalanceView, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/me/balance", token: c.opts.Token}, &v)
	return v, err
}

// BalanceEntries lists the entries of the user's account, newest first.
func (c *Client) BalanceEntries(ctx context.Context, page dibs.Page) (l api.ListView[funds.PostingView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/me/balance/entries", query: pageQuery(page), token: c.opts.Token}, &l)
	return l, err
}

// Deposit takes note of money that came in for a user, once for each reference:
// the call can be repeated until it is answered.
func (c *Client) Deposit(ctx context.Context, user string, d funds.DepositSpec) (v funds.DepositView, replayed bool, err error) {
	replayed, err = c.do(ctx, request{
		method: http.MethodPost, path: accountPath(user) + "/deposits", token: c.opts.AdminKey, body: d,
	}, &v)
	return v, replayed, err
}

// Account returns what is on any user's account.
func (c *Client) Account(ctx context.Context, user string) (funds.BalanceView, error) {
	return admin[funds.BalanceView](ctx, c, http.MethodGet, accountPath(user), "", nil)
}

// AccountEntries lists the entries of any user's account, newest first.
func (c *Client) AccountEntries(ctx context.Context, user string, page dibs.Page) (l api.ListView[funds.PostingView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: accountPath(user) + "/entries", query: pageQuery(page), token: c.opts.AdminKey}, &l)
	return l, err
}

func accountPath(user string) string { return "/v1/accounts/" + url.PathEscape(user) }

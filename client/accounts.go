package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/funds"
)

// Accounts reads balances and takes deposits. Users call Mine and MyEntries, admins
// the rest.
type Accounts struct{ *caller }

// Mine returns what is on the user's account, by currency.
func (c Accounts) Mine(ctx context.Context) (funds.BalanceView, error) {
	return get[funds.BalanceView](ctx, c.caller, "/v1/me/balance", nil, c.opts.Token)
}

// MyEntries lists the entries of the user's account, newest first.
func (c Accounts) MyEntries(ctx context.Context, page dibs.Page) (api.ListView[funds.PostingView], error) {
	return list[funds.PostingView](ctx, c.caller, "/v1/me/balance/entries", pageQuery(page), c.opts.Token)
}

// Deposit takes note of money that came in for a user, once for each reference:
// the call can be repeated until it is answered.
func (c Accounts) Deposit(ctx context.Context, user string, d funds.DepositSpec) (v funds.DepositView, replayed bool, err error) {
	return change[funds.DepositView](ctx, c.caller, request{path: accountPath(user) + "/deposits", token: c.opts.AdminKey, body: d})
}

// Get returns what is on any user's account.
func (c Accounts) Get(ctx context.Context, user string) (funds.BalanceView, error) {
	return admin[funds.BalanceView](ctx, c.caller, http.MethodGet, accountPath(user), "", nil)
}

// Entries lists the entries of any user's account, newest first.
func (c Accounts) Entries(ctx context.Context, user string, page dibs.Page) (api.ListView[funds.PostingView], error) {
	return list[funds.PostingView](ctx, c.caller, accountPath(user)+"/entries", pageQuery(page), c.opts.AdminKey)
}

func accountPath(user string) string { return "/v1/accounts/" + url.PathEscape(user) }

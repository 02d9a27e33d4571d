package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/funds"
)

// Accounts is what the handlers of money call.
type Accounts interface {
	// Deposit puts money on a user's account, once for each reference: the bool reports
	// that it was done before. *dibs.Error of InvalidRequest, of AlreadyExists for a
	// reference of another deposit, or of Unavailable: repeat it with the same reference.
	Deposit(ctx context.Context, user string, d funds.DepositSpec) (*funds.DepositView, bool, error)
	// Balance returns what a user has, by currency; nothing for a user who never had money.
	Balance(ctx context.Context, user string) (*funds.BalanceView, error)
	// Postings lists the entries of an account, newest first. They sum to the balance.
	Postings(ctx context.Context, user string, page dibs.Page) (dibs.List[funds.PostingView], error)
}

// registerAccounts adds the routes that show accounts and take deposits.
// Users see their own account only: the user comes from the token, never from the
// path.
func registerAccounts(a *routes, accounts Accounts) {
	balance := func(ctx context.Context, user string) (funds.BalanceView, error) {
		return viewOf(itself[funds.BalanceView])(accounts.Balance(ctx, user))
	}
	postings := func(ctx context.Context, user string, page dibs.Page) (api.ListView[funds.PostingView], error) {
		return listOf(itself[funds.PostingView])(accounts.Postings(ctx, user, page))
	}
	register(a, operation{
		method: http.MethodGet, path: "/v1/me/balance", id: "my-balance", tag: tagMoney, access: userOnly,
		summary: "Show what is on my account", description: "By currency. A share of a red packet is there within a second or two of its claim.",
	}, func(ctx context.Context, c *call, _ *struct{}) (funds.BalanceView, error) {
		return balance(ctx, c.caller.user)
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/me/balance/entries", id: "my-balance-entries", tag: tagMoney, access: userOnly, strictQuery: true,
		summary: "List the entries of my account, newest first", description: "They sum to the balance. An amount that left the account is negative.",
	}, func(ctx context.Context, c *call, in *struct{ PageQuery }) (api.ListView[funds.PostingView], error) {
		return postings(ctx, c.caller.user, in.page())
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/accounts/{user}", id: "get-account", personal: true, tag: tagMoney, access: adminOnly,
		summary: "Show what is on a user's account",
	}, func(ctx context.Context, _ *call, in *PathUser) (funds.BalanceView, error) {
		return balance(ctx, in.User)
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/accounts/{user}/entries", id: "account-entries", personal: true, tag: tagMoney, access: adminOnly, strictQuery: true,
		summary: "List the entries of a user's account, newest first",
	}, func(ctx context.Context, _ *call, in *struct {
		PathUser
		PageQuery
	},
	) (api.ListView[funds.PostingView], error) {
		return postings(ctx, in.User, in.page())
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/accounts/{user}/deposits", id: "deposit", tag: tagMoney, access: adminOnly, second: &second{act: access.ActDeposit},
		summary: "Note money that came in for a user", example: `{"amount":{"amount":10000000,"currency":"CNY"},"ref":"transfer-1"}`,
		description: "It pays for the red packets that the user sends. The same `ref` again changes nothing; for another user or amount it is refused.",
	}, func(ctx context.Context, c *call, in *PathUser, d *funds.DepositSpec) (funds.DepositView, error) {
		v, replayed, err := accounts.Deposit(ctx, in.User, *d)
		if replayed && err == nil {
			c.replayed()
		}
		return viewOf(itself[funds.DepositView])(v, err)
	})
}

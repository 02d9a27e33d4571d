package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"
)

const tagMoney = "Money"

// PathUser is the user in an admin's path; exported as PathID is.
type PathUser struct {
	User string `path:"user" doc:"1-64 characters of A-Z a-z 0-9 . _ -"`
}

func (a *api) registerAccounts() {
	register(a, operation{
		method: http.MethodGet, path: "/v1/me/balance", id: "my-balance", tag: tagMoney, access: userOnly,
		summary: "Show what is on my account", description: "By currency. A share of a red packet is there within a second or two of its claim.",
	}, func(ctx context.Context, c *call, _ *struct{}) (dibs.BalanceView, error) {
		return a.balance(ctx, c.who.user)
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/me/balance/entries", id: "my-balance-entries", tag: tagMoney, access: userOnly, strictQuery: true,
		summary: "List the entries of my account, newest first", description: "They sum to the balance. What left the account is negative.",
	}, func(ctx context.Context, c *call, in *struct{ PageQuery }) (dibs.ListView[dibs.PostingView], error) {
		return a.postings(ctx, c.who.user, in.page())
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/accounts/{user}", id: "get-account", tag: tagMoney, access: adminOnly,
		summary: "Show what is on a user's account",
	}, func(ctx context.Context, _ *call, in *PathUser) (dibs.BalanceView, error) {
		return a.balance(ctx, in.User)
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/accounts/{user}/entries", id: "account-entries", tag: tagMoney, access: adminOnly, strictQuery: true,
		summary: "List the entries of a user's account, newest first",
	}, func(ctx context.Context, _ *call, in *struct {
		PathUser
		PageQuery
	},
	) (dibs.ListView[dibs.PostingView], error) {
		return a.postings(ctx, in.User, in.page())
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/accounts/{user}/deposits", id: "deposit", tag: tagMoney, access: adminOnly,
		summary: "Note money that came in for a user", example: `{"amount":{"amount":10000000,"currency":"CNY"},"ref":"transfer-1"}`, maxBody: a.cfg.MaxBody,
		description: "It pays for the red packets that the user sends. The same `ref` again changes nothing; for another user or amount it is refused.",
	}, func(ctx context.Context, c *call, in *PathUser, d *dibs.DepositSpec) (dibs.DepositView, error) {
		v, replayed, err := a.svc.Deposit(ctx, in.User, *d)
		if err != nil {
			return dibs.DepositView{}, err
		}
		if replayed {
			c.Header()[headerReplayed] = isTrue
		}
		return *v, nil
	})
}

func (a *api) balance(ctx context.Context, user string) (dibs.BalanceView, error) {
	v, err := a.svc.Balance(ctx, user)
	if err != nil {
		return dibs.BalanceView{}, err
	}
	return *v, nil
}

func (a *api) postings(ctx context.Context, user string, page dibs.Page) (dibs.ListView[dibs.PostingView], error) {
	l, err := a.svc.Postings(ctx, user, page)
	return listOf(l, func(p *dibs.PostingView) dibs.PostingView { return *p }), err
}

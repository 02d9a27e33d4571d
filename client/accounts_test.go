package client_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/funds"
)

func TestAccounts(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"user-token GET /v1/me/balance": func(ctx context.Context, c *client.Client) error {
			_, err := c.Accounts.Mine(ctx)
			return err
		},
		"user-token GET /v1/me/balance/entries": func(ctx context.Context, c *client.Client) error {
			_, err := c.Accounts.MyEntries(ctx, dibs.Page{})
			return err
		},
		"admin-key POST /v1/accounts/7/deposits": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Accounts.Deposit(ctx, "7", funds.DepositSpec{})
			return err
		},
		"admin-key GET /v1/accounts/7": func(ctx context.Context, c *client.Client) error {
			_, err := c.Accounts.Get(ctx, "7")
			return err
		},
		"admin-key GET /v1/accounts/7/entries": func(ctx context.Context, c *client.Client) error {
			_, err := c.Accounts.Entries(ctx, "7", dibs.Page{})
			return err
		},
	})
}

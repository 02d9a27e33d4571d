package client_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/client"
)

func TestTokens(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key POST /v1/token-revocations": func(ctx context.Context, c *client.Client) error {
			_, err := c.Tokens.Revoke(ctx, access.RevocationSpec{User: "42"}, "k")
			return err
		},
		"admin-key GET /v1/token-revocations?limit=2": func(ctx context.Context, c *client.Client) error {
			_, err := c.Tokens.Revocations(ctx, dibs.Page{Limit: 2})
			return err
		},
		"admin-key DELETE /v1/token-revocations/a%2Fb": func(ctx context.Context, c *client.Client) error {
			_, err := c.Tokens.Allow(ctx, "a/b")
			return err
		},
	})
}

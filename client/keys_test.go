package client_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/client"
)

func TestKeys(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key POST /v1/keys": func(ctx context.Context, c *client.Client) error {
			_, err := c.Keys.Create(ctx, access.KeySpec{Name: "till", Role: access.RoleViewer}, "k")
			return err
		},
		"admin-key GET /v1/keys?limit=2": func(ctx context.Context, c *client.Client) error {
			_, err := c.Keys.List(ctx, dibs.Page{Limit: 2})
			return err
		},
		"admin-key GET /v1/keys/a%2Fb": func(ctx context.Context, c *client.Client) error {
			_, err := c.Keys.Get(ctx, "a/b")
			return err
		},
		"admin-key DELETE /v1/keys/a": func(ctx context.Context, c *client.Client) error {
			_, err := c.Keys.Revoke(ctx, "a")
			return err
		},
		"admin-key POST /v1/keys/a/rotate": func(ctx context.Context, c *client.Client) error {
			_, err := c.Keys.Rotate(ctx, "a", access.KeyRotation{}, "k")
			return err
		},
		"admin-key GET /v1/sessions?cursor=s&limit=2": func(ctx context.Context, c *client.Client) error {
			_, err := c.Sessions.List(ctx, dibs.Page{Limit: 2, Cursor: "s"})
			return err
		},
		"admin-key DELETE /v1/sessions/a%2Fb": func(ctx context.Context, c *client.Client) error {
			_, err := c.Sessions.End(ctx, "a/b")
			return err
		},
	})
}

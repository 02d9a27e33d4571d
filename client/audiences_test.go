package client_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

func TestAudiences(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key GET /v1/audiences/vip": func(ctx context.Context, c *client.Client) error {
			_, err := c.Audiences.Get(ctx, "vip")
			return err
		},
		"admin-key GET /v1/audiences": func(ctx context.Context, c *client.Client) error {
			_, err := c.Audiences.List(ctx, dibs.Page{})
			return err
		},
		"admin-key PUT /v1/audiences/vip": func(ctx context.Context, c *client.Client) error {
			_, err := c.Audiences.Import(ctx, "vip", strings.NewReader("7\n"), nil)
			return err
		},
		"admin-key POST /v1/merchants/shop/followers/7": func(ctx context.Context, c *client.Client) error {
			return c.Followers.Set(ctx, "shop", "7", 1, true)
		},
		"admin-key DELETE /v1/merchants/shop/followers/7": func(ctx context.Context, c *client.Client) error {
			return c.Followers.Set(ctx, "shop", "7", 0, false)
		},
		"admin-key GET /v1/merchants/shop/followers": func(ctx context.Context, c *client.Client) error {
			_, err := c.Followers.List(ctx, "shop", dibs.Page{})
			return err
		},
		"admin-key POST /v1/merchants/shop/followers": func(ctx context.Context, c *client.Client) error {
			_, err := c.Followers.Import(ctx, "shop", strings.NewReader("7\n"), nil)
			return err
		},
		"admin-key GET /v1/merchants/shop": func(ctx context.Context, c *client.Client) error {
			_, err := c.Followers.Count(ctx, "shop")
			return err
		},
	})
}

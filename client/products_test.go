package client_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

func TestProducts(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key POST /v1/products": func(ctx context.Context, c *client.Client) error {
			_, err := c.Products.Create(ctx, dibs.ProductSpec{}, "")
			return err
		},
		"admin-key PATCH /v1/products/p": func(ctx context.Context, c *client.Client) error {
			_, err := c.Products.Patch(ctx, "p", dibs.ProductPatch{})
			return err
		},
		"admin-key GET /v1/products/p": func(ctx context.Context, c *client.Client) error {
			_, err := c.Products.Get(ctx, "p")
			return err
		},
		"admin-key GET /v1/products": func(ctx context.Context, c *client.Client) error {
			_, err := c.Products.List(ctx, dibs.Page{})
			return err
		},
	})
}

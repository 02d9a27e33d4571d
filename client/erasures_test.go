package client_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/erasure"
)

func TestErasures(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key GET /v1/users/7": func(ctx context.Context, c *client.Client) error {
			_, err := c.Erasures.Record(ctx, "7")
			return err
		},
		"admin-key POST /v1/users/7/erasure": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Erasures.Erase(ctx, "7", erasure.ErasureSpec{})
			return err
		},
		"admin-key GET /v1/erasures/e": func(ctx context.Context, c *client.Client) error {
			_, err := c.Erasures.Get(ctx, "e")
			return err
		},
		"admin-key GET /v1/erasures?open=true": func(ctx context.Context, c *client.Client) error {
			_, err := c.Erasures.List(ctx, true, dibs.Page{})
			return err
		},
	})
}

package client_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/webhooks"
)

func TestWebhooks(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key POST /v1/webhook-endpoints": func(ctx context.Context, c *client.Client) error {
			_, err := c.Webhooks.Create(ctx, webhooks.EndpointSpec{}, "")
			return err
		},
		"admin-key GET /v1/webhook-endpoints": func(ctx context.Context, c *client.Client) error {
			_, err := c.Webhooks.List(ctx)
			return err
		},
		"admin-key GET /v1/webhook-endpoints/w": func(ctx context.Context, c *client.Client) error {
			_, err := c.Webhooks.Get(ctx, "w")
			return err
		},
		"admin-key PATCH /v1/webhook-endpoints/w": func(ctx context.Context, c *client.Client) error {
			_, err := c.Webhooks.Patch(ctx, "w", webhooks.EndpointPatch{})
			return err
		},
		"admin-key DELETE /v1/webhook-endpoints/w": func(ctx context.Context, c *client.Client) error {
			_, err := c.Webhooks.Delete(ctx, "w")
			return err
		},
		"admin-key POST /v1/webhook-endpoints/w/rotate-secret": func(ctx context.Context, c *client.Client) error {
			_, err := c.Webhooks.RotateSecret(ctx, "w", webhooks.RotateSpec{})
			return err
		},
		"admin-key POST /v1/webhook-endpoints/w/test": func(ctx context.Context, c *client.Client) error {
			_, err := c.Webhooks.Test(ctx, "w")
			return err
		},
		"admin-key GET /v1/webhook-endpoints/w/deliveries?status=failed": func(ctx context.Context, c *client.Client) error {
			_, err := c.Webhooks.Deliveries(ctx, "w", webhooks.DeliveryFailed, dibs.Page{})
			return err
		},
		"admin-key POST /v1/webhook-endpoints/w/redeliver": func(ctx context.Context, c *client.Client) error {
			_, err := c.Webhooks.Redeliver(ctx, "w", "")
			return err
		},
	})
}

package client_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs/client"
)

func TestEvents(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key GET /v1/events?after=-1": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Events.After(ctx, -1)
			return err
		},
		"admin-key GET /v1/event-sinks": func(ctx context.Context, c *client.Client) error {
			_, err := c.Events.Sinks(ctx)
			return err
		},
	})
}

package client_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/gate"
)

func TestGates(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"user-token POST /v1/campaigns/a/queue": func(ctx context.Context, c *client.Client) error {
			_, err := c.Rooms.Join(ctx, "a")
			return err
		},
		"user-token GET /v1/campaigns/a/queue": func(ctx context.Context, c *client.Client) error {
			_, err := c.Rooms.Place(ctx, "a")
			return err
		},
		"user-token DELETE /v1/campaigns/a/queue": func(ctx context.Context, c *client.Client) error {
			return c.Rooms.Leave(ctx, "a")
		},
		"user-token POST /v1/campaigns/a/tickets/challenge": func(ctx context.Context, c *client.Client) error {
			_, err := c.Tickets.Challenge(ctx, "a")
			return err
		},
		"user-token POST /v1/campaigns/a/tickets": func(ctx context.Context, c *client.Client) error {
			_, err := c.Tickets.Get(ctx, "a", gate.TicketRequest{})
			return err
		},
		"user-token POST /v1/campaigns/a/lottery/entries": func(ctx context.Context, c *client.Client) error {
			_, err := c.Lotteries.Register(ctx, "a")
			return err
		},
		"user-token GET /v1/campaigns/a/lottery/result": func(ctx context.Context, c *client.Client) error {
			_, err := c.Lotteries.Result(ctx, "a")
			return err
		},
		" GET /v1/campaigns/a/lottery": func(ctx context.Context, c *client.Client) error {
			_, err := c.Lotteries.Get(ctx, "a")
			return err
		},
		"admin-key POST /v1/campaigns/a/lottery/public-value": func(ctx context.Context, c *client.Client) error {
			_, err := c.Lotteries.TellPublicValue(ctx, "a", "00")
			return err
		},
	})
}

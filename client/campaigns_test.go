package client_test

import (
	"context"
	"io"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

func TestCampaigns(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key GET /v1/campaigns/a%2Fb": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Get(ctx, "a/b")
			return err
		},
		"admin-key GET /v1/campaigns": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.List(ctx, dibs.Page{})
			return err
		},
		"admin-key POST /v1/campaigns": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Create(ctx, dibs.CampaignSpec{}, "")
			return err
		},
		"admin-key PATCH /v1/campaigns/a": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Patch(ctx, "a", dibs.CampaignPatch{})
			return err
		},
		"admin-key POST /v1/campaigns/a/publish": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Publish(ctx, "a")
			return err
		},
		"admin-key POST /v1/campaigns/a/pause": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Pause(ctx, "a")
			return err
		},
		"admin-key POST /v1/campaigns/a/resume": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Resume(ctx, "a")
			return err
		},
		"admin-key POST /v1/campaigns/a/end": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.End(ctx, "a")
			return err
		},
		"admin-key POST /v1/campaigns/a/stock": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.ChangeStock(ctx, "a", dibs.StockChange{}, "")
			return err
		},
		"admin-key GET /v1/campaigns/a/stats": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Stats(ctx, "a")
			return err
		},
		"admin-key GET /v1/campaigns/a/claims?status=pending&user_id=7": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Claims(ctx, "a", client.ClaimFilter{UserID: "7", Status: "pending"}, dibs.Page{})
			return err
		},
		"admin-key GET /v1/campaigns/a/claims?format=csv": func(ctx context.Context, c *client.Client) error {
			return c.Campaigns.ClaimsCSV(ctx, "a", client.ClaimFilter{}, io.Discard)
		},
	})
}

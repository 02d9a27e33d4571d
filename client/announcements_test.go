package client_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/client"
)

func TestAnnouncements(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key POST /v1/campaigns/a/announcements": func(ctx context.Context, c *client.Client) error {
			_, err := c.Announcements.Create(ctx, "a", announce.AnnouncementSpec{}, "")
			return err
		},
		"admin-key GET /v1/campaigns/a/announcements": func(ctx context.Context, c *client.Client) error {
			_, err := c.Announcements.List(ctx, "a", dibs.Page{})
			return err
		},
		"admin-key GET /v1/announcements/n": func(ctx context.Context, c *client.Client) error {
			_, err := c.Announcements.Get(ctx, "n")
			return err
		},
		"admin-key POST /v1/announcements/n/pause": func(ctx context.Context, c *client.Client) error {
			_, err := c.Announcements.Pause(ctx, "n")
			return err
		},
		"admin-key POST /v1/announcements/n/resume": func(ctx context.Context, c *client.Client) error {
			_, err := c.Announcements.Resume(ctx, "n")
			return err
		},
		"admin-key POST /v1/announcements/n/cancel": func(ctx context.Context, c *client.Client) error {
			_, err := c.Announcements.Cancel(ctx, "n")
			return err
		},
	})
}

package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/client"
)

func TestAudit(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key GET /v1/verify?campaign=a&campaign=b": func(ctx context.Context, c *client.Client) error {
			_, err := c.Audit.Verify(ctx, "a", "b")
			return err
		},
		"admin-key POST /v1/verify": func(ctx context.Context, c *client.Client) error {
			_, err := c.Audit.Repair(ctx, audit.RepairRequest{Campaigns: []string{"a", "b"}})
			return err
		},
		"admin-key GET /v1/audit?key=k&since=1970-01-01T00%3A00%3A01Z": func(ctx context.Context, c *client.Client) error {
			_, err := c.Audit.AdminLog(ctx, access.AdminActionFilter{Key: "k", Since: time.Unix(1, 0)}, dibs.Page{})
			return err
		},
		"admin-key GET /v1/audit/chain?cursor=7&limit=2": func(ctx context.Context, c *client.Client) error {
			_, err := c.Audit.Chain(ctx, dibs.Page{Limit: 2, Cursor: "7"})
			return err
		},
		"admin-key GET /v1/audit/verification": func(ctx context.Context, c *client.Client) error {
			_, err := c.Audit.VerifyLog(ctx, access.ChainPoint{})
			return err
		},
		"admin-key GET /v1/audit/verification?known=7%3Aab": func(ctx context.Context, c *client.Client) error {
			_, err := c.Audit.VerifyLog(ctx, access.ChainPoint{N: 7, Hash: "ab"})
			return err
		},
	})
}

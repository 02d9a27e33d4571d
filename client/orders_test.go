package client_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

func TestOrders(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"user-token GET /v1/claims/X": func(ctx context.Context, c *client.Client) error {
			_, err := c.Orders.Get(ctx, "X")
			return err
		},
		"user-token GET /v1/me/claims?cursor=x+y&limit=5": func(ctx context.Context, c *client.Client) error {
			_, err := c.Orders.Mine(ctx, dibs.OrderQuery{}, dibs.Page{Limit: 5, Cursor: "x y"})
			return err
		},
		"user-token GET /v1/me/claims?campaign_id=a": func(ctx context.Context, c *client.Client) error {
			_, err := c.Orders.Mine(ctx, dibs.OrderQuery{CampaignID: "a", UserID: "8", RefundDue: true}, dibs.Page{})
			return err
		},
		"admin-key GET /v1/claims?format=csv&product_id=p": func(ctx context.Context, c *client.Client) error {
			return c.Orders.CSV(ctx, dibs.OrderQuery{ProductID: "p"}, io.Discard)
		},
		"admin-key GET /v1/claims?campaign_id=a&code=c&order_type=2&payment_ref=p&refund_due=true&since=1970-01-01T00%3A00%3A01Z&status=pending&user_id=7": func(ctx context.Context, c *client.Client) error {
			_, err := c.Orders.List(ctx, dibs.OrderQuery{
				UserID: "7", Status: new(dibs.Pending), CampaignID: "a", OrderType: dibs.FlashOrder, PaymentRef: "p", RefundDue: true, Code: "c", Since: time.Unix(1, 0),
			}, dibs.Page{})
			return err
		},
		"admin-key POST /v1/claims/X/confirm": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Orders.Confirm(ctx, "X", dibs.PaymentSpec{})
			return err
		},
		"user-token POST /v1/claims/X/cancel": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Orders.Cancel(ctx, "X", "")
			return err
		},
		"admin-key POST /v1/claims/X/refund": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Orders.Refund(ctx, "X", dibs.RefundSpec{}, "")
			return err
		},
		"admin-key POST /v1/claims/X/redeem": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Orders.Redeem(ctx, "X", dibs.RedeemSpec{})
			return err
		},
		"admin-key POST /v1/claims/X/unredeem": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Orders.Unredeem(ctx, "X", dibs.UnredeemSpec{})
			return err
		},
		"admin-key POST /v1/claims/X/ship": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Orders.Ship(ctx, "X", dibs.ShipmentSpec{})
			return err
		},
	})
}

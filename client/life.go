package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// step takes a step of a claim with the API key, and reports whether it had
// been taken before.
func (c *Client) step(ctx context.Context, id, verb, token, key string, body any) (claim api.ClaimView, replayed bool, err error) {
	replayed, err = c.do(ctx, request{
		method: http.MethodPost, path: "/v1/claims/" + url.PathEscape(id) + "/" + verb, token: token, key: key, body: body,
	}, &claim)
	return claim, replayed, err
}

// Confirm takes note of a payment. The same reference again changes nothing,
// so that the call can be repeated until it is answered. The claim returned is
// a new one, which names the old, when a late payment took stock again.
func (c *Client) Confirm(ctx context.Context, id string, p dibs.PaymentSpec) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "confirm", c.opts.AdminKey, "", p)
}

// Cancel gives an unpaid claim up: the user's own with a user token, any with
// an API key. With a key, the call can be repeated.
func (c *Client) Cancel(ctx context.Context, id, key string) (api.ClaimView, bool, error) {
	token := c.opts.Token
	if token == "" {
		token = c.opts.AdminKey
	}
	return c.step(ctx, id, "cancel", token, key, nil)
}

// Refund takes note of money that went back. Only with a key can the call be
// repeated.
func (c *Client) Refund(ctx context.Context, id string, r dibs.RefundSpec, key string) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "refund", c.opts.AdminKey, key, r)
}

// Redeem takes note of the use of a coupon, once for each reference.
func (c *Client) Redeem(ctx context.Context, id string, r dibs.RedeemSpec) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "redeem", c.opts.AdminKey, "", r)
}

// Unredeem rolls the use of a coupon back.
func (c *Client) Unredeem(ctx context.Context, id string, r dibs.UnredeemSpec) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "unredeem", c.opts.AdminKey, "", r)
}

// Ship takes note of how the goods travel.
func (c *Client) Ship(ctx context.Context, id string, s dibs.ShipmentSpec) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "ship", c.opts.AdminKey, "", s)
}

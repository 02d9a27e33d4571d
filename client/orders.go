package client

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

// Orders follows claims after their grant. Users call Mine, users and admins Get and
// Cancel, admins the rest.
type Orders struct{ *caller }

// List looks for orders of all campaigns, newest first.
func (c Orders) List(ctx context.Context, q dibs.OrderQuery, page dibs.Page) (api.ListView[api.ClaimView], error) {
	return list[api.ClaimView](ctx, c.caller, "/v1/claims", orderQuery(q, page), c.opts.AdminKey)
}

// Mine lists the user's claims that a query names, newest first; UserID,
// PaymentRef, RefundDue and Code of it are not sent.
func (c Orders) Mine(ctx context.Context, q dibs.OrderQuery, page dibs.Page) (api.ListView[api.ClaimView], error) {
	q.UserID, q.PaymentRef, q.RefundDue, q.Code = "", "", false, ""
	return list[api.ClaimView](ctx, c.caller, "/v1/me/claims", orderQuery(q, page), c.opts.Token)
}

// CSV writes all orders that a query names to w. When it returns an error,
// what was written may be a part.
func (c Orders) CSV(ctx context.Context, q dibs.OrderQuery, w io.Writer) error {
	return c.csv(ctx, "/v1/claims", orderQuery(q, dibs.Page{}), w)
}

// Get returns a claim of the user, or any claim with an API key.
func (c Orders) Get(ctx context.Context, id string) (api.ClaimView, error) {
	return get[api.ClaimView](ctx, c.caller, "/v1/claims/"+url.PathEscape(id), nil, cmp.Or(c.opts.Token, c.opts.AdminKey))
}

func orderQuery(q dibs.OrderQuery, page dibs.Page) url.Values {
	v := pageQuery(page, "user_id", q.UserID, "campaign_id", q.CampaignID, "product_id", q.ProductID, "payment_ref", q.PaymentRef,
		"reference", q.Reference, "code", q.Code, "since", timeText(q.Since), "until", timeText(q.Until))
	if q.Status != nil {
		v.Set("status", q.Status.String())
	}
	if q.RefundDue {
		v.Set("refund_due", "true")
	}
	if q.OrderType != 0 {
		v.Set("order_type", strconv.Itoa(int(q.OrderType)))
	}
	return v
}

// step takes a step of a claim with the API key, and reports whether it had
// been taken before.
func (c Orders) step(ctx context.Context, id, verb, token, key string, body any) (claim api.ClaimView, replayed bool, err error) {
	return change[api.ClaimView](ctx, c.caller, request{path: "/v1/claims/" + url.PathEscape(id) + "/" + verb, token: token, key: key, body: body})
}

// Comment notes something about a claim for administrators; empty takes it away.
func (c Orders) Comment(ctx context.Context, id, comment string) (api.ClaimView, error) {
	return admin[api.ClaimView](ctx, c.caller, http.MethodPatch, "/v1/claims/"+url.PathEscape(id), "", map[string]string{"comment": comment})
}

// Confirm takes note of a payment. The same reference again changes nothing,
// so that the call can be repeated until it is answered. The claim returned is
// a new one, which names the old, when a late payment took stock again.
func (c Orders) Confirm(ctx context.Context, id string, p dibs.PaymentSpec) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "confirm", c.opts.AdminKey, "", p)
}

// Cancel gives an unpaid claim up: the user's own with a user token, any with
// an API key. With a key, the call can be repeated.
func (c Orders) Cancel(ctx context.Context, id, key string) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "cancel", cmp.Or(c.opts.Token, c.opts.AdminKey), key, nil)
}

// Refund takes note of money that went back. Only with a key can the call be
// repeated.
func (c Orders) Refund(ctx context.Context, id string, r dibs.RefundSpec, key string) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "refund", c.opts.AdminKey, key, r)
}

// Redeem takes note of the use of a coupon, once for each reference.
func (c Orders) Redeem(ctx context.Context, id string, r dibs.RedeemSpec) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "redeem", c.opts.AdminKey, "", r)
}

// Unredeem rolls the use of a coupon back.
func (c Orders) Unredeem(ctx context.Context, id string, r dibs.UnredeemSpec) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "unredeem", c.opts.AdminKey, "", r)
}

// Ship takes note of how the goods travel.
func (c Orders) Ship(ctx context.Context, id string, s dibs.ShipmentSpec) (api.ClaimView, bool, error) {
	return c.step(ctx, id, "ship", c.opts.AdminKey, "", s)
}

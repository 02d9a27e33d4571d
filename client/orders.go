package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// Orders looks for orders of all campaigns, newest first.
func (c *Client) Orders(ctx context.Context, q dibs.OrderQuery, page dibs.Page) (l api.ListView[api.ClaimView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/claims", query: orderQuery(q, page), token: c.opts.AdminKey}, &l)
	return l, err
}

// MyOrders lists the user's claims that a query names, newest first; UserID,
// PaymentRef and Code of it are not sent.
func (c *Client) MyOrders(ctx context.Context, q dibs.OrderQuery, page dibs.Page) (l api.ListView[api.ClaimView], err error) {
	q.UserID, q.PaymentRef, q.Code = "", "", ""
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/me/claims", query: orderQuery(q, page), token: c.opts.Token}, &l)
	return l, err
}

// OrdersCSV writes all orders that a query names to w. When it returns an error,
// what was written may be a part.
func (c *Client) OrdersCSV(ctx context.Context, q dibs.OrderQuery, w io.Writer) error {
	query := orderQuery(q, dibs.Page{})
	query.Set("format", "csv")
	return c.stream(ctx, request{method: http.MethodGet, path: "/v1/claims", query: query, token: c.opts.AdminKey}, w)
}

func orderQuery(q dibs.OrderQuery, page dibs.Page) url.Values {
	v := pageQuery(page)
	for name, value := range map[string]string{
		"user_id": q.UserID, "campaign_id": q.CampaignID, "product_id": q.ProductID, "payment_ref": q.PaymentRef, "code": q.Code,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Status != nil {
		v.Set("status", q.Status.String())
	}
	if q.OrderType != 0 {
		v.Set("order_type", strconv.Itoa(int(q.OrderType)))
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if !q.Until.IsZero() {
		v.Set("until", q.Until.UTC().Format(time.RFC3339Nano))
	}
	return v
}

// stream writes an answer of any length to w.
func (c *Client) stream(ctx context.Context, r request, w io.Writer) error {
	resp, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return fmt.Errorf("client: %s %s: %w", r.method, r.path, err)
		}
		return problemOf(resp, raw)
	}
	_, err = io.Copy(w, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("client: %s %s: the stream broke: %w", r.method, r.path, err)
	}
	return nil
}

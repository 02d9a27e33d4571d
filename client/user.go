package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// Claim asks for quantity units of a campaign; 0 means 1. With a key, the same
// call can be repeated, and replayed tells that the claim had been granted
// before. A refusal is an *Error.
func (c *Client) Claim(ctx context.Context, campaign string, quantity int64, key string) (claim api.ClaimView, replayed bool, err error) {
	body := struct {
		Quantity int64 `json:"quantity,omitempty"`
	}{quantity}
	replayed, err = c.do(ctx, request{
		method: http.MethodPost, path: campaignPath(campaign) + "/claims",
		token: c.opts.Token, key: key, body: body, gates: true,
	}, &claim)
	return claim, replayed, err
}

// Order asks for quantity units of a product's own stock; 0 means 1. It answers
// as Claim does.
func (c *Client) Order(ctx context.Context, product string, quantity int64, key string) (claim api.ClaimView, replayed bool, err error) {
	body := struct {
		Quantity int64 `json:"quantity,omitempty"`
	}{quantity}
	replayed, err = c.do(ctx, request{
		method: http.MethodPost, path: "/v1/products/" + url.PathEscape(product) + "/orders",
		token: c.opts.Token, key: key, body: body,
	}, &claim)
	return claim, replayed, err
}

// FindClaim returns a claim of the user, or any claim with an API key.
func (c *Client) FindClaim(ctx context.Context, id string) (claim api.ClaimView, err error) {
	token := c.opts.Token
	if token == "" {
		token = c.opts.AdminKey
	}
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/claims/" + url.PathEscape(id), token: token}, &claim)
	return claim, err
}

// MyClaims lists the user's claims, newest first.
func (c *Client) MyClaims(ctx context.Context, page dibs.Page) (l api.ListView[api.ClaimView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/me/claims", query: pageQuery(page), token: c.opts.Token}, &l)
	return l, err
}

// Campaign returns a campaign: with an API key in full, drafts too.
func (c *Client) Campaign(ctx context.Context, id string) (v api.CampaignView, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: campaignPath(id), token: c.opts.AdminKey}, &v)
	return v, err
}

// Campaigns lists campaigns, newest first: with an API key in full, drafts too.
func (c *Client) Campaigns(ctx context.Context, page dibs.Page) (l api.ListView[api.CampaignView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/campaigns", query: pageQuery(page), token: c.opts.AdminKey}, &l)
	return l, err
}

// Time returns the server's time.
func (c *Client) Time(ctx context.Context) (time.Time, error) {
	var v struct {
		Now time.Time `json:"now"`
	}
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/v1/time"}, &v)
	return v.Now, err
}

func campaignPath(id string) string { return "/v1/campaigns/" + url.PathEscape(id) }

func pageQuery(p dibs.Page) url.Values {
	q := url.Values{}
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		q.Set("cursor", p.Cursor)
	}
	return q
}

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
)

// admin sends an admin call and returns what was answered.
func admin[T any](ctx context.Context, c *Client, method, path, key string, body any) (v T, err error) {
	_, err = c.do(ctx, request{method: method, path: path, token: c.opts.AdminKey, key: key, body: body}, &v)
	return v, err
}

// CreateProduct creates a product. With a key, the call can be repeated.
func (c *Client) CreateProduct(ctx context.Context, spec dibs.ProductSpec, key string) (api.ProductView, error) {
	return admin[api.ProductView](ctx, c, http.MethodPost, "/v1/products", key, spec)
}

// PatchProduct changes a product; nil fields stay.
func (c *Client) PatchProduct(ctx context.Context, id string, patch dibs.ProductPatch) (api.ProductView, error) {
	return admin[api.ProductView](ctx, c, http.MethodPatch, "/v1/products/"+url.PathEscape(id), "", patch)
}

// Product returns a product.
func (c *Client) Product(ctx context.Context, id string) (api.ProductView, error) {
	return admin[api.ProductView](ctx, c, http.MethodGet, "/v1/products/"+url.PathEscape(id), "", nil)
}

// Products lists products by id.
func (c *Client) Products(ctx context.Context, page dibs.Page) (l api.ListView[api.ProductView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/products", query: pageQuery(page), token: c.opts.AdminKey}, &l)
	return l, err
}

// CreateCampaign drafts a campaign. With a key, the call can be repeated.
func (c *Client) CreateCampaign(ctx context.Context, spec dibs.CampaignSpec, key string) (api.CampaignView, error) {
	return admin[api.CampaignView](ctx, c, http.MethodPost, "/v1/campaigns", key, spec)
}

// PatchCampaign changes a campaign; nil fields stay.
func (c *Client) PatchCampaign(ctx context.Context, id string, patch dibs.CampaignPatch) (api.CampaignView, error) {
	return admin[api.CampaignView](ctx, c, http.MethodPatch, campaignPath(id), "", patch)
}

// Publish opens a draft to users. Repeating it changes nothing, as with Pause,
// Resume and End.
func (c *Client) Publish(ctx context.Context, id string) (api.CampaignView, error) {
	return c.act(ctx, id, "publish")
}

// Pause makes claims be refused until Resume.
func (c *Client) Pause(ctx context.Context, id string) (api.CampaignView, error) {
	return c.act(ctx, id, "pause")
}

// Resume lets a paused campaign grant again.
func (c *Client) Resume(ctx context.Context, id string) (api.CampaignView, error) {
	return c.act(ctx, id, "resume")
}

// End ends a campaign for good.
func (c *Client) End(ctx context.Context, id string) (api.CampaignView, error) {
	return c.act(ctx, id, "end")
}

func (c *Client) act(ctx context.Context, id, verb string) (api.CampaignView, error) {
	return admin[api.CampaignView](ctx, c, http.MethodPost, campaignPath(id)+"/"+verb, "", nil)
}

// ChangeStock restocks a campaign or withdraws from it. With a key, repeating
// the call changes the stock once.
func (c *Client) ChangeStock(ctx context.Context, id string, change dibs.StockChange, key string) (api.CampaignView, error) {
	return admin[api.CampaignView](ctx, c, http.MethodPost, campaignPath(id)+"/stock", key, change)
}

// Stats returns a campaign's numbers.
func (c *Client) Stats(ctx context.Context, id string) (api.StatsView, error) {
	return admin[api.StatsView](ctx, c, http.MethodGet, campaignPath(id)+"/stats", "", nil)
}

// ClaimFilter narrows a campaign's claims; empty fields do not filter.
type ClaimFilter struct {
	UserID string
	// Status is a status word, `pending`.
	Status string
}

func (f ClaimFilter) query(page dibs.Page) url.Values {
	q := pageQuery(page)
	if f.UserID != "" {
		q.Set("user_id", f.UserID)
	}
	if f.Status != "" {
		q.Set("status", f.Status)
	}
	return q
}

// CampaignClaims lists a campaign's claims.
func (c *Client) CampaignClaims(ctx context.Context, id string, f ClaimFilter, page dibs.Page) (l api.ListView[api.ClaimView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: campaignPath(id) + "/claims", query: f.query(page), token: c.opts.AdminKey}, &l)
	return l, err
}

// CampaignClaimsCSV writes all of a campaign's claims to w. When it returns an
// error, what was written may be a part.
func (c *Client) CampaignClaimsCSV(ctx context.Context, id string, f ClaimFilter, w io.Writer) error {
	q := f.query(dibs.Page{})
	q.Set("format", "csv")
	return c.stream(ctx, request{method: http.MethodGet, path: campaignPath(id) + "/claims", query: q, token: c.opts.AdminKey}, w)
}

// Verify compares engine and ledger; no ids mean all campaigns.
func (c *Client) Verify(ctx context.Context, campaignIDs ...string) (v audit.Report, err error) {
	q := url.Values{"campaign": campaignIDs}
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/verify", query: q, token: c.opts.AdminKey}, &v)
	return v, err
}

// Repair compares engine and ledger, puts right what can be, and compares again.
func (c *Client) Repair(ctx context.Context, req audit.RepairRequest) (audit.RepairReport, error) {
	body := struct {
		Repair      bool              `json:"repair"`
		Campaigns   []string          `json:"campaigns,omitempty"`
		OlderLedger audit.OlderLedger `json:"older_ledger,omitempty"`
	}{true, req.Campaigns, req.OlderLedger}
	return admin[audit.RepairReport](ctx, c, http.MethodPost, "/v1/verify", "", body)
}

// Health returns the server's readiness. A server that is not ready is no
// error: the view says so.
func (c *Client) Health(ctx context.Context) (v api.HealthView, err error) {
	resp, err := c.send(ctx, request{method: http.MethodGet, path: "/readyz"})
	if err != nil {
		return v, err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return v, fmt.Errorf("client: GET /readyz: %w", err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return v, problemOf(resp, raw)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("client: GET /readyz: %w", err)
	}
	return v, nil
}

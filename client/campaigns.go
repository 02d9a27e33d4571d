package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/campaigns"
)

// Campaigns manages campaigns. Everybody may call Get, List and Watch, admins the rest.
type Campaigns struct{ *caller }

// Create drafts a campaign. With a key, the call can be repeated.
func (c Campaigns) Create(ctx context.Context, spec dibs.CampaignSpec, key string) (api.CampaignView, error) {
	return admin[api.CampaignView](ctx, c.caller, http.MethodPost, "/v1/campaigns", key, spec)
}

// Patch changes a campaign; nil fields stay.
func (c Campaigns) Patch(ctx context.Context, id string, patch dibs.CampaignPatch) (api.CampaignView, error) {
	return admin[api.CampaignView](ctx, c.caller, http.MethodPatch, campaignPath(id), "", patch)
}

// Publish opens a draft to users. Repeating it changes nothing, as with Pause,
// Resume and End.
func (c Campaigns) Publish(ctx context.Context, id string) (api.CampaignView, error) {
	return c.act(ctx, id, "publish")
}

// Pause makes claims be refused until Resume.
func (c Campaigns) Pause(ctx context.Context, id string) (api.CampaignView, error) {
	return c.act(ctx, id, "pause")
}

// Resume lets a paused campaign grant again.
func (c Campaigns) Resume(ctx context.Context, id string) (api.CampaignView, error) {
	return c.act(ctx, id, "resume")
}

// End ends a campaign for good.
func (c Campaigns) End(ctx context.Context, id string) (api.CampaignView, error) {
	return c.act(ctx, id, "end")
}

func (c Campaigns) act(ctx context.Context, id, verb string) (api.CampaignView, error) {
	return admin[api.CampaignView](ctx, c.caller, http.MethodPost, campaignPath(id)+"/"+verb, "", nil)
}

// ChangeStock restocks a campaign or withdraws from it. With a key, repeating
// the call changes the stock once.
func (c Campaigns) ChangeStock(ctx context.Context, id string, change dibs.StockChange, key string) (api.CampaignView, error) {
	return admin[api.CampaignView](ctx, c.caller, http.MethodPost, campaignPath(id)+"/stock", key, change)
}

// AbandonShard gives a shard up whose deployment of the engine is lost for good.
func (c Campaigns) AbandonShard(ctx context.Context, id string, shard int, a campaigns.Abandonment) (api.CampaignView, error) {
	return admin[api.CampaignView](ctx, c.caller, http.MethodPost, fmt.Sprintf("%s/shards/%d/abandon", campaignPath(id), shard), "", a)
}

// Stats returns a campaign's numbers.
func (c Campaigns) Stats(ctx context.Context, id string) (api.StatsView, error) {
	return admin[api.StatsView](ctx, c.caller, http.MethodGet, campaignPath(id)+"/stats", "", nil)
}

// Claims lists a campaign's claims.
func (c Campaigns) Claims(ctx context.Context, id string, f ClaimFilter, page dibs.Page) (api.ListView[api.ClaimView], error) {
	return list[api.ClaimView](ctx, c.caller, campaignPath(id)+"/claims", f.query(page), c.opts.AdminKey)
}

// ClaimsCSV writes all of a campaign's claims to w. When it returns an
// error, what was written may be a part.
func (c Campaigns) ClaimsCSV(ctx context.Context, id string, f ClaimFilter, w io.Writer) error {
	return c.csv(ctx, campaignPath(id)+"/claims", f.query(dibs.Page{}), w)
}

// Get returns a campaign: with an API key in full, drafts too.
func (c Campaigns) Get(ctx context.Context, id string) (api.CampaignView, error) {
	return get[api.CampaignView](ctx, c.caller, campaignPath(id), nil, c.opts.AdminKey)
}

// Of lists the campaigns of a product, as List does.
func (c Campaigns) Of(ctx context.Context, product string, page dibs.Page) (api.ListView[api.CampaignView], error) {
	query := pageQuery(page)
	query.Set("product_id", product)
	return list[api.CampaignView](ctx, c.caller, "/v1/campaigns", query, c.opts.AdminKey)
}

// List lists campaigns, newest first: with an API key in full, drafts too.
func (c Campaigns) List(ctx context.Context, page dibs.Page) (api.ListView[api.CampaignView], error) {
	return list[api.CampaignView](ctx, c.caller, "/v1/campaigns", pageQuery(page), c.opts.AdminKey)
}

// ClaimFilter narrows a campaign's claims; empty fields do not filter.
type ClaimFilter struct {
	UserID string
	// Status is a status word, `pending`.
	Status string
}

func (f ClaimFilter) query(page dibs.Page) url.Values {
	return pageQuery(page, "user_id", f.UserID, "status", f.Status)
}

func campaignPath(id string) string { return "/v1/campaigns/" + url.PathEscape(id) }

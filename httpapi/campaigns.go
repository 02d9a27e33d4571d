package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

const campaignExample = `{"id":"phone-noon","kind":"sale","title":"Phone at noon","starts_at":"2026-12-01T04:00:00Z","ends_at":"2026-12-01T06:00:00Z",` +
	`"stock":{"units":200},"limit_per_user":1,"price":{"amount":99900,"currency":"CNY"},"pay_within":"15m"}`

// earlyCache is how long the public view of a campaign that is not running may
// be kept by browsers and proxies; of one that runs, a second.
const earlyCache = 10 * time.Second

var errNoCampaign = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such campaign", ZH: "该活动不存在"})

func (a *api) registerCatalog() {
	register(a, operation{
		method: http.MethodGet, path: "/v1/campaigns", id: "list-campaigns", tag: tagCatalog, access: public, strictQuery: true,
		summary:     "List campaigns, newest first",
		description: "Everyone sees what is published; an API key sees drafts too, and every field.",
	}, func(ctx context.Context, c *call, in *struct{ PageQuery }) (v dibs.ListView[dibs.CampaignView], err error) {
		l, err := a.svc.Campaigns(ctx, !c.who.isAdmin(), in.page())
		if err != nil {
			return v, err
		}
		v.NextCursor, v.Items = l.NextCursor, make([]dibs.CampaignView, len(l.Items))
		keep := earlyCache
		for i := range l.Items {
			if v.Items[i], err = a.svc.CampaignView(ctx, &l.Items[i], c.who.isAdmin()); err != nil {
				return v, err
			}
			keep = min(keep, a.keepFor(&v.Items[i]))
		}
		return v, a.cached(c, v, keep)
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}", id: "get-campaign", tag: tagCatalog, access: public,
		summary:     "Show a campaign",
		description: "Product, window, state and what remains. With an `ETag`; `If-None-Match` is answered by 304.",
	}, func(ctx context.Context, c *call, in *PathID) (dibs.CampaignView, error) {
		read := a.svc.Campaign
		if c.who.isAdmin() {
			// Admins change campaigns through any node and want to see it.
			read = a.svc.CampaignNow
		}
		campaign, err := read(ctx, in.ID)
		if err != nil {
			return dibs.CampaignView{}, err
		}
		if campaign.State == dibs.Draft && !c.who.isAdmin() {
			return dibs.CampaignView{}, errNoCampaign
		}
		v, err := a.svc.CampaignView(ctx, campaign, c.who.isAdmin())
		if err != nil {
			return dibs.CampaignView{}, err
		}
		return v, a.cached(c, v, a.keepFor(&v))
	})
}

// keepFor is how long a view stays true enough to be kept.
func (a *api) keepFor(v *dibs.CampaignView) time.Duration {
	now := a.cfg.Now()
	switch {
	case now.Before(v.StartsAt):
		return max(time.Second, min(earlyCache, v.StartsAt.Sub(now).Truncate(time.Second)))
	case v.State == dibs.EndedState || !now.Before(v.EndsAt):
		return earlyCache
	}
	return time.Second
}

// cached sets the cache headers of a catalog view, and answers 304 to who has
// it already. An admin's view is kept by nobody.
func (a *api) cached(c *call, view any, keep time.Duration) error {
	raw, err := encodeJSON(view)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := c.Header()
	h.Set("ETag", tag)
	h.Add("Vary", "Authorization")
	if c.who.isAdmin() {
		h["Cache-Control"] = noStore
	} else {
		h["Cache-Control"] = cacheControl(keep)
	}
	if hasTag(c.request.Header, tag) {
		c.code = http.StatusNotModified
	}
	return nil
}

// hasTag reports whether If-None-Match names the tag, by weak comparison.
func hasTag(h http.Header, tag string) bool {
	for _, line := range h["If-None-Match"] {
		for part := range strings.SplitSeq(line, ",") {
			if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == tag {
				return true
			}
		}
	}
	return false
}

func (a *api) registerCampaigns() {
	change(a, operation{
		method: http.MethodPost, path: "/v1/campaigns", id: "create-campaign", tag: tagAdmin, access: adminOnly, role: dibs.RoleEditor, status: http.StatusCreated,
		summary: "Draft a campaign", example: campaignExample, maxBody: a.cfg.MaxAdminBody,
		description: "A draft is invisible to users until it is published. `stock` has exactly one of `units`, `items`, `codes` and `redpacket`.",
	}, a.createCampaign)
	change(a, operation{
		method: http.MethodPatch, path: "/v1/campaigns/{id}", id: "patch-campaign", tag: tagAdmin, access: adminOnly, role: dibs.RoleEditor,
		summary: "Change a campaign", example: `{"ends_at":"2026-12-01T07:00:00Z"}`, maxBody: a.cfg.MaxBody,
		description: "Fields that are absent or null stay. After publishing, only title, comment, ends_at, low_stock and an upward limit_per_user may change, and keys need the role publisher.",
	}, func(ctx context.Context, c *call, in *PathID, patch *dibs.CampaignPatch) (dibs.CampaignView, error) {
		if err := a.mayPatch(ctx, c, in.ID); err != nil {
			return dibs.CampaignView{}, err
		}
		return a.adminView(ctx)(a.svc.PatchCampaign(ctx, in.ID, *patch))
	})
	for _, act := range []struct {
		verb, summary string
		do            func(context.Context, string) (*dibs.Campaign, error)
	}{
		{"publish", "Publish a draft: it is warmed, visible, and grants inside its window", a.svc.Publish},
		{"pause", "Pause: claims are refused until it is resumed", a.svc.Pause},
		{"resume", "Resume a paused campaign", a.svc.Resume},
		{"end", "End a campaign for good", a.svc.End},
	} {
		change(a, operation{
			method: http.MethodPost, path: "/v1/campaigns/{id}/" + act.verb, id: act.verb + "-campaign", tag: tagAdmin, access: adminOnly, role: dibs.RolePublisher,
			summary: act.summary, description: "The same action again changes nothing and is no error.", maxBody: a.cfg.MaxBody,
		}, func(ctx context.Context, _ *call, in *PathID, _ *noBody) (dibs.CampaignView, error) {
			return a.adminView(ctx)(act.do(ctx, in.ID))
		})
	}
	change(a, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/stock", id: "change-stock", tag: tagAdmin, access: adminOnly, role: dibs.RolePublisher,
		summary: "Restock, or withdraw", example: `{"delta":50,"why":"found another box"}`, maxBody: a.cfg.MaxAdminBody,
		description: "A negative `delta` withdraws, never below what is granted. A campaign of items is restocked with `items`.",
	}, func(ctx context.Context, c *call, in *PathID, ch *dibs.StockChange) (dibs.CampaignView, error) {
		ref, err := onceRef(c)
		if err != nil {
			return dibs.CampaignView{}, err
		}
		return a.adminView(ctx)(a.svc.ChangeStock(ctx, in.ID, *ch, ref))
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/stats", id: "campaign-stats", tag: tagAdmin, access: adminOnly,
		summary: "Show a campaign's numbers", description: "`granted` counts units granted and not released.",
	}, func(ctx context.Context, _ *call, in *PathID) (dibs.StatsView, error) {
		return a.svc.Stats(ctx, in.ID)
	})
}

// mayPatch refuses keys for drafts alone what is on offer.
func (a *api) mayPatch(ctx context.Context, c *call, id string) error {
	if c.who.role.May(dibs.RolePublisher) {
		return nil
	}
	campaign, err := a.svc.CampaignNow(ctx, id)
	if err == nil && campaign.State != dibs.Draft {
		err = errRole(dibs.RolePublisher)
	}
	return err
}

// createCampaign drafts a campaign. Without an id of its own, one is made from
// the Idempotency-Key, so that a repeat finds the draft even when the memory
// of the first answer was lost.
func (a *api) createCampaign(ctx context.Context, c *call, _ *struct{}, spec *dibs.CampaignSpec) (dibs.CampaignView, error) {
	ref, err := onceRef(c)
	if err != nil {
		return dibs.CampaignView{}, err
	}
	made := spec.ID == "" && ref != ""
	if made {
		spec.ID = "c-" + ref
	}
	campaign, err := a.svc.CreateCampaign(ctx, *spec)
	if made && errors.Is(err, dibs.ErrAlreadyExists) {
		campaign, err = a.svc.Campaign(ctx, spec.ID)
	}
	if err != nil {
		return dibs.CampaignView{}, err
	}
	c.Header().Set("Location", "/v1/campaigns/"+campaign.ID)
	return a.adminView(ctx)(campaign, nil)
}

// adminView shows what an action on a campaign returned.
func (a *api) adminView(ctx context.Context) func(*dibs.Campaign, error) (dibs.CampaignView, error) {
	return func(c *dibs.Campaign, err error) (dibs.CampaignView, error) {
		if err != nil {
			return dibs.CampaignView{}, err
		}
		return a.svc.CampaignView(ctx, c, true)
	}
}

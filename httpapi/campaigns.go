package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi/internal/viewcache"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
)

// Campaigns is what the handlers of campaigns call. All methods that name a campaign
// return ErrNotFound for an id without one.
type Campaigns interface {
	// Create stores a new draft. *dibs.Error of InvalidRequest with every
	// fault, or of AlreadyExists.
	Create(ctx context.Context, spec dibs.CampaignSpec) (*dibs.Campaign, error)
	// PatchIf changes a campaign, where may returns nil for the very version that is
	// changed. *dibs.Error of InvalidState for fields that its state does not allow, of
	// InvalidRequest for values that are never valid; the error of may otherwise.
	PatchIf(ctx context.Context, id string, patch dibs.CampaignPatch, may func(*dibs.Campaign) error) (*dibs.Campaign, error)
	// PublishVersion opens a draft for claims. Like the next three, it may be repeated;
	// *dibs.Error of InvalidState where the state does not allow it.
	// With a version it publishes that one alone; nil for any.
	PublishVersion(ctx context.Context, id string, version *int64) (*dibs.Campaign, error)
	// Pause and End refuse claims: no claim is granted after they return.
	Pause(ctx context.Context, id string) (*dibs.Campaign, error)
	Resume(ctx context.Context, id string) (*dibs.Campaign, error)
	End(ctx context.Context, id string) (*dibs.Campaign, error)
	// Get may miss the latest changes of other nodes; Now has them all, and
	// reads the ledger.
	Get(ctx context.Context, id string) (*dibs.Campaign, error)
	Now(ctx context.Context, id string) (*dibs.Campaign, error)
	// List returns campaigns, newest first: all, or those of a product; public leaves
	// drafts out.
	List(ctx context.Context, public bool, product string, page dibs.Page) (dibs.List[dibs.Campaign], error)
	campaignViews
	// Stats counts grants that are not settled yet, too. The refusals are those of this
	// node.
	Stats(ctx context.Context, id string) (api.StatsView, error)
}

const campaignExample = `{"id":"phone-noon","kind":"sale","title":"Phone at noon","starts_at":"2026-12-01T04:00:00Z","ends_at":"2026-12-01T06:00:00Z",` +
	`"stock":{"units":200},"limit_per_user":1,"price":{"amount":99900,"currency":"CNY"},"pay_within":"15m"}`

// campaignHandlers show and change campaigns. The views for callers without
// credentials come from the page cache.
// Users get views that may be some tenths of a second old; administrators get those
// of the ledger, so that each of them sees their own change.
type campaignHandlers struct {
	*routes
	campaigns Campaigns
}

func (h *campaignHandlers) register() {
	subject(h.routes, "/v1/campaigns/{id}", func(ctx context.Context, id string) (api.CampaignView, error) {
		// The log stays in one language.
		return showCampaign(ctx, h.campaigns, false)(h.campaigns.Now(ctx, id))
	})
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/campaigns", id: "list-campaigns", tag: tagCatalog, access: public, strictQuery: true,
		summary:     "List campaigns, newest first",
		description: "Everyone sees what is published; an API key sees drafts too, and every field.",
	}, h.list)
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}", id: "get-campaign", tag: tagCatalog, access: public,
		summary:     "Show a campaign",
		description: "Product, window, state and what remains. With an `ETag`; `If-None-Match` is answered by 304.",
	}, h.get)
	checkedChange(h.routes, operation{
		method: http.MethodPost, path: "/v1/campaigns", id: "create-campaign", tag: tagAdmin, access: adminOnly, role: access.RoleEditor, status: http.StatusCreated,
		summary: "Draft a campaign", example: campaignExample, maxBody: h.maxAdminBody,
		description: "A draft is invisible to users until it is published. `stock` has exactly one of `units`, `items`, `codes` and `redpacket`.",
	}, func(spec *dibs.CampaignSpec) error { _, err := spec.Campaign(time.Now()); return err }, h.create)
	change(h.routes, operation{
		method: http.MethodPatch, path: "/v1/campaigns/{id}", id: "patch-campaign", tag: tagAdmin, access: adminOnly, role: access.RoleEditor,
		summary: "Change a campaign", example: `{"ends_at":"2026-12-01T07:00:00Z"}`,
		second: &second{act: access.ActRedPacket, need: h.opensRedPacket},
		description: "Fields that are absent stay; null takes an optional field away. `stock` is a draft's: another number of its kind. After publishing, only title, comment, ends_at, low_stock and an upward limit_per_user, limit_per_product or shards may change, and keys need the role publisher. " +
			"With `version`, nothing changes when the campaign was changed since: two administrators do not overwrite each other unseen.",
	}, h.patch)
	change(h.routes, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/publish", id: "publish-campaign", tag: tagAdmin, access: adminOnly, role: access.RolePublisher,
		summary: "Publish a draft: it is warmed, visible, and grants inside its window", mayBeEmpty: true, example: `{"version":3}`,
		second:      &second{act: access.ActRedPacket, need: h.isDraftOfRedPacket, pin: h.pinVersion},
		description: "The same action again changes nothing and is no error. With `version`, nothing is published when the draft was changed since.",
	}, h.publish)
	for _, action := range []struct {
		verb, summary string
		do            func(context.Context, string) (*dibs.Campaign, error)
	}{
		{"pause", "Pause: claims are refused until it is resumed", h.campaigns.Pause},
		{"resume", "Resume a paused campaign", h.campaigns.Resume},
		{"end", "End a campaign for good", h.campaigns.End},
	} {
		change(h.routes, operation{
			method: http.MethodPost, path: "/v1/campaigns/{id}/" + action.verb, id: action.verb + "-campaign", tag: tagAdmin, access: adminOnly, role: access.RolePublisher,
			summary: action.summary, description: "The same action again changes nothing and is no error.",
		}, actionByID(func(ctx context.Context, id string) (api.CampaignView, error) {
			return showCampaign(ctx, h.campaigns, callOf(ctx).zh)(action.do(ctx, id))
		}))
	}
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/stats", id: "campaign-stats", tag: tagAdmin, access: adminOnly,
		summary: "Show a campaign's numbers", description: "`granted` counts units granted and not released. " +
			"`refused` has the refusals of the node that answers, since it started, as `refused_counted_by` says; all else is of all nodes.",
	}, func(ctx context.Context, c *call, in *PathID) (api.StatsView, error) {
		v, err := h.campaigns.Stats(ctx, in.ID)
		return v.In(c.zh), err
	})
}

// campaignViews make views of campaigns.
type campaignViews interface {
	// CampaignView shows a campaign with what remains and its product; admin adds the
	// fields that users must not see.
	CampaignView(ctx context.Context, c *dibs.Campaign, admin bool) (api.CampaignView, error)
}

// showCampaign shows the campaign that a call returned, as administrators see it, in Chinese
// when zh is set.
func showCampaign(ctx context.Context, views campaignViews, zh bool) func(*dibs.Campaign, error) (api.CampaignView, error) {
	return func(c *dibs.Campaign, err error) (api.CampaignView, error) {
		if err != nil {
			return api.CampaignView{}, err
		}
		v, err := views.CampaignView(ctx, c, true)
		return v.In(zh), err
	}
}

// campaignsInput asks for campaigns.
type campaignsInput struct {
	PageQuery
	ProductID string `query:"product_id" maxLength:"64" doc:"only those of this product"`
}

func (h *campaignHandlers) list(ctx context.Context, c *call, in *campaignsInput) (v api.ListView[api.CampaignView], err error) {
	l, err := h.campaigns.List(ctx, !c.caller.isAdmin(), in.ProductID, in.page())
	if err != nil {
		return v, err
	}
	v.NextCursor, v.Items = l.NextCursor, make([]api.CampaignView, len(l.Items))
	// A list may be kept for as long as the view in it that changes first.
	keep := web.MaxKeep
	for i := range l.Items {
		if v.Items[i], err = h.campaigns.CampaignView(ctx, &l.Items[i], c.caller.isAdmin()); err != nil {
			return v, err
		}
		v.Items[i] = v.Items[i].In(c.zh)
		keep = min(keep, h.keepView(&v.Items[i]))
	}
	return v, cacheable(c, v, keep)
}

func (h *campaignHandlers) get(ctx context.Context, c *call, in *PathID) (api.CampaignView, error) {
	read := h.campaigns.Get
	if c.caller.isAdmin() {
		// An administrator sees a change at once, through whichever node it was made.
		read = h.campaigns.Now
	}
	campaign, err := read(ctx, in.ID)
	if err != nil {
		return api.CampaignView{}, err
	}
	if campaign.State == dibs.Draft && !c.caller.isAdmin() {
		return api.CampaignView{}, dibs.NoSuchCampaign
	}
	v, err := h.campaigns.CampaignView(ctx, campaign, c.caller.isAdmin())
	if err != nil {
		return api.CampaignView{}, err
	}
	v = v.In(c.zh)
	return v, cacheable(c, v, h.keepView(&v))
}

// keepView is how long others may keep the view of a campaign.
// That of an upcoming campaign is kept until its start at most, or for a second: the
// countdown must not outlive the start.
func (h *campaignHandlers) keepView(v *api.CampaignView) time.Duration {
	now := h.now()
	return viewcache.KeepFor(now, v.StartsAt, v.Phase(now))
}

// cacheable sets the cache headers of a view, and answers 304 to a caller that has
// it already. Nothing may keep an administrator's view.
func cacheable(c *call, view any, keep time.Duration) error {
	raw, err := web.EncodeJSON(view)
	if err != nil {
		return err
	}
	tag, h := web.Tag(raw), c.Header()
	h["Etag"] = []string{tag}
	web.Vary(h, []string{"Authorization"})
	if c.caller.isAdmin() {
		h["Cache-Control"] = web.NoStore
	} else {
		h["Cache-Control"] = web.KeepFor(keep)
	}
	if web.HasTag(c.request.Header, tag) {
		c.code = http.StatusNotModified
	}
	return nil
}

// create drafts a campaign. A draft without an id of its own gets one that the
// Idempotency-Key determines, so that a repeat finds the draft even when the memory
// of the first answer was lost.
func (h *campaignHandlers) create(ctx context.Context, c *call, _ *struct{}, spec *dibs.CampaignSpec) (api.CampaignView, error) {
	ref, err := c.ref()
	if err != nil {
		return api.CampaignView{}, err
	}
	derived := spec.ID == "" && ref != ""
	if derived {
		spec.ID = "c-" + ref
	}
	campaign, err := h.campaigns.Create(ctx, *spec)
	// The id comes from this caller's key, so the draft is their own.
	if derived && errors.Is(err, dibs.ErrAlreadyExists) {
		campaign, err = h.campaigns.Get(ctx, spec.ID)
	}
	if err == nil {
		c.Header().Set("Location", "/v1/campaigns/"+campaign.ID)
	}
	return showCampaign(ctx, h.campaigns, c.zh)(campaign, err)
}

// publishBody says which version of a draft is meant.
type publishBody struct {
	Version *int64 `json:"version,omitempty" doc:"the version that was looked at; refused with invalid_state and /version when the draft has another one by now"`
}

func (h *campaignHandlers) publish(ctx context.Context, c *call, in *PathID, body *publishBody) (api.CampaignView, error) {
	return showCampaign(ctx, h.campaigns, c.zh)(h.campaigns.PublishVersion(ctx, in.ID, body.Version))
}

// isDraftOfRedPacket tells drafts whose publishing lets go of money: the sender's, or the platform's.
func (h *campaignHandlers) isDraftOfRedPacket(ctx context.Context, id string, _ any) (bool, error) {
	c, err := h.campaigns.Now(ctx, id)
	return err == nil && c.Kind == dibs.RedPacket && c.State == dibs.Draft, err
}

// pinVersion names the version of the draft that the second person is asked about: a draft can be changed by the one who
// asks until it is published.
func (h *campaignHandlers) pinVersion(ctx context.Context, id string, body any) (any, error) {
	c, err := h.campaigns.Now(ctx, id)
	if err != nil {
		return nil, err
	}
	// A version that the draft has not reached yet would be whatever it becomes meanwhile.
	if p, ok := body.(*publishBody); ok && p.Version != nil && *p.Version != c.Version {
		return nil, dibs.Invalid(dibs.Fault{Field: "/version", Problem: dibs.Textf("the draft has version %d", "草稿的版本是 %d", c.Version)})
	}
	return publishBody{Version: &c.Version}, nil
}

// opensRedPacket tells changes of red packets that a second person has approved as they were. What the caller may not
// change is left to patch, which refuses it.
func (h *campaignHandlers) opensRedPacket(ctx context.Context, id string, body any) (bool, error) {
	p, ok := body.(*dibs.CampaignPatch)
	if !ok || !opens(p) {
		return false, nil
	}
	c, err := h.campaigns.Now(ctx, id)
	return err == nil && isOpenRedPacket(c) && mayPatch(callOf(ctx), c, p) == nil, err
}

// opens tells patches of who gets the money of a red packet, or how much of it one user may get.
func opens(p *dibs.CampaignPatch) bool { return p.ChangesGate() || p.Limit != nil }

// isOpenRedPacket tells red packets whose money has left the sender's account.
func isOpenRedPacket(c *dibs.Campaign) bool { return c.Kind == dibs.RedPacket && c.State != dibs.Draft }

var errPublished = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign was published meanwhile: send it again", ZH: "活动刚刚发布，请重新提交"})

// mayPatch returns nil when a caller may make a change of a campaign. A key that may only edit drafts changes nothing else.
func mayPatch(by *call, c *dibs.Campaign, p *dibs.CampaignPatch) error {
	if c.State != dibs.Draft && !by.caller.role.May(access.RolePublisher) {
		return errRole(access.RolePublisher)
	}
	return mayName(by.caller.scopes, c, p.Gate.FollowersOf())
}

// patch changes a campaign. What the caller may do, and do alone, is decided about the version that is changed: after a
// publication in between, a patch of a draft is one of a published campaign.
func (h *campaignHandlers) patch(ctx context.Context, c *call, in *PathID, patch *dibs.CampaignPatch) (api.CampaignView, error) {
	return showCampaign(ctx, h.campaigns, c.zh)(h.campaigns.PatchIf(ctx, in.ID, *patch, func(campaign *dibs.Campaign) error {
		if err := mayPatch(c, campaign, patch); err != nil {
			return err
		}
		if !c.approved && h.seconds.rules.Acts[access.ActRedPacket] && opens(patch) && isOpenRedPacket(campaign) {
			// It was a draft when the call was asked whether it waits: the next one does.
			return errPublished
		}
		return nil
	}))
}

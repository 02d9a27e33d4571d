package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/claims"
)

// Claims is what the handlers that show claims call. Claims that are granted but not
// settled yet are among them.
type Claims interface {
	// Find returns a claim; ErrNotFound. The caller checks whose it is.
	Find(ctx context.Context, id string) (*dibs.Claim, error)
	// OfCampaign lists claims in the order in which they were granted. It settles what
	// was granted before the call first.
	OfCampaign(ctx context.Context, campaignID string, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error)
	// Luck returns how the shares of a red packet fell, with up to most of the greatest ones. It settles first, too.
	Luck(ctx context.Context, campaignID string, most int) (claims.Luck, error)
}

// claimsInput filters a campaign's claims.
type claimsInput struct {
	PathID
	PageQuery
	UserID string `query:"user_id" maxLength:"64" doc:"only this user's"`
	Status string `query:"status" enum:"pending,confirmed,released,refunded" doc:"only of this status"`
	Format string `query:"format" enum:"json,csv" doc:"csv streams all of them, without pages"`
}

// claimView is a claim as the caller may see it.
func claimView(c *call, claim *dibs.Claim) api.ClaimView {
	if c.caller.isAdmin() {
		return api.AdminClaimViewOf(claim)
	}
	return api.ClaimViewOf(claim)
}

// rowView is a claim in an administrator's list: with its comment, without its events.
func rowView(c *dibs.Claim) api.ClaimView {
	v := api.ClaimViewOf(c)
	v.Comment = c.Comment
	return v
}

// claimHandlers take claims, and show them.
type claimHandlers struct {
	*routes
	claims Claims
	take   *claimHandler
}

func (h *claimHandlers) register() {
	h.take.register(h.routes)
	subject(h.routes, "/v1/claims/{id}", func(ctx context.Context, id string) (api.ClaimView, error) {
		return viewOf(api.ClaimViewOf)(h.claims.Find(ctx, id))
	})
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/claims/{id}", id: "get-claim", personal: true, tag: tagUser, access: either,
		summary: "Show a claim", description: "Users see their own claims only; anything else is not found. A claim just granted is found at once. With an API key, its events too.",
	}, func(ctx context.Context, c *call, in *PathID) (api.ClaimView, error) {
		claim, err := h.claims.Find(ctx, in.ID)
		if err != nil {
			return api.ClaimView{}, err
		}
		if !c.caller.isAdmin() && claim.UserID != c.caller.user {
			return api.ClaimView{}, dibs.NoSuchClaim
		}
		return claimView(c, claim), nil
	})
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/claims", id: "campaign-claims", personal: true, tag: tagAdmin, access: adminOnly,
		summary: "List a campaign's claims", strictQuery: true,
		description: "In the order in which they were granted, or one user's, newest first. `format=csv` streams all of them.",
	}, h.ofCampaign)
	h.alsoCSV("/v1/campaigns/{id}/claims")
}

func (h *claimHandlers) ofCampaign(ctx context.Context, c *call, in *claimsInput) (v api.ListView[api.ClaimView], err error) {
	f := dibs.ClaimFilter{UserID: in.UserID}
	if status, ok := dibs.ParseStatus(in.Status); ok {
		f.Status = &status
	}
	name := "claims.csv"
	if dibs.IsID(in.ID) {
		name = in.ID + ".csv"
	}
	return listOrCSV(ctx, h.routes, c, in.Format, in.page(), claimsCSV(name), func(page dibs.Page) (dibs.List[dibs.Claim], error) {
		return h.claims.OfCampaign(ctx, in.ID, f, page)
	}, rowView)
}

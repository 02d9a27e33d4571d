package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/api"
)

// Claims is what the handlers that show claims call. Claims that are granted but not
// settled yet are among them.
type Claims interface {
	// Find returns a claim; ErrNotFound. The caller checks whose it is.
	Find(ctx context.Context, id string) (*dibs.Claim, error)
	// OfCampaign lists claims in the order in which they were granted. It settles what
	// was granted before the call first.
	OfCampaign(ctx context.Context, campaignID string, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error)
}

var errNoClaim = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such claim", ZH: "该领取记录不存在"})

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

func userView(c *dibs.Claim) api.ClaimView { return api.ClaimViewOf(c) }

// claimHandlers take claims, and show them.
type claimHandlers struct {
	*routes
	claims Claims
	take   *claimHandler
}

func (h *claimHandlers) register() {
	h.take.body = web.NewDecoder[claimBody](h.schemas, nil)
	h.describeClaim(&operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/claims", id: "claim", tag: tagUser, access: userOnly,
		summary: "Claim", example: `{"quantity":1}`,
		description: "Granted or why not, at once and for good. The body may be absent, `{}`, or name a quantity.",
	})
	h.Handle(claimPattern, h.take)
	subject(h.routes, "/v1/claims/{id}", func(ctx context.Context, id string) (api.ClaimView, error) {
		return viewOf(userView)(h.claims.Find(ctx, id))
	})
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/claims/{id}", id: "get-claim", tag: tagUser, access: either,
		summary: "Show a claim", description: "Users see their own claims only; anything else is not found. A claim just granted is found at once. With an API key, its events too.",
	}, func(ctx context.Context, c *call, in *PathID) (api.ClaimView, error) {
		claim, err := h.claims.Find(ctx, in.ID)
		if err != nil {
			return api.ClaimView{}, err
		}
		if !c.caller.isAdmin() && claim.UserID != c.caller.user {
			return api.ClaimView{}, errNoClaim
		}
		return claimView(c, claim), nil
	})
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/claims", id: "campaign-claims", tag: tagAdmin, access: adminOnly,
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
	if dibs.ValidID(in.ID) {
		name = in.ID + ".csv"
	}
	return listOrCSV(ctx, h.routes, c, in.Format, in.page(), claimsCSV(name), func(page dibs.Page) (dibs.List[dibs.Claim], error) {
		return h.claims.OfCampaign(ctx, in.ID, f, page)
	}, userView)
}

// describeClaim documents the claim, which is not an operation of huma's.
func (d *document) describeClaim(op *operation) {
	claim := func(description string, headers map[string]*huma.Param) *huma.Response {
		return &huma.Response{Description: description, Headers: headers, Content: map[string]*huma.MediaType{
			web.TypeJSON[0]: {Schema: d.schemas.Schema(reflect.TypeFor[api.ClaimView](), true, "")},
		}}
	}
	text := &huma.Schema{Type: huma.TypeString}
	longestDevice := dibs.MaxDeviceLen
	d.examples[op.id] = op.example
	rs := op.problems(d)
	rs["201"] = claim("Granted, for good", map[string]*huma.Param{"Location": {Schema: text}})
	rs["200"] = claim("Granted before: the first result again", map[string]*huma.Param{web.HeaderReplayed: {Schema: text}})
	rs["400"] = d.problem("The request is not valid; `errors` lists what is wrong")
	rs["404"] = d.problem("There is no such campaign")
	rs["409"] = d.problem("Refused: paused, not_started, ended, sold_out, limit_reached, too_many_claims or waiting")
	rs["413"] = d.problem("The body is too large")
	rs["422"] = d.problem("The key was used for another quantity")
	rs["503"] = d.problem("Not answered; `effect` says whether it may have been granted all the same")
	o := d.describe(op, rs)
	o.Parameters = []*huma.Param{
		idParam(),
		keyParam(),
		{
			Name: headerDevice, In: "header", Description: "the client's name for its device, for limits per device; 255 bytes at most",
			Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longestDevice},
		},
		{Name: headerTicket, In: "header", Description: "the ticket, where the campaign asks for one", Schema: text},
		{Name: headerAdmission, In: "header", Description: "the admission of the user, where there is a waiting room", Schema: text},
	}
	o.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{web.TypeJSON[0]: {
		Schema: d.schemas.Schema(reflect.TypeFor[claimBody](), true, ""), Example: json.RawMessage(op.example),
	}}}
	d.huma.OpenAPI().AddOperation(&o)
}

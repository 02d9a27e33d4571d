package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/orders"

	"github.com/dibs-dev/dibs/api"
)

// Orders is what the handlers of orders call.
type Orders interface {
	// Place sells units of a product's own stock. Like the decision on a claim, a refusal
	// is a Result and no error.
	Place(ctx context.Context, req orders.Request) (dibs.Result, error)
	// List searches the claims of all campaigns, newest first. Claims of other users
	// may appear some tenths of a second after their grant.
	List(ctx context.Context, q dibs.OrderQuery, page dibs.Page) (dibs.List[dibs.Claim], error)
	// OfUser lists a user's claims, newest first. A claim just granted is among them.
	OfUser(ctx context.Context, user string, page dibs.Page) (dibs.List[dibs.Claim], error)
}

// OrderQuery filters orders; exported as PathID is.
type OrderQuery struct {
	Status     string    `query:"status" enum:"pending,confirmed,released,refunded" doc:"only of this status"`
	CampaignID string    `query:"campaign_id" maxLength:"64" doc:"only of this campaign"`
	ProductID  string    `query:"product_id" maxLength:"64" doc:"only of this product's campaigns and regular orders"`
	OrderType  string    `query:"order_type" enum:"1,2" doc:"1: only regular orders, 2: only those of campaigns"`
	Reference  string    `query:"reference" maxLength:"256" doc:"only those that were claimed with this reference"`
	Since      time.Time `query:"since" doc:"only those created at this time or later"`
	Until      time.Time `query:"until" doc:"only those created before this time"`
}

// query returns the filters: huma has checked the values, so what cannot be parsed is absent.
func (q *OrderQuery) query() dibs.OrderQuery {
	out := dibs.OrderQuery{
		CampaignID: q.CampaignID, ProductID: q.ProductID, Reference: q.Reference, Since: q.Since, Until: q.Until,
	}
	if q.OrderType != "" {
		out.OrderType = dibs.OrderType(q.OrderType[0] - '0')
	}
	if status, ok := dibs.ParseStatus(q.Status); ok {
		out.Status = &status
	}
	return out
}

// myOrders filters a user's own orders.
type myOrders struct {
	PageQuery
	OrderQuery
}

// allOrders filters the orders of all users.
type allOrders struct {
	PageQuery
	OrderQuery
	UserID     string `query:"user_id" maxLength:"64" doc:"only this user's"`
	PaymentRef string `query:"payment_ref" maxLength:"255" doc:"only those that this payment paid, or should have"`
	RefundDue  bool   `query:"refund_due" doc:"true: only those whose payment came too late and has to go back"`
	Code       string `query:"code" maxLength:"128" doc:"only those that have this code or seat, of the campaign that is named or of any"`
	Format     string `query:"format" enum:"json,csv" doc:"csv streams all of them, without pages"`
}

// orderBody asks for units of a product.
type orderBody struct {
	Quantity  *int64 `json:"quantity,omitempty" minimum:"1" maximum:"10000" doc:"how many units, default 1"`
	Reference string `json:"reference,omitempty" maxLength:"256" doc:"the caller's own: it comes back with the order, and is never followed"`
}

// orderHandlers search orders, and take regular ones.
type orderHandlers struct {
	*routes
	orders Orders
	// limits may be nil. They are those of claims: an order counts as one.
	limits Limits
}

func (h *orderHandlers) register() {
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/me/claims", id: "my-claims", tag: tagUser, access: userOnly, strictQuery: true,
		summary: "List my claims, newest first",
	}, h.mine)
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/claims", id: "orders", personal: true, tag: tagAdmin, access: adminOnly, strictQuery: true,
		summary: "Search orders, newest first",
		description: "Of all campaigns, and regular ones. With `campaign_id` or `product_id`, campaign by campaign, the newest one first. " +
			"`format=csv` streams all of them.",
	}, h.search)
	h.alsoCSV("/v1/claims")
	change(h.routes, operation{
		method: http.MethodPost, path: "/v1/products/{id}/orders", id: "order-product", tag: tagUser, access: userOnly, status: http.StatusCreated,
		summary: "Order a product", example: `{"quantity":1}`, knowsRepeats: true, byKey: true, limited: true,
		description: "A regular order of the product's own stock, beside the claims of campaigns: `order_type` is 1, `campaign_id` is empty. " +
			"From then on it is a claim as others are. A product off sale is refused as `paused`. The server's limits and lists count an order as a claim, and a user who holds " +
			"too many unpaid units of the product is refused with `limit_reached`.",
	}, h.order)
}

// Without filters the list has claims that are not settled yet; with some, the ledger
// is searched, which gets them a moment later.
func (h *orderHandlers) mine(ctx context.Context, c *call, in *myOrders) (api.ListView[api.ClaimView], error) {
	if in.OrderQuery == (OrderQuery{}) {
		return listOf(api.ClaimViewOf)(h.orders.OfUser(ctx, c.caller.user, in.page()))
	}
	q := in.query()
	q.UserID = c.caller.user
	return listOf(api.ClaimViewOf)(h.orders.List(ctx, q, in.page()))
}

func (h *orderHandlers) search(ctx context.Context, c *call, in *allOrders) (api.ListView[api.ClaimView], error) {
	q := in.query()
	q.UserID, q.PaymentRef, q.RefundDue, q.Code = in.UserID, in.PaymentRef, in.RefundDue, in.Code
	return listOrCSV(ctx, h.routes, c, in.Format, in.page(), claimsCSV("orders.csv"), func(page dibs.Page) (dibs.List[dibs.Claim], error) {
		return h.orders.List(ctx, q, page)
	}, rowView)
}

func (h *orderHandlers) order(ctx context.Context, c *call, in *PathID, body *orderBody) (api.ClaimView, error) {
	key, err := web.IdempotencyKey(c.request.Header)
	if err != nil {
		return api.ClaimView{}, err
	}
	req := orders.Request{
		ProductID: in.ID, UserID: c.caller.user, Key: key, Address: h.proxies.Client(c.request), Device: web.Single(c.request.Header[headerDevice]),
		Until: c.caller.token.Until, TokenID: c.caller.token.ID, Issued: c.caller.token.Issued,
	}
	req.Reference = body.Reference
	if body.Quantity != nil {
		req.Quantity = *body.Quantity
	}
	if h.limits != nil {
		// No campaign has this id, so that a limit for each campaign counts none.
		res, ok := h.limits.Enter(ctx, &dibs.ClaimRequest{CampaignID: "product:" + in.ID, UserID: req.UserID, Key: key, Address: req.Address, Device: req.Device})
		web.SetQuota(c.Header(), &res.Quota)
		if !ok {
			return api.ClaimView{}, web.RefusalOf(&res)
		}
		// It may have waited, as a claim may.
		if !h.auth.users.still(&c.caller.token) {
			return api.ClaimView{}, errBadToken
		}
	}
	res, err := h.orders.Place(ctx, req)
	if err != nil {
		return api.ClaimView{}, err
	}
	if res.Outcome != dibs.Granted {
		return api.ClaimView{}, web.RefusalOf(&res)
	}
	if res.Replayed {
		c.code = http.StatusOK
		c.replayed()
	} else {
		c.Header().Set("Location", "/v1/claims/"+res.Claim.ID)
	}
	return api.ClaimViewOf(res.Claim), nil
}

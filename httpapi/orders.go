package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
)

// OrderQuery filters orders; exported as PathID is.
type OrderQuery struct {
	Status     string    `query:"status" enum:"pending,confirmed,released,refunded" doc:"only of this status"`
	CampaignID string    `query:"campaign_id" maxLength:"64" doc:"only of this campaign"`
	ProductID  string    `query:"product_id" maxLength:"64" doc:"only of this product's campaigns and regular orders"`
	OrderType  string    `query:"order_type" enum:"1,2" doc:"1: only regular orders, 2: only those of campaigns"`
	Since      time.Time `query:"since" doc:"only those created at this time or later"`
	Until      time.Time `query:"until" doc:"only those created before this time"`
}

func (q *OrderQuery) query() dibs.OrderQuery {
	out := dibs.OrderQuery{
		CampaignID: q.CampaignID, ProductID: q.ProductID, Since: q.Since, Until: q.Until,
	}
	if q.OrderType != "" {
		out.OrderType = dibs.OrderType(q.OrderType[0] - '0')
	}
	if status, ok := dibs.ParseStatus(q.Status); ok {
		out.Status = &status
	}
	return out
}

// myOrders filters a user's own.
type myOrders struct {
	PageQuery
	OrderQuery
}

// allOrders filters everybody's.
type allOrders struct {
	PageQuery
	OrderQuery
	UserID     string `query:"user_id" maxLength:"64" doc:"only this user's"`
	PaymentRef string `query:"payment_ref" maxLength:"255" doc:"only those that this payment paid, or should have"`
	Code       string `query:"code" maxLength:"128" doc:"only the one that has this code or seat of the campaign"`
	Format     string `query:"format" enum:"json,csv" doc:"csv streams all of them, without pages"`
}

func (a *api) registerOrders() {
	register(a, operation{
		method: http.MethodGet, path: "/v1/me/claims", id: "my-claims", tag: tagUser, access: userOnly, strictQuery: true,
		summary: "List my claims, newest first",
	}, func(ctx context.Context, c *call, in *myOrders) (dibs.ListView[dibs.ClaimView], error) {
		if in.OrderQuery == (OrderQuery{}) {
			l, err := a.svc.UserClaims(ctx, c.who.user, in.page())
			return listOf(l, claimView), err
		}
		q := in.query()
		q.UserID = c.who.user
		l, err := a.svc.Orders(ctx, q, in.page())
		return listOf(l, claimView), err
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/claims", id: "orders", tag: tagAdmin, access: adminOnly, strictQuery: true,
		summary: "Look for orders, newest first",
		description: "Of all campaigns, and regular ones. With `campaign_id` or `product_id`, campaign by campaign, the newest one first. " +
			"`format=csv` streams all of them.",
	}, a.findOrders)
	a.alsoCSV("/v1/claims")
}

func (a *api) findOrders(ctx context.Context, c *call, in *allOrders) (v dibs.ListView[dibs.ClaimView], err error) {
	q := in.query()
	q.UserID, q.PaymentRef, q.Code = in.UserID, in.PaymentRef, in.Code
	page := in.page()
	if in.Format == "csv" {
		page = dibs.Page{Limit: dibs.MaxPage}
	}
	l, err := a.svc.Orders(ctx, q, page)
	if err != nil {
		return v, err
	}
	if in.Format == "csv" {
		answerCSV(ctx, a, c, claimsCSV("orders.csv", func(page dibs.Page) (dibs.List[dibs.Claim], error) { return a.svc.Orders(ctx, q, page) }), l)
		return v, nil
	}
	return listOf(l, claimView), nil
}

package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/api"
)

// Looking for orders, with each filter that is refused.
var orderScenarios = []scenario{
	{name: "all", method: "GET", path: "/v1/claims", headers: []string{asAdmin}, status: 200, contains: []string{`"user_id":"42"`, `"user_id":"7"`, `"product_id":"mug"`}, has: []string{"Cache-Control: no-store"}},
	{name: "a page", method: "GET", path: "/v1/claims?limit=1", headers: []string{asAdmin}, status: 200, lacks: []string{`"next_cursor":""`}},
	{name: "a user's", method: "GET", path: "/v1/claims?user_id=7", headers: []string{asAdmin}, status: 200, contains: []string{`"user_id":"7"`}, lacks: []string{`"user_id":"42"`}},
	{name: "of a product", method: "GET", path: "/v1/claims?product_id=mug&status=confirmed", headers: []string{asAdmin}, status: 200, contains: []string{`"campaign_id":"mugs"`}, lacks: []string{`"campaign_id":"noon"`}},
	{name: "of a campaign", method: "GET", path: "/v1/claims?campaign_id=noon", headers: []string{asAdmin}, status: 200, contains: []string{`"campaign_id":"noon"`}, lacks: []string{`"campaign_id":"mugs"`}},
	{name: "of both", method: "GET", path: "/v1/claims?campaign_id=noon&product_id=mug", headers: []string{asAdmin}, status: 200, contains: []string{`"items":[]`}},
	{name: "of what there is not", method: "GET", path: "/v1/claims?campaign_id=none&product_id=none", headers: []string{asAdmin}, status: 200, contains: []string{`"items":[]`}},
	{name: "by payment", method: "GET", path: "/v1/claims?payment_ref=pay-1", headers: []string{asAdmin}, status: 200, contains: []string{`"payment_ref":"pay-1"`}},
	{name: "by a payment of nobody", method: "GET", path: "/v1/claims?payment_ref=pay-2", headers: []string{asAdmin}, status: 200, contains: []string{`"items":[]`}},
	{name: "regular", method: "GET", path: "/v1/claims?order_type=1", headers: []string{asAdmin}, status: 200, contains: []string{`"items":[]`}},
	{name: "flash", method: "GET", path: "/v1/claims?order_type=2", headers: []string{asAdmin}, status: 200, contains: []string{`"order_type":2`}},
	{name: "before", method: "GET", path: "/v1/claims?until=2020-01-01T00:00:00Z", headers: []string{asAdmin}, status: 200, contains: []string{`"items":[]`}},
	{name: "since", method: "GET", path: "/v1/claims?since=2020-01-01T00:00:00Z", headers: []string{asAdmin}, status: 200, contains: []string{`"campaign_id":"noon"`}},
	{name: "CSV", method: "GET", path: "/v1/claims?format=csv", headers: []string{asAdmin}, status: 200, contains: []string{"id,campaign_id,", ",noon,sale,42,"}, has: []string{"Content-Disposition: attachment; filename=\"orders.csv\""}},
	{name: "bad user", method: "GET", path: "/v1/claims?user_id=a%20b", headers: []string{asAdmin}, status: 400, contains: []string{`"/user_id"`}},
	{name: "bad campaign", method: "GET", path: "/v1/claims?campaign_id=%2F", headers: []string{asAdmin}, status: 400, contains: []string{`"/campaign_id"`}},
	{name: "bad product", method: "GET", path: "/v1/claims?product_id=%2F", headers: []string{asAdmin}, status: 400, contains: []string{`"/product_id"`}},
	{name: "bad status", method: "GET", path: "/v1/claims?status=paid", headers: []string{asAdmin}, status: 400, contains: []string{`"/status"`}},
	{name: "bad type", method: "GET", path: "/v1/claims?order_type=3", headers: []string{asAdmin}, status: 400, contains: []string{`"/order_type"`}},
	{name: "bad since", method: "GET", path: "/v1/claims?since=yesterday", headers: []string{asAdmin}, status: 400, contains: []string{`"/since"`}},
	{name: "no time at all", method: "GET", path: "/v1/claims?since=2026-12-01T00:00:00Z&until=2026-12-01T00:00:00Z", headers: []string{asAdmin}, status: 400, contains: []string{`"/until"`}},
	{name: "a code of all campaigns", method: "GET", path: "/v1/claims?code=A1", headers: []string{asAdmin}, status: 200, contains: []string{`"items":[]`}},
	{name: "a bad payment", method: "GET", path: "/v1/claims?payment_ref=a%0Ab", headers: []string{asAdmin}, status: 400, contains: []string{`"/payment_ref"`}},
	{name: "misspelt", method: "GET", path: "/v1/claims?user=7", headers: []string{asAdmin}, status: 400, contains: []string{`"/user"`}},
	{name: "a cursor", method: "GET", path: "/v1/claims?cursor=%21", headers: []string{asAdmin}, status: 400, contains: []string{`"/cursor"`}},
	{name: "by a user", method: "GET", path: "/v1/claims", headers: []string{asUser}, status: 403},
	{name: "by nobody", method: "GET", path: "/v1/claims", status: 401},

	{name: "mine of a campaign", method: "GET", path: "/v1/me/claims?campaign_id=mugs", headers: []string{asUser}, status: 200, contains: []string{`"campaign_id":"mugs"`, `"user_id":"42"`}, lacks: []string{`"user_id":"7"`, `"campaign_id":"noon"`}},
	{name: "mine of a status", method: "GET", path: "/v1/me/claims?status=released", headers: []string{asUser}, status: 200, contains: []string{`"items":[]`}},
	{name: "somebody else's", method: "GET", path: "/v1/me/claims?user_id=7", headers: []string{asUser}, status: 400, contains: []string{`"/user_id"`}},
	{name: "somebody else's payment", method: "GET", path: "/v1/me/claims?payment_ref=pay-1", headers: []string{asUser}, status: 400, contains: []string{`"/payment_ref"`}},
}

func TestOrderScenarios(t *testing.T) {
	s := newStack(t, nil)
	ctx := context.Background()
	_, err := s.admin.Products.Create(ctx, dibs.ProductSpec{ID: "mug", Name: "Mug", Price: &dibs.Money{Amount: 500, Currency: "CNY"}}, "")
	must(t, err)
	s.sale("noon", 10, 5)
	_, err = s.admin.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "mugs", Kind: dibs.Sale, Title: "Mugs", ProductID: new("mug"), StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: new(int64(5))},
	}, "")
	must(t, err)
	_, err = s.admin.Campaigns.Publish(ctx, "mugs")
	must(t, err)
	var last api.ClaimView
	for _, user := range []string{"42", "7"} {
		c, err := client.New(s.url, client.Options{Token: "dev_" + user})
		must(t, err)
		defer c.CloseIdle()
		for _, campaign := range []string{"noon", "mugs"} {
			last, _, err = c.Claim(ctx, campaign, 1, "k")
			must(t, err)
		}
		// A claim just granted is found, settled or not.
		l, err := s.admin.Orders.List(ctx, dibs.OrderQuery{UserID: user, CampaignID: "mugs"}, dibs.Page{})
		must(t, err)
		if len(l.Items) != 1 || l.Items[0].ID != last.ID {
			t.Fatalf("%s: %+v, want %s", user, l.Items, last.ID)
		}
	}
	_, _, err = s.admin.Orders.Confirm(ctx, last.ID, dibs.PaymentSpec{PaymentRef: "pay-1", Amount: last.Amount})
	must(t, err)
	_, err = s.admin.Orders.List(ctx, dibs.OrderQuery{CampaignID: "noon"}, dibs.Page{})
	must(t, err)
	s.run(t, orderScenarios)
	var csv strings.Builder
	must(t, s.admin.Orders.CSV(ctx, dibs.OrderQuery{ProductID: "mug"}, &csv))
	if n := strings.Count(csv.String(), ",mugs,"); n != 2 {
		t.Errorf("%d orders of the product: %s", n, csv.String())
	}
}

const ordersPath = "/v1/products/mug/orders"

// A product's own stock, ordered by two users until nothing is left.
var regularScenarios = []scenario{
	{
		name: "a product", method: "POST", path: "/v1/products", headers: []string{asAdmin}, status: 201,
		body: `{"id":"mug","name":"Mug","price":{"amount":500,"currency":"CNY"},"stock":3,"pay_within":"15m","late_payment":"refund_due"}`, contains: []string{`"stock":3,"stock_left":3`, `"pay_within":"15m0s"`},
	},
	{name: "bad terms", method: "POST", path: "/v1/products", headers: []string{asAdmin}, status: 400, body: `{"name":"x","pay_within":"1ms","late_payment":"never","stock":-1}`, contains: []string{`"/pay_within"`, `"/late_payment"`, `"/stock"`}},
	{
		name: "order", method: "POST", path: ordersPath, body: `{"quantity":2}`, headers: []string{asUser, "Idempotency-Key: k"}, status: 201,
		contains: []string{`"campaign_id":"","product_id":"mug"`, `"order_type":1`, `"status":"pending","status_code":0`, `"amount":{"amount":1000,"currency":"CNY"}`, `"pay_by"`}, has: []string{"Location: ", "Cache-Control: no-store"},
	},
	{name: "again", method: "POST", path: ordersPath, body: `{"quantity":2}`, headers: []string{asUser, "Idempotency-Key: k"}, status: 200, contains: []string{`"order_type":1`}, has: []string{"Idempotent-Replayed: true"}},
	{name: "the key for more", method: "POST", path: ordersPath, body: `{"quantity":1}`, headers: []string{asUser, "Idempotency-Key: k"}, status: 422, contains: []string{`"idempotency_key_reused"`}},
	{name: "too many", method: "POST", path: ordersPath, body: `{"quantity":2}`, headers: []string{asUser}, status: 409, contains: []string{`"sold_out"`, `"remaining":1`}},
	{name: "none", method: "POST", path: ordersPath, body: `{"quantity":0}`, headers: []string{asUser}, status: 400, contains: []string{`"/quantity"`}},
	{name: "very many", method: "POST", path: ordersPath, body: `{"quantity":10001}`, headers: []string{asUser}, status: 400, contains: []string{`"/quantity"`}},
	{name: "half", method: "POST", path: ordersPath, body: `{"quantity":1.5}`, headers: []string{asUser}, status: 400, contains: []string{`"/quantity"`}},
	{name: "a price of one's own", method: "POST", path: ordersPath, body: `{"amount":{"amount":1,"currency":"CNY"}}`, headers: []string{asUser}, status: 400, contains: []string{`"/amount"`}},
	{name: "a bad key", method: "POST", path: ordersPath, headers: []string{asUser, "Idempotency-Key: a b"}, status: 400, contains: []string{`"/Idempotency-Key"`}},
	{name: "no product", method: "POST", path: "/v1/products/none/orders", headers: []string{asUser}, status: 404, contains: []string{`"not_found"`}},
	{name: "by an admin", method: "POST", path: ordersPath, headers: []string{asAdmin}, status: 403},
	{name: "by nobody", method: "POST", path: ordersPath, status: 401},
	{name: "the last", method: "POST", path: ordersPath, headers: []string{"Authorization: Bearer dev_7"}, status: 201, contains: []string{`"quantity":1`}},
	{name: "nothing is left", method: "POST", path: ordersPath, headers: []string{asUser, inChinese}, status: 409, contains: []string{`"sold_out"`, "已全部领完"}},
	{name: "what is left", method: "GET", path: "/v1/products/mug", headers: []string{asAdmin}, status: 200, contains: []string{`"stock":3,"stock_left":0`}},
	{name: "less than is ordered", method: "PATCH", path: "/v1/products/mug", body: `{"stock":2}`, headers: []string{asAdmin}, status: 409, contains: []string{`"invalid_state"`}},
	{name: "no campaign is seen", method: "GET", path: "/v1/campaigns", headers: []string{asAdmin}, status: 200, contains: []string{`"items":[]`}},
	{name: "mine", method: "GET", path: "/v1/me/claims?order_type=1", headers: []string{asUser}, status: 200, contains: []string{`"product_id":"mug"`}, lacks: []string{`"user_id":"7"`}},
	{name: "the product's", method: "GET", path: "/v1/claims?product_id=mug&order_type=1", headers: []string{asAdmin}, status: 200, contains: []string{`"user_id":"7"`, `"user_id":"42"`}},
	{name: "every promise", method: "GET", path: "/v1/verify", headers: []string{asAdmin}, status: 200, contains: []string{`"ok":true`, `"campaign_id":"product:mug"`, "users over the limit: none"}},
	{name: "every promise in Chinese", method: "GET", path: "/v1/verify", headers: []string{asAdmin, inChinese}, status: 200, contains: []string{`"ok":true`, `"promise":"the limit holds"`, "超过限领的用户：无"}, lacks: []string{"users over the limit"}},
}

func TestRegularScenarios(t *testing.T) { newStack(t, nil).run(t, regularScenarios) }

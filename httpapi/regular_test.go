package httpapi_test

import "testing"

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
		contains: []string{`"campaign_id":"","product_id":"mug"`, `"order_type":1`, `"status":"pending"`, `"amount":{"amount":1000,"currency":"CNY"}`, `"pay_by"`}, has: []string{"Location: ", "Cache-Control: no-store"},
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
	{name: "every promise", method: "GET", path: "/v1/verify", headers: []string{asAdmin}, status: 200, contains: []string{`"ok":true`, `"campaign_id":"product:mug"`}},
}

func TestRegularScenarios(t *testing.T) { newStack(t, nil).run(t, regularScenarios) }

package httpapi_test

import "testing"

// Products, and what of them the public sees.
var productScenarios = []scenario{
	{
		name: "create product", method: "POST", path: "/v1/products", body: `{"id":"px","name":"P <b>","price":` + priceBody + `,"comment":"inner","stock":3}`, headers: []string{asAdmin}, status: 201,
		contains: []string{`"name":"P <b>"`, `"comment":"inner"`, `"stock":3`, priceBody}, has: []string{"Location: /v1/products/px"},
	},
	{name: "get product", method: "GET", path: "/v1/products/px", headers: []string{asAdmin}, status: 200, contains: []string{`"stock":3`}},
	{name: "patch product", method: "PATCH", path: "/v1/products/px", body: `{"stock":4}`, headers: []string{asAdmin}, status: 200, contains: []string{`"stock":4`}},
	{name: "patch product below", method: "PATCH", path: "/v1/products/px", body: `{"stock":-4}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/stock"`}},
	{name: "list products", method: "GET", path: "/v1/products", headers: []string{asAdmin}, status: 200, contains: []string{`"px"`}},
	{name: "no product", method: "GET", path: "/v1/products/none", headers: []string{asAdmin}, status: 404},
	{
		name: "a product's inner fields stay inside", method: "POST", path: "/v1/campaigns", headers: []string{asAdmin}, status: 201,
		body: `{"id":"with-product","kind":"sale","title":"W","product_id":"px","starts_at":"2036-12-01T04:00:00Z","ends_at":"2036-12-01T06:00:00Z","stock":{"codes":{"count":5}},"pay_within":"15m"}`,
	},
	{name: "published", method: "POST", path: "/v1/campaigns/with-product/publish", headers: []string{asAdmin}, status: 200, contains: []string{priceBody, `"codes":{"count":5`}},
	{name: "public product", method: "GET", path: "/v1/campaigns/with-product", status: 200, contains: []string{`"product":{"id":"px"`, priceBody, `"pay_within":"15m0s"`}, lacks: []string{"inner", "comment", `"stock"`}},
	{name: "campaigns of a product, and what is left", method: "GET", path: "/v1/campaigns?product_id=px", status: 200, contains: []string{`"id":"with-product"`, `"remaining":5`}},
	{name: "campaigns of another product", method: "GET", path: "/v1/campaigns?product_id=py", status: 200, contains: []string{`"items":[]`}},
}

func TestProductScenarios(t *testing.T) { newStack(t, nil).run(t, productScenarios) }

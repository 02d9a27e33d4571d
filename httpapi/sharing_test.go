package httpapi_test

import "testing"

// draftSharing is the body of a campaign of product p-share with a limit per product.
func draftSharing(id, more string) string {
	return `{"id":"` + id + `","kind":"sale","title":"S","starts_at":"2020-12-01T04:00:00Z","ends_at":"2036-12-01T06:00:00Z","stock":{"units":9},"limit_per_user":5` + more + `}`
}

const ofShare = `,"product_id":"p-share","limit_per_product":2`

// sharingScenarios sell one product in two campaigns that share a limit.
var sharingScenarios = []scenario{
	{name: "product", method: "POST", path: "/v1/products", body: `{"id":"p-share","name":"P"}`, headers: []string{asAdmin}, status: 201},
	{
		name: "without a product", method: "POST", path: "/v1/campaigns", body: draftSharing("alone", `,"limit_per_product":2`), headers: []string{asAdmin}, status: 400,
		contains: []string{`"/limit_per_product"`, "product_id"},
	},
	{
		name: "out of range", method: "POST", path: "/v1/campaigns", body: draftSharing("none", `,"product_id":"p-share","limit_per_product":0`), headers: []string{asAdmin}, status: 400,
		contains: []string{`"/limit_per_product"`, "from 1 to"},
	},
	{
		name: "not a number", method: "POST", path: "/v1/campaigns", body: draftSharing("none", `,"product_id":"p-share","limit_per_product":"two"`), headers: []string{asAdmin}, status: 400,
		contains: []string{"limit_per_product"},
	},
	{name: "noon", method: "POST", path: "/v1/campaigns", body: draftSharing("noon-share", ofShare), headers: []string{asAdmin}, status: 201, contains: []string{`"limit_per_product":2`}},
	{name: "noon is published", method: "POST", path: "/v1/campaigns/noon-share/publish", headers: []string{asAdmin}, status: 200},
	{name: "night", method: "POST", path: "/v1/campaigns", body: draftSharing("night-share", ofShare), headers: []string{asAdmin}, status: 201},
	{name: "night is published", method: "POST", path: "/v1/campaigns/night-share/publish", headers: []string{asAdmin}, status: 200},
	{name: "another limit", method: "POST", path: "/v1/campaigns", body: draftSharing("other-share", `,"product_id":"p-share","limit_per_product":3`), headers: []string{asAdmin}, status: 201},
	{
		name: "another limit is not published", method: "POST", path: "/v1/campaigns/other-share/publish", headers: []string{asAdmin}, status: 400,
		contains: []string{`"/limit_per_product"`, "must be 2, as campaign noon-share has"},
	},
	{name: "the public sees it", method: "GET", path: "/v1/campaigns/noon-share", status: 200, contains: []string{`"limit_per_product":2`}},
	{name: "one at noon", method: "POST", path: "/v1/campaigns/noon-share/claims", headers: []string{asUser}, status: 201},
	{
		name: "two at night", method: "POST", path: "/v1/campaigns/night-share/claims", body: `{"quantity":2}`, headers: []string{asUser}, status: 409,
		contains: []string{`"reason":"limit_reached"`, `"claim_ids":[]`, "at most 2 of product p-share per user"},
	},
	{name: "one at night", method: "POST", path: "/v1/campaigns/night-share/claims", headers: []string{asUser}, status: 201},
	{
		name: "one more at noon", method: "POST", path: "/v1/campaigns/noon-share/claims", headers: []string{asUser, chinese}, status: 409,
		contains: []string{`"reason":"limit_reached"`, `"claim_ids":["`, "每人限领 2 件商品 p-share"},
	},
	{name: "of another user", method: "POST", path: "/v1/campaigns/noon-share/claims", body: `{"quantity":2}`, headers: []string{other}, status: 201},
}

func TestSharedLimitScenarios(t *testing.T) { newStack(t, nil).run(t, sharingScenarios) }

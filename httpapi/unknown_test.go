package httpapi_test

import "testing"

// Addresses and methods that there are not.
var routeScenarios = []scenario{
	{name: "unknown route", method: "GET", path: "/v2/anything", status: 404, contains: []string{`"reason":"not_found"`}},
	{name: "later routes", method: "POST", path: "/v1/lotteries", headers: []string{asAdmin}, status: 404},
	{name: "method", method: "DELETE", path: "/v1/products/px", headers: []string{asAdmin}, status: 405, has: []string{"Allow: GET, HEAD, PATCH"}},
	{name: "options", method: "OPTIONS", path: "/v1/time", status: 405, has: []string{"Allow: GET, HEAD"}},
}

func TestUnknownRoutes(t *testing.T) { newStack(t, nil).run(t, routeScenarios) }

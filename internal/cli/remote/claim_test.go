package remote_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestClaimLife walks claims through every verb, from the outside.
func TestClaimLife(t *testing.T) {
	env := clitest.Served(t)
	clitest.Run(t, env, "campaign", "create", "--id", "phones", "--title", "Phones", "--units", "3", "--ends", "+2h", "--limit", "3",
		"--price", "500", "--currency", "CNY", "--pay-within", "15m", "--publish").Want(t, 0)
	clitest.Run(t, env, "campaign", "create", "--id", "off", "--kind", "coupon", "--title", "Off", "--codes", "3", "--ends", "+2h",
		"--valid-for", "24h", "--publish").Want(t, 0)
	admin := clitest.User(t, strings.TrimPrefix(env[0], "DIBS_URL="), "42")
	claim := func(campaign, key string) string {
		t.Helper()
		c, _, err := admin.Claim(t.Context(), campaign, 1, key)
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	verb := func(args ...string) api.ClaimView {
		t.Helper()
		r := clitest.Run(t, env, append(append([]string{"claim"}, args...), "--output", "json")...)
		r.Want(t, 0)
		var v api.ClaimView
		if err := json.Unmarshal([]byte(r.Out), &v); err != nil {
			t.Fatalf("%v: %s%s", err, r.Out, r.Err)
		}
		return v
	}
	paid, given, coupon := claim("phones", "1"), claim("phones", "2"), claim("off", "1")
	if v := verb("confirm", paid, "--ref", "pay-1"); v.Status != "confirmed" || v.Payment.Amount.Amount != 500 {
		t.Errorf("%+v", v)
	}
	clitest.Run(t, env, "claim", "confirm", paid, "--ref", "pay-1").Want(t, 0, "had been done before")
	clitest.Run(t, env, "claim", "confirm", paid, "--ref", "pay-2").Want(t, 1, "invalid_state")
	clitest.Run(t, env, "claim", "confirm", given, "--ref", "pay-3", "--amount", "1", "--currency", "CNY").Want(t, 1, "amount must be what the claim costs: 5.00 CNY")
	clitest.Run(t, env, "claim", "confirm", given, "--ref", "pay-3", "--amount", "1").Want(t, 2, "--amount must name its currency")
	clitest.Run(t, env, "claim", "comment", paid, "gift wrap").Want(t, 0, "comment   gift wrap", "updated")
	clitest.Run(t, env, "claim", "comment", paid).Want(t, 2, "TEXT is missing")
	if v := verb("cancel", given); v.Status != "released" {
		t.Errorf("%+v", v)
	}
	clitest.Run(t, env, "claim", "ship", paid).Want(t, 2, "--carrier and --tracking are required; for example: dibs claim ship ")
	clitest.Run(t, env, "claim", "confirm", given).Want(t, 2, "--ref is required")
	if v := verb("ship", paid, "--carrier", "SF", "--tracking", "77"); v.Shipment == nil || v.Shipment.TrackingNo != "77" {
		t.Errorf("%+v", v)
	}
	for range 2 {
		if v := verb("refund", paid, "--amount", "200", "--currency", "CNY", "--key", "r1"); v.Payment.Refunded.Amount != 200 {
			t.Errorf("%+v", v)
		}
	}
	if v := verb("refund", paid, "--restock"); v.Status != "refunded" || v.Payment.Refunded.Amount != 500 || len(v.Events) != 4 {
		t.Errorf("%+v", v)
	}
	if v := verb("redeem", coupon, "--ref", "order-9", "--user", "42"); v.Redemption.Ref != "order-9" || v.ValidUntil == nil {
		t.Errorf("%+v", v)
	}
	clitest.Run(t, env, "claim", "redeem", coupon, "--ref", "order-10", "--user", "7").Want(t, 1, "not_found")
	if v := verb("unredeem", coupon); v.Redemption != nil {
		t.Errorf("%+v", v)
	}
	clitest.Run(t, env, "claim", "show", paid).Want(t, 0, "status    refunded", "refund 3.00 CNY", "ship SF 77")
	clitest.Run(t, env, "claim", "show", "0000000000000000").Want(t, 1, "not_found")
	clitest.Run(t, env, "campaign", "show", "phones").Want(t, 0, "granted         0 (pending 0, confirmed 0, refunded 1)", "left            3")
}

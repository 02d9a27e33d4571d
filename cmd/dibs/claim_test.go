package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

// TestClaimLife walks claims through every verb, from the outside.
func TestClaimLife(t *testing.T) {
	env := served(t)
	execute(t, env, "campaign", "create", "--id", "phones", "--title", "Phones", "--units", "3", "--ends", "+2h", "--limit", "3",
		"--price", "500", "--currency", "CNY", "--pay-within", "15m", "--publish").want(t, 0)
	execute(t, env, "campaign", "create", "--id", "off", "--kind", "coupon", "--title", "Off", "--codes", "3", "--ends", "+2h",
		"--valid-for", "24h", "--publish").want(t, 0)
	api, err := client.New(env[0][len("DIBS_URL="):], client.Options{Token: strings.TrimSpace(execute(t, secrets, "token", "--user", "42").out)})
	if err != nil {
		t.Fatal(err)
	}
	defer api.CloseIdle()
	claim := func(campaign, key string) string {
		t.Helper()
		c, _, err := api.Claim(t.Context(), campaign, 1, key)
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	verb := func(args ...string) dibs.ClaimView {
		t.Helper()
		r := execute(t, env, append(append([]string{"claim"}, args...), "--output", "json")...)
		r.want(t, 0)
		var v dibs.ClaimView
		if err := json.Unmarshal([]byte(r.out), &v); err != nil {
			t.Fatalf("%v: %s%s", err, r.out, r.err)
		}
		return v
	}
	paid, given, coupon := claim("phones", "1"), claim("phones", "2"), claim("off", "1")
	if v := verb("confirm", paid, "--ref", "pay-1"); v.Status != "confirmed" || v.Payment.Amount.Amount != 500 {
		t.Errorf("%+v", v)
	}
	execute(t, env, "claim", "confirm", paid, "--ref", "pay-1").want(t, 0, "had been done before")
	execute(t, env, "claim", "confirm", paid, "--ref", "pay-2").want(t, 1, "invalid_state")
	execute(t, env, "claim", "confirm", given, "--ref", "pay-3", "--amount", "1", "--currency", "CNY").want(t, 1, "amount must be what the claim costs: 500 CNY")
	execute(t, env, "claim", "confirm", given, "--ref", "pay-3", "--amount", "1").want(t, 2, "--amount and --currency belong together")
	if v := verb("cancel", given); v.Status != "released" {
		t.Errorf("%+v", v)
	}
	execute(t, env, "claim", "ship", paid).want(t, 1, "--carrier ", "--tracking ")
	execute(t, env, "claim", "confirm", given).want(t, 1, "--ref ")
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
	execute(t, env, "claim", "redeem", coupon, "--ref", "order-10", "--user", "7").want(t, 1, "not_found")
	if v := verb("unredeem", coupon); v.Redemption != nil {
		t.Errorf("%+v", v)
	}
	execute(t, env, "claim", "show", paid).want(t, 0, "status    refunded", "refund 300 CNY", "ship SF 77")
	execute(t, env, "claim", "show", "0000000000000000").want(t, 1, "not_found")
	execute(t, env, "campaign", "show", "phones").want(t, 0, "granted         0 (pending 0, confirmed 0, refunded 1)", "left            3")
}

// TestOrderSearch looks for orders from the outside.
func TestOrderSearch(t *testing.T) {
	env := served(t)
	execute(t, env, "campaign", "create", "--id", "spring", "--kind", "coupon", "--title", "Spring", "--items", "A1,A2", "--ends", "+2h", "--limit", "2",
		"--publish").want(t, 0)
	api, err := client.New(env[0][len("DIBS_URL="):], client.Options{Token: strings.TrimSpace(execute(t, secrets, "token", "--user", "42").out)})
	if err != nil {
		t.Fatal(err)
	}
	defer api.CloseIdle()
	first, _, err := api.Claim(t.Context(), "spring", 1, "k")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, env, "claim", "list", "--campaign", "spring", "--code", "A1").want(t, 0, first.ID, "spring", "confirmed")
	execute(t, env, "claim", "list", "--user", "42", "--type", "flash", "--since", "-1h", "--until", "+1m").want(t, 0, first.ID)
	if r := execute(t, env, "claim", "list", "--user", "43"); strings.Contains(r.out, first.ID) {
		t.Errorf("another user's: %s", r.out)
	}
	execute(t, env, "claim", "list", "--csv", "--status", "confirmed").want(t, 0, "id,campaign_id", first.ID+",spring,coupon,42,1,confirmed,1,2,A1")
	execute(t, env, "claim", "list", "--code", "A1").want(t, 1, "code needs campaign_id")
	execute(t, env, "claim", "list", "--status", "paid").want(t, 2, "--status must be")
	execute(t, env, "claim", "list", "--type", "2").want(t, 2, "--type must be")
	execute(t, env, "claim", "list", "--since", "noon").want(t, 2, "--since must be")
	execute(t, env, "claim", "list", "--limit", "0").want(t, 2, "--limit must be")
}

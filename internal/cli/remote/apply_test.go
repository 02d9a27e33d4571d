package remote_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

const applyFile = `
id: phones
kind: sale
title: Phones
starts_at: 2030-12-01T04:00:00Z
ends_at: 2030-12-01T06:00:00Z
stock: {units: 10}
state: published
---
- id: coupons
  kind: coupon
  title: Coupons
  starts_at: 2030-12-01T04:00:00Z
  ends_at: 2030-12-01T06:00:00Z
  stock:
    codes: {count: 5, pattern: XX-XXXX}
- {"id": "seats", "kind": "sale", "title": "Seats", "starts_at": "2030-12-01T04:00:00Z", "ends_at": "2030-12-01T06:00:00Z", "stock": {"items": ["A1", "A2"]}, "state": "paused"}
`

// TestApply applies a file again and again.
func TestApply(t *testing.T) {
	env, file := clitest.Served(t), clitest.WriteFile(t, "campaigns.yaml", applyFile)
	apply := func(want ...string) {
		t.Helper()
		r := clitest.Run(t, env, "campaign", "apply", "-f", file)
		r.Want(t, 0)
		lines := strings.Split(strings.TrimSpace(r.Out), "\n")[1:]
		for i, line := range lines {
			if got := strings.Join(strings.Fields(line), " "); got != want[i] {
				t.Errorf("says %q, want %q", got, want[i])
			}
		}
		if len(lines) != len(want) {
			t.Errorf("%d lines, want %d:\n%s", len(lines), len(want), r.Out)
		}
	}
	clitest.Run(t, env, "campaign", "apply", "-f", file, "--dry-run").Want(t, 0, "WOULD BE DONE", "created, publish, pause")
	clitest.Run(t, env, "campaign", "show", "phones").Want(t, 1, "not_found")
	apply("phones published created, publish", "coupons draft created", "seats paused created, publish, pause")
	apply("phones published unchanged", "coupons draft unchanged", "seats paused unchanged")

	changed := strings.Replace(applyFile, "title: Phones", "title: More phones\nlimit_per_user: 3", 1)
	changed = strings.Replace(changed, "units: 10", "units: 11", 1)
	changed = strings.Replace(changed, `"paused"`, `"ended"`, 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r := clitest.Run(t, env, "campaign", "apply", "-f", file, "--output", "json")
	r.Want(t, 0, `"changed title limit_per_user"`, `"end"`, "note: campaign phones: the stock is 10 on the server and 11 in the file")
	apply("phones published unchanged", "coupons draft unchanged", "seats ended unchanged")
	clitest.Run(t, env, "campaign", "list").Want(t, 0, "More phones", "10 units")
	clitest.Run(t, env, "campaign", "show", "coupons", "--output", "json").Want(t, 0, `"pattern": "XX-XXXX"`)
}

// TestApplyRefuses checks that a bad file changes nothing.
func TestApplyRefuses(t *testing.T) {
	env := clitest.Served(t)
	good := "{id: a, kind: sale, title: A, starts_at: 2030-12-01T04:00:00Z, ends_at: 2030-12-01T06:00:00Z, stock: {units: 1}}"
	for _, c := range []struct {
		file string
		code int
		want string
	}{
		{"[" + good + ", {id: b, kinds: sale}]", 2, "campaign 2: kinds is not a known field"},
		{"[" + good + ", " + good + "]", 2, "campaign a is named twice"},
		{"[" + good + ", {kind: sale}]", 2, "campaign 2: id is required"},
		{"[" + good + ", [1]]", 2, "campaign 2: must be a campaign, not array"},
		{"[" + good + ", {id: b, limit_per_user: many}]", 2, "campaign 2: limit_per_user must be a whole number"},
		// Every fault is named, with its place.
		{"{id: b, ends_at: soon, price: 9.99CNY, pay_within: 15, title: 7, stock: {items: [A1, 2], unit: 1}, gate: {room: {opens_at: noon}}}", 2,
			"campaign 1: ends_at must be a time such as 2026-12-01T04:00:00Z; gate/room/opens_at must be a time such as 2026-12-01T04:00:00Z; " +
				"pay_within must be a duration such as 15m or 1h30m; price must be an amount such as {amount: 999, currency: CNY}; " +
				"stock/items/1 must be a string; stock/unit is not a known field; title must be a string"},
		{"a: [", 2, "yaml"},
		{"", 2, "has no campaigns"},
	} {
		clitest.Run(t, env, "campaign", "apply", "-f", clitest.WriteFile(t, "c.yaml", c.file)).Want(t, c.code, c.want)
	}
	if r := clitest.Run(t, env, "campaign", "list", "--output", "json"); strings.TrimSpace(r.Out) != "[]" {
		t.Errorf("something was created: %s", r.Out)
	}
	file := clitest.WriteFile(t, "c.yaml", good)
	clitest.Run(t, env, "campaign", "apply", "-f", file).Want(t, 0, "created")
	for from, want := range map[string]string{"kind: sale": "kind is sale", "id: a": "state is draft and cannot become ended"} {
		to := map[string]string{"kind: sale": "kind: coupon", "id: a": "id: a, state: ended"}[from]
		clitest.Run(t, env, "campaign", "apply", "-f", clitest.WriteFile(t, "c.yaml", strings.Replace(good, from, to, 1))).Want(t, 2, want)
	}
	// The server judges how many shards there may be.
	more := strings.NewReplacer("title: A", "title: A, shards: 2", "units: 1", "units: 2").Replace(good)
	clitest.Run(t, env, "campaign", "apply", "-f", clitest.WriteFile(t, "c.yaml", more)).Want(t, 1, "shards", "not be more than the 1 units")
}

// TestApplySome: what the file leaves out of a campaign stays as it is.
func TestApplySome(t *testing.T) {
	env := clitest.Served(t)
	apply := func(file string, args ...string) clitest.Result {
		t.Helper()
		r := clitest.Run(t, env, append([]string{"campaign", "apply", "-f", clitest.WriteFile(t, "c.yaml", file)}, args...)...)
		if strings.Contains(r.Err, "note: ") {
			t.Errorf("%s has a note: %s", file, r.Err)
		}
		return r
	}
	apply("{id: a, kind: sale, title: A, comment: inner, starts_at: 2030-12-01T04:00:00Z, ends_at: 2030-12-01T06:00:00Z, stock: {units: 3}}").Want(t, 0, "created")
	apply("{id: a, kind: sale}").Want(t, 0, "unchanged")
	apply("{id: a, state: published}", "--dry-run").Want(t, 0, "publish")
	apply("{id: a, state: published, title: B}").Want(t, 0, "changed title, publish")
	apply("{id: a, state: ended}").Want(t, 0, "end")
	clitest.Run(t, env, "campaign", "show", "a", "--output", "json").Want(t, 0, `"title": "B"`, `"comment": "inner"`, `"units": 3`, `"starts_at": "2030-12-01T04:00:00Z"`)
}

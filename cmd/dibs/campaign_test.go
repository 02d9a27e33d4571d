package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// served is a server and the environment of verbs that speak to it.
func served(t *testing.T) []string {
	t.Helper()
	_, url := startServe(t, t.TempDir())
	return []string{"DIBS_URL=" + url, "DIBS_ADMIN_KEY=" + testKey}
}

// campaignOf reads the campaign that a verb shows.
func campaignOf(t *testing.T, r result) dibs.CampaignView {
	t.Helper()
	r.want(t, 0)
	var v dibs.CampaignView
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	return v
}

// TestCampaignLife walks a campaign through every verb.
func TestCampaignLife(t *testing.T) {
	env := served(t)
	verb := func(args ...string) dibs.CampaignView {
		t.Helper()
		return campaignOf(t, execute(t, env, append(append([]string{"campaign"}, args...), "--output", "json")...))
	}
	v := verb("create", "--id", "phones", "--title", "Phones", "--units", "10", "--ends", "+2h", "--price", "1999", "--currency", "CNY",
		"--limit", "2", "--pay-within", "15m", "--comment", "inner")
	if v.State != dibs.Draft || *v.Stock.Units != 10 || v.Price.Amount != 1999 || v.LimitPerUser != 2 || v.PayWithin == nil || *v.Comment != "inner" {
		t.Errorf("created %+v", v)
	}
	for _, step := range []struct {
		verb string
		want dibs.State
	}{{"publish", dibs.Published}, {"pause", dibs.PausedState}, {"pause", dibs.PausedState}, {"resume", dibs.Published}} {
		if v := verb(step.verb, "phones"); v.State != step.want {
			t.Errorf("%s: %s, want %s", step.verb, v.State, step.want)
		}
	}
	for range 2 {
		if v := verb("stock", "phones", "--delta", "5", "--key", "pallet-1"); *v.Stock.Units != 15 || v.Remaining != 15 {
			t.Errorf("restocked %+v", v)
		}
	}
	if v := verb("stock", "phones", "--delta", "-5", "--why", "broken"); *v.Stock.Units != 10 {
		t.Errorf("withdrew %+v", v)
	}
	v = verb("create", "--id", "seats", "--title", "Seats", "--items", "A1,A2", "--ends", "+1h", "--publish")
	if v.State != dibs.Published || *v.Stock.Items != 2 {
		t.Errorf("created %+v", v)
	}
	if v := verb("end", "seats"); v.State != dibs.EndedState {
		t.Errorf("ended %+v", v)
	}
	execute(t, env, "campaign", "list").want(t, 0, "phones", "10 units", "seats", "2 items", "ended")
	execute(t, env, "campaign", "show", "phones").want(t, 0, "pay within", "15m0s", "granted", "0 (pending 0")
	execute(t, env, "campaign", "show", "phones", "--output", "json").want(t, 0, `"campaign"`, `"stats"`)
	execute(t, env, "campaign", "publish", "seats").want(t, 1, "dibs: invalid_state")
	execute(t, env, "campaign", "show", "nobody").want(t, 1, "dibs: not_found")
	execute(t, env, "campaign", "create", "--id", "phones", "--title", "Again", "--units", "1", "--ends", "+1h").want(t, 1, "dibs: already_exists")
	execute(t, env, "campaign", "create", "--kind", "coupon", "--units", "-1", "--ends", "+1h").want(t, 1, "invalid_request", "title is required", "stock/units must")
}

func TestCampaignUsage(t *testing.T) {
	env := []string{"DIBS_ADMIN_KEY=" + testKey}
	create := []string{"campaign", "create", "--title", "x"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(create, "--units", "1"), "--ends must be a time"},
		{append(create, "--ends", "+1h"), "give one stock"},
		{append(create, "--ends", "+1h", "--units", "1", "--codes", "2"), "give one stock"},
		{append(create, "--ends", "+1h", "--units", "1", "--price", "2"), "belong together"},
		{append(create, "--ends", "+1h", "--units", "1", "--pattern", "X"), "--pattern belongs to --codes"},
		{[]string{"campaign", "stock", "x"}, "give --delta or --items"},
		{[]string{"campaign", "publish"}, "accepts 1 arg(s), received 0; usage: dibs campaign publish ID"},
		{[]string{"campaign", "list", "--output", "xml"}, "must be table or json"},
		{[]string{"campaign", "list", "--url", "localhost"}, "url (flag --url): must be an address"},
		{[]string{"campaign", "watch", "--every", "1ms"}, "--every must be"},
		{[]string{"campaign", "pubilsh", "x"}, `there is no command "campaign pubilsh"; did you mean publish?`},
		{[]string{"campaign", "apply"}, "name a file"},
		{[]string{"campaign", "apply", "-f", "not-there.yaml"}, "no such file"},
	} {
		r := execute(t, env, c.args...)
		r.want(t, 2, c.want)
		if strings.Count(strings.TrimSpace(r.err), "\n") > 1 {
			t.Errorf("%v: more than a line:\n%s", c.args, r.err)
		}
	}
	execute(t, nil, "campaign", "list").want(t, 2, "admin_key (not set: --admin-key or DIBS_ADMIN_KEY)")
	execute(t, env, "campaign", "list", "--url", "http://127.0.0.1:1").want(t, 1, "dibs: no server answers at http://127.0.0.1:1")
	execute(t, served(t), "campaign", "list", "--admin-key", "0123456789abcdefgh").want(t, 1, "does not take this admin key")
}

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
	env, file := served(t), writeFile(t, "campaigns.yaml", applyFile)
	apply := func(want ...string) {
		t.Helper()
		r := execute(t, env, "campaign", "apply", "-f", file)
		r.want(t, 0)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")[1:]
		for i, line := range lines {
			if got := strings.Join(strings.Fields(line), " "); got != want[i] {
				t.Errorf("says %q, want %q", got, want[i])
			}
		}
		if len(lines) != len(want) {
			t.Errorf("%d lines, want %d:\n%s", len(lines), len(want), r.out)
		}
	}
	execute(t, env, "campaign", "apply", "-f", file, "--dry-run").want(t, 0, "WOULD BE DONE", "created, publish, pause")
	execute(t, env, "campaign", "show", "phones").want(t, 1, "not_found")
	apply("phones published created, publish", "coupons draft created", "seats paused created, publish, pause")
	apply("phones published unchanged", "coupons draft unchanged", "seats paused unchanged")

	changed := strings.Replace(applyFile, "title: Phones", "title: More phones\nlimit_per_user: 3", 1)
	changed = strings.Replace(changed, "units: 10", "units: 11", 1)
	changed = strings.Replace(changed, `"paused"`, `"ended"`, 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r := execute(t, env, "campaign", "apply", "-f", file, "--output", "json")
	r.want(t, 0, `"changed title limit_per_user"`, `"end"`, "note: campaign phones: the stock is 10 on the server and 11 in the file")
	apply("phones published unchanged", "coupons draft unchanged", "seats ended unchanged")
	execute(t, env, "campaign", "list").want(t, 0, "More phones", "10 units")
	execute(t, env, "campaign", "show", "coupons", "--output", "json").want(t, 0, `"pattern": "XX-XXXX"`)
}

// TestApplyRefuses checks that a bad file changes nothing.
func TestApplyRefuses(t *testing.T) {
	env := served(t)
	good := "{id: a, kind: sale, title: A, starts_at: 2030-12-01T04:00:00Z, ends_at: 2030-12-01T06:00:00Z, stock: {units: 1}}"
	for _, c := range []struct {
		file string
		code int
		want string
	}{
		{"[" + good + ", {id: b, kinds: sale}]", 2, `campaign 2: unknown field "kinds"`},
		{"[" + good + ", " + good + "]", 2, "campaign a is there twice"},
		{"[" + good + ", {kind: sale}]", 2, "campaign 2: id is required"},
		{"[" + good + ", [1]]", 2, "campaign 2: cannot unmarshal array"},
		{"a: [", 2, "yaml"},
		{"", 2, "has no campaigns"},
	} {
		execute(t, env, "campaign", "apply", "-f", writeFile(t, "c.yaml", c.file)).want(t, c.code, c.want)
	}
	if r := execute(t, env, "campaign", "list", "--output", "json"); strings.TrimSpace(r.out) != "[]" {
		t.Errorf("something was created: %s", r.out)
	}
	file := writeFile(t, "c.yaml", good)
	execute(t, env, "campaign", "apply", "-f", file).want(t, 0, "created")
	for from, want := range map[string]string{"kind: sale": "kind is sale", "title: A": "shards is 1", "id: a": "state is draft and cannot become ended"} {
		to := map[string]string{"kind: sale": "kind: coupon", "title: A": "title: A, shards: 2", "id: a": "id: a, state: ended"}[from]
		execute(t, env, "campaign", "apply", "-f", writeFile(t, "c.yaml", strings.Replace(good, from, to, 1))).want(t, 2, want)
	}
}

// TestWatch follows a campaign until a signal, and until the time is over.
func TestWatch(t *testing.T) {
	env := served(t)
	execute(t, env, "campaign", "watch").want(t, 1, "no campaign is published")
	execute(t, env, "campaign", "create", "--id", "w", "--title", "W", "--units", "7", "--ends", "+1h", "--publish").want(t, 0)
	// On a busy machine the first look may take all of a short time.
	for length, lines := 250*time.Millisecond, 0; lines < 2; length *= 2 {
		r := execute(t, env, "campaign", "watch", "--for", length.String(), "--every", "100ms")
		r.want(t, 0, "RATE/S")
		if lines = strings.Count(r.out, " w "); strings.Contains(r.out, "\x1b") || lines < 2 && length > patience {
			t.Fatalf("%d lines in %s:\n%s", lines, length, r.out)
		}
	}
	p := start(t, env, "campaign", "watch", "w", "--output", "json", "--every", "100ms")
	p.await(t, p.out, `(?m)^\{"at":"[^"]+","campaign_id":"w","remaining":7,.*\}$`)
	p.signal(t, syscall.SIGINT)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d after Ctrl-C", code)
	}
	execute(t, env, "campaign", "watch", "nobody").want(t, 1, "not_found")
}

// TestItemsFile reads a stock from a file.
func TestItemsFile(t *testing.T) {
	env, file := served(t), filepath.Join(t.TempDir(), "seats.txt")
	if err := os.WriteFile(file, []byte("A1\r\n\nA2\nA3"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := campaignOf(t, execute(t, env, "campaign", "create", "--title", "Seats", "--items-file", file, "--ends", "+1h", "--output", "json"))
	if *v.Stock.Items != 3 {
		t.Errorf("%d items", *v.Stock.Items)
	}
}

func TestCampaignTiers(t *testing.T) {
	env := served(t)
	create := []string{"campaign", "create", "--id", "shoes", "--title", "Shoes", "--units", "5", "--ends", "+1h", "--limit", "3", "--price", "999", "--currency", "CNY"}
	execute(t, env, append(create, "--tier", "second:half")...).want(t, 2, "--tier must be like 2:50")
	execute(t, env, append(create, "--tier", "2:150")...).want(t, 1, "tiers/0/percent")
	execute(t, env, append(create, "--tier", "2:50,3:0", "--low-stock", "4", "--publish")...).want(t, 0, "shoes")
	execute(t, env, "campaign", "show", "shoes").want(t, 0, "from unit 2 on 50 % of the price", "from unit 3 on 0 % of the price")
}

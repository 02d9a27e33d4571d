package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/httpapi"
)

const draftBody = `{"id":"phone-noon","kind":"sale","title":"Phone at noon","product_id":null,"comment":"inner words",
 "starts_at":"2036-12-01T04:00:00Z","ends_at":"2036-12-01T06:00:00Z","stock":{"units":200},"limit_per_user":1,
 "price":null,"pay_within":null,"late_payment":"reclaim","shards":1}`

func TestCampaignScenarios(t *testing.T) {
	s := newStack(t, nil)
	s.run(t, campaignScenarios)
	s.run(t, badBodyScenarios)
}

const (
	inChinese = "Accept-Language: fr;q=0.9, zh-Hans;q=0.8, en;q=0.2"
	priceBody = `{"amount":99900,"currency":"CNY"}`
)

// The life of a campaign as an admin drives it, in order.
var campaignScenarios = []scenario{
	{
		name: "create", method: "POST", path: "/v1/campaigns", body: draftBody, headers: []string{asAdmin}, status: 201,
		contains: []string{`"state":"draft"`, `"stock":{"units":200}`, `"comment":"inner words"`, `"shards":1`}, has: []string{"Location: /v1/campaigns/phone-noon"},
	},
	{
		name: "an id taken", method: "POST", path: "/v1/campaigns", body: draftBody, headers: []string{asAdmin}, status: 409,
		contains: []string{`"reason":"already_exists"`, `"code":20002`},
	},
	{name: "a draft is invisible", method: "GET", path: "/v1/campaigns/phone-noon", status: 404, lacks: []string{"Phone at noon"}},
	{name: "to users too", method: "GET", path: "/v1/campaigns/phone-noon", headers: []string{asUser}, status: 404, lacks: []string{"Phone at noon"}},
	{name: "and in the list", method: "GET", path: "/v1/campaigns", status: 200, contains: []string{`"items":[]`, `"next_cursor":""`}},
	{name: "not to admins", method: "GET", path: "/v1/campaigns", headers: []string{asAdmin}, status: 200, contains: []string{"phone-noon"}, has: []string{"Cache-Control: no-store"}},
	{name: "patch", method: "PATCH", path: "/v1/campaigns/phone-noon", body: `{"title":"Phone!","price":null}`, headers: []string{asAdmin}, status: 200, contains: []string{`"title":"Phone!"`}},
	{name: "patch state", method: "PATCH", path: "/v1/campaigns/phone-noon", body: `{"state":"published"}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/state"`}},
	{name: "patch nothing known", method: "PATCH", path: "/v1/campaigns/nothing", body: `{"title":"x"}`, headers: []string{asAdmin}, status: 404},
	{name: "publish", method: "POST", path: "/v1/campaigns/phone-noon/publish", headers: []string{asAdmin}, status: 200, contains: []string{`"state":"published"`}},
	{name: "publish again", method: "POST", path: "/v1/campaigns/phone-noon/publish", body: `{}`, headers: []string{asAdmin}, status: 200},
	{name: "publish with words", method: "POST", path: "/v1/campaigns/phone-noon/publish", body: `{"now":true}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/now"`}},
	{
		name: "the public view", method: "GET", path: "/v1/campaigns/phone-noon", status: 200, contains: []string{`"remaining":200`, `"product_id":null`},
		lacks: []string{"inner words", "shards", "late_payment", `"stock"`, "created_at"}, has: []string{"Cache-Control: public, max-age=10, s-maxage=10, stale-while-revalidate=50", "Etag: ", "Vary: Authorization"},
	},
	{name: "fewer shards", method: "PATCH", path: "/v1/campaigns/phone-noon", body: `{"shards":0}`, headers: []string{asAdmin}, status: 409, contains: []string{`"/shards"`, "may only rise, it is 1"}},
	{name: "too many shards", method: "PATCH", path: "/v1/campaigns/phone-noon", body: `{"shards":65}`, headers: []string{asAdmin}, status: 409, contains: []string{`"/shards"`, "at most 64"}},
	{name: "more shards on the memory engine", method: "PATCH", path: "/v1/campaigns/phone-noon", body: `{"shards":2}`, headers: []string{asAdmin, chinese}, status: 400, contains: []string{`"/shards"`, "需要 Redis"}},
	{name: "start after publishing", method: "PATCH", path: "/v1/campaigns/phone-noon", body: `{"starts_at":"2035-01-01T00:00:00Z"}`, headers: []string{asAdmin}, status: 409, contains: []string{`"invalid_state"`, `"/starts_at"`}},
	{name: "pause", method: "POST", path: "/v1/campaigns/phone-noon/pause", headers: []string{asAdmin}, status: 200, contains: []string{`"state":"paused"`}},
	{name: "resume", method: "POST", path: "/v1/campaigns/phone-noon/resume", headers: []string{asAdmin}, status: 200, contains: []string{`"state":"published"`}},
	{name: "restock", method: "POST", path: "/v1/campaigns/phone-noon/stock", body: `{"delta":50,"why":"a box"}`, headers: []string{asAdmin}, status: 200, contains: []string{`"units":250`, `"remaining":250`}},
	{name: "withdraw too much", method: "POST", path: "/v1/campaigns/phone-noon/stock", body: `{"delta":-251}`, headers: []string{asAdmin}, status: 409, contains: []string{`"reason":"invalid_state"`}},
	{name: "restock by nothing", method: "POST", path: "/v1/campaigns/phone-noon/stock", body: `{}`, headers: []string{asAdmin}, status: 400, contains: []string{`"/delta"`}},
	{
		name: "stats", method: "GET", path: "/v1/campaigns/phone-noon/stats", headers: []string{asAdmin}, status: 200,
		contains: []string{`"stock":250`, `"remaining":250`, `"granted":0`, `"pending":0`, `"refused":{}`, `"refused_counted_by":"this_node"`, `"settle_lag_ms"`, `"journal_backlog":`},
	},
	{name: "stats of nothing", method: "GET", path: "/v1/campaigns/nothing/stats", headers: []string{asAdmin}, status: 404},
	{name: "claims of nothing", method: "GET", path: "/v1/campaigns/nothing/claims?format=csv", headers: []string{asAdmin}, status: 404},
	{name: "no claims", method: "GET", path: "/v1/campaigns/phone-noon/claims", headers: []string{asAdmin}, status: 200, contains: []string{`"items":[]`}},
	{name: "status word", method: "GET", path: "/v1/campaigns/phone-noon/claims?status=paid", headers: []string{asAdmin}, status: 400, contains: []string{`"/status"`, "pending"}},
	{name: "misspelt filter", method: "GET", path: "/v1/campaigns/phone-noon/claims?userid=7", headers: []string{asAdmin}, status: 400, contains: []string{`"/userid"`}},
	{name: "limit 0", method: "GET", path: "/v1/campaigns?limit=0", status: 400, contains: []string{`"/limit"`}},
	{name: "limit 101", method: "GET", path: "/v1/products?limit=101", headers: []string{asAdmin}, status: 400, contains: []string{`"/limit"`}},
	{name: "limit of letters", method: "GET", path: "/v1/me/claims?limit=ten", headers: []string{asUser}, status: 400, contains: []string{`"/limit"`}},
	{name: "limit beyond numbers", method: "GET", path: "/v1/me/claims?limit=99999999999999999999", headers: []string{asUser}, status: 400, contains: []string{`"/limit"`}},
	{name: "cursor", method: "GET", path: "/v1/campaigns?cursor=%21%21", status: 400, contains: []string{`"/cursor"`}},
	{name: "my cursor", method: "GET", path: "/v1/me/claims?cursor=bm90", headers: []string{asUser}, status: 400, contains: []string{`"/cursor"`}},
	{name: "end", method: "POST", path: "/v1/campaigns/phone-noon/end", headers: []string{asAdmin}, status: 200, contains: []string{`"state":"ended"`}},
	{name: "resume what ended", method: "POST", path: "/v1/campaigns/phone-noon/resume", headers: []string{asAdmin}, status: 409, contains: []string{`"reason":"invalid_state"`, `"code":30010`}},
}

// Bodies that are refused, naming what is wrong.
var badBodyScenarios = []scenario{
	{
		name: "everything missing", method: "POST", path: "/v1/campaigns", body: `{}`, headers: []string{asAdmin}, status: 400,
		contains: []string{`"/kind"`, `"/title"`, `"/starts_at"`, `"/ends_at"`, `"/stock"`},
	},
	{
		name: "form and values at once", method: "POST", path: "/v1/campaigns", headers: []string{asAdmin}, status: 400,
		body:     `{"kind":"gift","title":"","starts_at":"2036-12-01T04:00:00Z","ends_at":"2036-12-01T06:00:00Z","stock":{"units":0},"limit_per_user":"x","foo":1}`,
		contains: []string{`"/foo"`, `"/kind"`, `"/limit_per_user"`, `"/stock/units"`, `"/title"`},
	},
	{name: "no body", method: "POST", path: "/v1/campaigns", headers: []string{asAdmin}, status: 400, contains: []string{"a JSON body is required"}},
	{name: "not JSON", method: "POST", path: "/v1/campaigns", body: `{"id":`, headers: []string{asAdmin}, status: 400},
	{name: "two bodies", method: "POST", path: "/v1/products", body: `{"name":"P"} {}`, headers: []string{asAdmin}, status: 400, contains: []string{"something follows"}},
	{name: "too deep", method: "POST", path: "/v1/campaigns", body: strings.Repeat("[", 17) + strings.Repeat("]", 17), headers: []string{asAdmin}, status: 400, contains: []string{"too deep"}},
	{name: "bottomless", method: "POST", path: "/v1/campaigns", body: strings.Repeat(`{"a":`, 100000), headers: []string{asAdmin}, status: 400, contains: []string{"too deep"}},
	{name: "not a form", method: "POST", path: "/v1/campaigns", body: `id=1`, headers: []string{asAdmin, "Content-Type: application/x-www-form-urlencoded"}, status: 415},
	{name: "stock of two kinds", method: "POST", path: "/v1/campaigns", body: strings.Replace(draftBody, `{"units":200}`, `{"units":2,"items":["a"]}`, 1), headers: []string{asAdmin}, status: 400, contains: []string{`"/stock"`}},
	{name: "a unit and a half", method: "POST", path: "/v1/campaigns", body: strings.Replace(draftBody, `200}`, `1.5}`, 1), headers: []string{asAdmin}, status: 400, contains: []string{`"/stock/units"`}},
	{name: "too many for a number", method: "POST", path: "/v1/campaigns", body: strings.Replace(draftBody, `200}`, `20000000000000000000}`, 1), headers: []string{asAdmin}, status: 400, contains: []string{`"/stock/units"`}},
	{name: "a duration in numbers", method: "POST", path: "/v1/campaigns", body: strings.Replace(draftBody, `"pay_within":null`, `"pay_within":900`, 1), headers: []string{asAdmin}, status: 400, contains: []string{`"/pay_within"`}},
	{name: "a duration beyond", method: "POST", path: "/v1/campaigns", body: strings.Replace(draftBody, `"pay_within":null`, `"pay_within":"99999999999999h"`, 1), headers: []string{asAdmin}, status: 400},
	{
		name: "tiers", method: "POST", path: "/v1/campaigns", headers: []string{asAdmin}, status: 400,
		body:     strings.Replace(draftBody, `"price":null`, `"price":{"amount":100,"currency":"CNY"},"low_stock":-1,"tiers":[{"from_unit":0,"percent":50},{"from_unit":3,"percent":101},{"from_unit":2,"percent":1}]`, 1),
		contains: []string{`"/tiers/0/from_unit"`, `"/tiers/1/percent"`, `"/tiers/2/from_unit"`, `"/low_stock"`},
	},
	{
		name: "half a tier", method: "POST", path: "/v1/campaigns", headers: []string{asAdmin}, status: 400,
		body:     strings.Replace(draftBody, `"price":null`, `"price":{"amount":100,"currency":"CNY"},"tiers":[{"from_unit":2},{"from_unit":2.5,"percent":1},{"from":3,"percent":1}]`, 1),
		contains: []string{`"/tiers/0/percent"`, `"/tiers/1/from_unit"`, `"/tiers/2/from"`},
	},
	{
		name: "tiers without a price", method: "POST", path: "/v1/campaigns", headers: []string{asAdmin}, status: 400,
		body: strings.Replace(draftBody, `"price":null`, `"tiers":[{"from_unit":2,"percent":50}]`, 1), contains: []string{`"/tiers"`},
	},
	{
		name: "faults in Chinese", method: "POST", path: "/v1/campaigns", body: `{"kind":"raffle"}`, headers: []string{asAdmin, inChinese}, status: 400,
		contains: []string{"参数错误", "必须是以下之一", "必填"},
	},
	{name: "a hash in the item", method: "POST", path: "/v1/campaigns", body: strings.Replace(draftBody, `{"units":200}`, `{"items":["a","a",3]}`, 1), headers: []string{asAdmin}, status: 400, contains: []string{`"/stock/items/2"`}},
}

func TestCachingOfPublicViews(t *testing.T) {
	s := newStack(t, nil)
	s.sale("now", 3, 1)
	a := s.ask("GET", "/v1/campaigns/now", "")
	tag := a.header.Get("ETag")
	if a.header.Get("Cache-Control") != "public, max-age=1, s-maxage=1, stale-while-revalidate=5" || tag == "" {
		t.Fatalf("%v", a.header)
	}
	for _, given := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		b := s.ask("GET", "/v1/campaigns/now", "", "If-None-Match: "+given)
		if b.status != 304 || b.body != "" || b.header.Get("ETag") != tag || b.header.Get("Cache-Control") == "" || b.header.Get("Vary") != "Authorization" {
			t.Errorf("%s: %d %v %s", given, b.status, b.header, b.body)
		}
	}
	if b := s.ask("GET", "/v1/campaigns/now", "", "If-None-Match: "+tag, asAdmin); b.status != 200 || b.header.Get("Cache-Control") != "no-store" {
		t.Errorf("an admin got the public answer: %d %v", b.status, b.header)
	}
	s.ask("POST", "/v1/campaigns/now/claims", "", asUser)
	if b := s.ask("GET", "/v1/campaigns/now", "", "If-None-Match: "+tag); b.status != 200 || !strings.Contains(b.body, `"remaining":2`) {
		t.Errorf("after a claim: %d %s", b.status, b.body)
	}
	if b := s.ask("HEAD", "/v1/campaigns/now", ""); b.status != 200 || b.body != "" || b.header.Get("ETag") == "" {
		t.Errorf("HEAD: %d %v", b.status, b.header)
	}
}

// An editor changes drafts, and nothing that is on offer.
func TestEditorsAndPublished(t *testing.T) {
	s := newStack(t, nil)
	_, editor, err := s.service.Access.CreateKey(t.Context(), "ed", access.RoleEditor)
	must(t, err)
	as := "Authorization: Bearer " + editor
	spec := fmt.Sprintf(`{"id":"c","kind":"sale","title":"T","starts_at":%q,"ends_at":%q,"stock":{"units":5}}`,
		time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339))
	for _, step := range []struct {
		method, path, body, as string
		status                 int
	}{
		{"POST", "/v1/campaigns", spec, as, 201},
		{"PATCH", "/v1/campaigns/c", `{"title":"U"}`, as, 200},
		{"PATCH", "/v1/campaigns/none", `{"title":"U"}`, as, 404},
		{"POST", "/v1/campaigns/c/publish", "", as, 403},
		{"POST", "/v1/campaigns/c/publish", "", asAdmin, 200},
		{"PATCH", "/v1/campaigns/c", `{"title":"V"}`, as, 403},
		{"GET", "/v1/campaigns/c", "", as, 200},
	} {
		if a := s.ask(step.method, step.path, step.body, step.as); a.status != step.status {
			t.Errorf("%s %s: %d %s", step.method, step.path, a.status, a.body)
		}
	}
	if v := s.ask("GET", "/v1/campaigns/c", "", as); v.json["title"] != "U" {
		t.Errorf("the title is %v", v.json["title"])
	}
}

// troubledCampaigns are red packets that do not get on.
type troubledCampaigns struct{ campaignService }

var troubled = &api.FundsView{Problem: "it is stuck", ProblemZH: "停滞不前"}

func (t troubledCampaigns) CampaignView(ctx context.Context, c *dibs.Campaign, admin bool) (api.CampaignView, error) {
	v, err := t.campaignService.CampaignView(ctx, c, admin)
	v.Funds = troubled
	return v, err
}

func (troubledCampaigns) Stats(context.Context, string) (api.StatsView, error) {
	return api.StatsView{Funds: troubled}, nil
}

// Why a red packet does not get on is told in the caller's language.
func TestFundsInBothLanguages(t *testing.T) {
	s := newStack(t, func(s *httpapi.Services) { s.Campaigns = troubledCampaigns{s.Campaigns} })
	s.ask("POST", "/v1/campaigns", draftBody, asAdmin)
	for _, q := range [][2]string{
		{"GET", "/v1/campaigns"}, {"GET", "/v1/campaigns/phone-noon"}, {"GET", "/v1/campaigns/phone-noon/stats"}, {"POST", "/v1/campaigns/phone-noon/publish"},
	} {
		en, zh := s.ask(q[0], q[1], "", asAdmin).body, s.ask(q[0], q[1], "", asAdmin, inChinese).body
		if !strings.Contains(en, `"problem":"it is stuck"`) || !strings.Contains(zh, `"problem":"停滞不前"`) {
			t.Errorf("%s %s: %s, in Chinese %s", q[0], q[1], en, zh)
		}
	}
}

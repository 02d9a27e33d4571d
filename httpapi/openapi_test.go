package httpapi_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sample is a good request for a documented operation, and the status of its
// success. A step may come more than once.
type sample struct {
	op, path, body string
	as             string
	status         int
}

var samples = []sample{
	{"GET /healthz", "/healthz", "", "", 200},
	{"GET /readyz", "/readyz", "", "", 200},
	{"GET /metrics", "/metrics", "", "", 200},
	{"GET /openapi.json", "/openapi.json", "", "", 200},
	{"GET /docs", "/docs", "", "", 200},
	{"GET /v1/time", "/v1/time", "", "", 200},
	{"POST /v1/products", "/v1/products", `{"id":"px","name":"P","price":{"amount":5,"currency":"CNY"}}`, asAdmin, 201},
	{"POST /v1/products/{id}/orders", "/v1/products/px/orders", "", asUser, 409},
	{"PATCH /v1/products/{id}", "/v1/products/px", `{"stock":2}`, asAdmin, 200},
	{"POST /v1/products/{id}/orders", "/v1/products/px/orders", `{"quantity":1}`, asUser, 201},
	{"GET /v1/products", "/v1/products", "", asAdmin, 200},
	{"GET /v1/products/{id}", "/v1/products/px", "", asAdmin, 200},
	{"PATCH /v1/products/{id}", "/v1/products/px", `{"name":"Q"}`, asAdmin, 200},
	{"POST /v1/campaigns", "/v1/campaigns", `{"id":"c","kind":"sale","title":"C","product_id":"px","starts_at":"2020-12-01T04:00:00Z","ends_at":"2036-12-01T06:00:00Z","stock":{"units":9},"pay_within":"15m"}`, asAdmin, 201},
	{"PATCH /v1/campaigns/{id}", "/v1/campaigns/c", `{"title":"D"}`, asAdmin, 200},
	{"POST /v1/campaigns/{id}/publish", "/v1/campaigns/c/publish", "", asAdmin, 200},
	{"POST /v1/campaigns/{id}/pause", "/v1/campaigns/c/pause", "", asAdmin, 200},
	{"POST /v1/campaigns/{id}/resume", "/v1/campaigns/c/resume", "", asAdmin, 200},
	{"POST /v1/campaigns", "/v1/campaigns", emptyBody, asAdmin, 201},
	{"POST /v1/campaigns/{id}/codes", "/v1/campaigns/spring/codes", "A1\nA2\n", asAdmin + "\n" + asCSV, 200},
	{"GET /v1/campaigns/{id}/codes", "/v1/campaigns/spring/codes?limit=1", "", asAdmin, 200},
	{"GET /v1/campaigns/{id}/codes", "/v1/campaigns/c/codes", "", asAdmin, 409},
	{"POST /v1/campaigns/{id}/codes", "/v1/campaigns/spring/codes", "A3", asAdmin, 415},
	{"POST /v1/campaigns/{id}/codes", "/v1/campaigns/spring/codes", "A2\n", asAdmin + "\n" + asCSV, 400},
	{"GET /v1/campaigns", "/v1/campaigns", "", "", 200},
	{"GET /v1/campaigns", "/v1/campaigns", "", asAdmin, 200},
	{"GET /v1/campaigns/{id}", "/v1/campaigns/c", "", "", 200},
	{"GET /v1/campaigns/{id}", "/v1/campaigns/c", "", asAdmin, 200},
	{"GET /c/{id}", "/c/c", "", "", 200},
	{"GET /", "/", "", "", 200},
	{"GET /console", "/console/", "", "", 200},
	{"GET /v1/session", "/v1/session", "", asAdmin, 200},
	{"POST /v1/session", "/v1/session", `{"key":"` + adminKey + `"}`, "", 200},
	{"DELETE /v1/session", "/v1/session", "", asAdmin, 200},
	{"GET /v1/campaigns/{id}/stats/stream", "/v1/campaigns/c/stats/stream", "", asAdmin, 200},
	{"POST /v1/rehearsals", "/v1/rehearsals", `{"users":10}`, asAdmin, 201},
	{"GET /v1/rehearsals/{id}", "/v1/rehearsals/r-1", "", asAdmin, 200},
	{"GET /v1/rehearsals/{id}/stream", "/v1/rehearsals/r-1/stream", "", asAdmin, 200},
	{"GET /v1/campaigns/{id}/luck", "/v1/campaigns/c/luck", "", "", 404},
	{"POST /v1/dev/payments", "/v1/dev/payments", `{"claim_id":"$CLAIM","how":"now"}`, asUser, 404},
	{"POST /v1/campaigns/{id}/claims", "/v1/campaigns/c/claims", "{}", asUser, 201},
	{"POST /v1/campaigns/{id}/claims", "/v1/campaigns/c/claims", "{}", asUser, 409},
	{"POST /v1/campaigns/{id}/claims", "/v1/campaigns/c/claims", `{"x":1}`, asUser, 400},
	{"POST /v1/campaigns/{id}/claims", "/v1/campaigns/none/claims", "", asUser, 404},
	{"POST /v1/campaigns/{id}/claims", "/v1/campaigns/none/claims", "", asAdmin, 401},
	{"GET /v1/claims/{id}", "/v1/claims/$CLAIM", "", asUser, 200},
	{"PATCH /v1/claims/{id}", "/v1/claims/$CLAIM", `{"comment":"call before noon"}`, asAdmin, 200},
	{"POST /v1/claims/{id}/redeem", "/v1/claims/$CLAIM/redeem", `{"ref":"o1"}`, asAdmin, 409},
	{"POST /v1/claims/{id}/unredeem", "/v1/claims/$CLAIM/unredeem", `{"ref":"o1"}`, asAdmin, 409},
	{"POST /v1/claims/{id}/confirm", "/v1/claims/$CLAIM/confirm", `{"payment_ref":"p1"}`, asAdmin, 400},
	{"POST /v1/claims/{id}/confirm", "/v1/claims/$CLAIM/confirm", `{"payment_ref":"p1","amount":{"amount":5,"currency":"CNY"}}`, asAdmin, 200},
	{"POST /v1/claims/{id}/cancel", "/v1/claims/$CLAIM/cancel", "", asUser, 409},
	{"POST /v1/claims/{id}/ship", "/v1/claims/$CLAIM/ship", `{"carrier":"SF","tracking_no":"1"}`, asAdmin, 200},
	{"POST /v1/claims/{id}/refund", "/v1/claims/$CLAIM/refund", `{"restock":true}`, asAdmin, 200},
	{"GET /v1/claims/{id}", "/v1/claims/$CLAIM", "", asUser, 200},
	{"GET /v1/claims/{id}", "/v1/claims/$CLAIM", "", asAdmin, 200},
	{"GET /v1/me/claims", "/v1/me/claims", "", asUser, 200},
	{"GET /v1/me/claims", "/v1/me/claims?status=refunded", "", asUser, 200},
	{"GET /v1/claims", "/v1/claims?user_id=42", "", asAdmin, 200},
	{"GET /v1/claims", "/v1/claims?format=csv", "", asAdmin, 200},
	{"GET /v1/campaigns/{id}/claims", "/v1/campaigns/c/claims", "", asAdmin, 200},
	{"GET /v1/campaigns/{id}/stats", "/v1/campaigns/c/stats", "", asAdmin, 200},
	{"POST /v1/campaigns/{id}/stock", "/v1/campaigns/c/stock", `{"delta":1}`, asAdmin, 200},
	{"POST /v1/campaigns/{id}/shards/{shard}/abandon", "/v1/campaigns/c/shards/0/abandon", `{"yes":true}`, asAdmin, 409},
	{"POST /v1/campaigns/{id}/shards/{shard}/abandon", "/v1/campaigns/c/shards/1/abandon", `{"unsold":1}`, asAdmin, 404},
	{"GET /v1/verify", "/v1/verify?campaign=c", "", asAdmin, 200},
	{"POST /v1/verify", "/v1/verify", `{"repair":true,"campaigns":["c"]}`, asAdmin, 200},
	{"POST /v1/verify", "/v1/verify", `{"repair":false}`, asAdmin, 400},
	{"POST /v1/verify", "/v1/verify", `{"repair":true}`, asUser, 403},
	{"POST /v1/accounts/{user}/deposits", "/v1/accounts/42/deposits", `{"amount":{"amount":5,"currency":"CNY"},"ref":"d"}`, asAdmin, 200},
	{"GET /v1/accounts/{user}", "/v1/accounts/42", "", asAdmin, 200},
	{"GET /v1/accounts/{user}/entries", "/v1/accounts/42/entries", "", asAdmin, 200},
	{"GET /v1/me/balance", "/v1/me/balance", "", asUser, 200},
	{"GET /v1/me/balance/entries", "/v1/me/balance/entries", "", asUser, 200},
	{"POST /v1/campaigns", "/v1/campaigns", `{"id":"rain","kind":"redpacket","title":"Rain","starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z",` +
		`"stock":{"redpacket":{"total":{"amount":7,"currency":"CNY"},"count":1}}}`, asAdmin, 201},
	{"POST /v1/campaigns/{id}/publish", "/v1/campaigns/rain/publish", "", asAdmin, 200},
	{"POST /v1/campaigns/{id}/claims", "/v1/campaigns/rain/claims", "{}", asUser, 201},
	{"POST /v1/campaigns/{id}/claims", "/v1/campaigns/rain/claims", "{}", asUser, 409},
	{"GET /v1/campaigns/{id}/stats", "/v1/campaigns/rain/stats", "", asAdmin, 200},
	{"GET /v1/campaigns/{id}", "/v1/campaigns/rain", "", asUser, 200},
	{"GET /v1/events", "/v1/events?after=0", "", asAdmin, 200},
	{"GET /v1/event-sinks", "/v1/event-sinks", "", asAdmin, 200},
	{"POST /v1/webhook-endpoints", "/v1/webhook-endpoints", `{"url":"http://10.0.0.1/"}`, asAdmin, 400},
	{"POST /v1/webhook-endpoints", "/v1/webhook-endpoints", `{"url":"https://hooks.example/x","types":["dev.dibs.claim.granted"]}`, asAdmin, 201},
	{"GET /v1/webhook-endpoints", "/v1/webhook-endpoints", "", asAdmin, 200},
	{"GET /v1/webhook-endpoints/{id}", "/v1/webhook-endpoints/$ENDPOINT", "", asAdmin, 200},
	{"POST /v1/webhook-endpoints/{id}/test", "/v1/webhook-endpoints/$ENDPOINT/test", "", asAdmin, 200},
	{"GET /v1/webhook-endpoints/{id}/deliveries", "/v1/webhook-endpoints/$ENDPOINT/deliveries?status=pending", "", asAdmin, 200},
	{"POST /v1/webhook-endpoints/{id}/redeliver", "/v1/webhook-endpoints/$ENDPOINT/redeliver", `{"failed":true}`, asAdmin, 200},
	{"POST /v1/webhook-endpoints/{id}/redeliver", "/v1/webhook-endpoints/$ENDPOINT/redeliver", `{}`, asAdmin, 400},
	{"POST /v1/webhook-endpoints/{id}/redeliver", "/v1/webhook-endpoints/$ENDPOINT/redeliver", `{"event_id":"none"}`, asAdmin, 404},
	{"POST /v1/webhook-endpoints/{id}/rotate-secret", "/v1/webhook-endpoints/$ENDPOINT/rotate-secret", `{"keep_old_for":"1h"}`, asAdmin, 200},
	{"PATCH /v1/webhook-endpoints/{id}", "/v1/webhook-endpoints/$ENDPOINT", `{"disabled":true}`, asAdmin, 200},
	{"POST /v1/webhook-endpoints/{id}/test", "/v1/webhook-endpoints/$ENDPOINT/test", "", asAdmin, 409},
	{"DELETE /v1/webhook-endpoints/{id}", "/v1/webhook-endpoints/$ENDPOINT", "", asAdmin, 200},
	{"GET /v1/webhook-endpoints/{id}", "/v1/webhook-endpoints/$ENDPOINT", "", asAdmin, 404},
	{"POST /v1/campaigns/{id}/end", "/v1/campaigns/c/end", "", asAdmin, 200},
	{"PUT /v1/audiences/{id}", "/v1/audiences/vip", "user\n42\n", asAdmin + "\nContent-Type: text/csv", 200},
	{"GET /v1/audiences/{id}", "/v1/audiences/vip", "", asAdmin, 200},
	{"GET /v1/audiences", "/v1/audiences", "", asAdmin, 200},
	{"POST /v1/merchants/{id}/followers/{user}", "/v1/merchants/shop/followers/42", `{"rank":5}`, asAdmin, 200},
	{"GET /v1/merchants/{id}/followers", "/v1/merchants/shop/followers", "", asAdmin, 200},
	{"POST /v1/merchants/{id}/followers", "/v1/merchants/shop/followers", "user,rank\n43,1\n44\n" + moreFollowers, asAdmin + "\nContent-Type: text/csv", 200},
	{"POST /v1/merchants/{id}/followers", "/v1/merchants/shop/followers", "43,x\n", asAdmin + "\nContent-Type: text/csv", 400},
	{"GET /v1/merchants/{id}", "/v1/merchants/shop", "", asAdmin, 200},
	{"GET /v1/merchants/threshold", "/v1/merchants/threshold?cover=99", "", asAdmin, 200},
	{"POST /v1/campaigns/{id}/announcements", "/v1/campaigns/rain/announcements", `{"merchant":"shop","rate":0}`, asAdmin, 400},
	{"POST /v1/campaigns/{id}/announcements", "/v1/campaigns/rain/announcements", `{"id":"slow","merchant":"shop","threshold":1,"rate":1}`, asAdmin, 201},
	{"POST /v1/campaigns/{id}/announcements", "/v1/campaigns/rain/announcements", `{"merchant":"shop"}`, asAdmin, 409},
	{"GET /v1/campaigns/{id}/announcements", "/v1/campaigns/rain/announcements", "", asAdmin, 200},
	{"POST /v1/announcements/{id}/pause", "/v1/announcements/slow/pause", "", asAdmin, 200},
	{"POST /v1/announcements/{id}/resume", "/v1/announcements/slow/resume", "", asAdmin, 200},
	{"GET /v1/announcements/{id}", "/v1/announcements/slow", "", asAdmin, 200},
	{"POST /v1/announcements/{id}/cancel", "/v1/announcements/slow/cancel", "", asAdmin, 200},
	{"POST /v1/announcements/{id}/resume", "/v1/announcements/slow/resume", "", asAdmin, 409},
	{"DELETE /v1/merchants/{id}/followers/{user}", "/v1/merchants/shop/followers/42", "", asAdmin, 200},
	{"POST /v1/users/{user}/erasure", "/v1/users/77/erasure", "", asAdmin, 202},
	{"POST /v1/users/{user}/erasure", "/v1/users/42/erasure", `{"leave_balance":false}`, asAdmin, 409},
	{"POST /v1/users/{user}/erasure", "/v1/users/42/erasure", `{"leave_balance":true}`, asAdmin, 202},
	{"GET /v1/users/{user}", "/v1/users/42", "", asAdmin, 200},
	{"GET /v1/erasures", "/v1/erasures?open=true", "", asAdmin, 200},
	{"GET /v1/erasures/{id}", "/v1/erasures/$ERASURE", "", asAdmin, 200},
	{"GET /v1/erasures/{id}", "/v1/erasures/none", "", asAdmin, 404},
	{"POST /v1/ws-tickets", "/v1/ws-tickets", "", asUser, 201},
	{"POST /v1/ws-tickets", "/v1/ws-tickets", "", "", 401},
	{"GET /v1/ws", "/v1/ws", "", "", 400},
	{"GET /v1/campaigns/{id}/events", "/v1/campaigns/c/events", "", "", 200},
	{"GET /v1/settings", "/v1/settings", "", asAdmin, 200},
	{"GET /v1/doctor", "/v1/doctor", "", asAdmin, 200},
	{"GET /v1/audit", "/v1/audit?limit=100", "", asAdmin, 200},
	{"POST /v1/keys", "/v1/keys", keyBody, asAdmin, 201},
	{"GET /v1/keys", "/v1/keys?limit=1", "", asAdmin, 200},
	{"GET /v1/keys/{id}", "/v1/keys/none", "", asAdmin, 404},
	{"POST /v1/keys/{id}/rotate", "/v1/keys/none/rotate", `{"overlap":"1h"}`, asAdmin, 404},
	{"DELETE /v1/keys/{id}", "/v1/keys/none", "", asAdmin, 404},
	{"GET /v1/audit/chain", "/v1/audit/chain?limit=2", "", asAdmin, 200},
	{"GET /v1/audit/verification", "/v1/audit/verification", "", asAdmin, 200},
	{"POST /v1/token-revocations", "/v1/token-revocations", `{"user_id":"nobody","why":"gone"}`, asAdmin, 201},
	{"POST /v1/token-revocations", "/v1/token-revocations", `{}`, asAdmin, 400},
	{"GET /v1/token-revocations", "/v1/token-revocations?limit=1", "", asAdmin, 200},
	{"DELETE /v1/token-revocations/{id}", "/v1/token-revocations/none", "", asAdmin, 404},
	{"GET /v1/sessions", "/v1/sessions", "", asAdmin, 200},
	{"GET /v1/approvals", "/v1/approvals", "", asAdmin, 200},
	{"GET /v1/approvals/{id}", "/v1/approvals/none", "", asAdmin, 404},
	{"POST /v1/approvals/{id}/approve", "/v1/approvals/none/approve", `{"why":"ok"}`, asAdmin, 404},
	{"POST /v1/approvals/{id}/reject", "/v1/approvals/none/reject", `{}`, asAdmin, 404},
	{"DELETE /v1/sessions/{id}", "/v1/sessions/none", "", asAdmin, 404},
}

// moreFollowers make an announcement at one a second last for minutes, however slow the machine is.
var moreFollowers = func() (lines string) {
	for i := range 300 {
		lines += fmt.Sprintln(1000 + i)
	}
	return lines
}()

const keyBody = `{"name":"till","role":"publisher","scopes":{"campaigns":["c"],"actions":["confirm-claim"]},"expires_at":"2036-01-01T00:00:00Z"}`

// gateSamples are those of a server with waiting rooms, lotteries and tickets.
var gateSamples = []sample{
	{"POST /v1/campaigns", "/v1/campaigns", `{"id":"q","kind":"sale","title":"Q","starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z",` +
		`"stock":{"units":3},"gate":{"room":{"mode":"fifo","rate":10},"ticket":{"lifetime":"2m"}}}`, asAdmin, 201},
	{"POST /v1/campaigns/{id}/publish", "/v1/campaigns/q/publish", "", asAdmin, 200},
	{"POST /v1/campaigns/{id}/claims", "/v1/campaigns/q/claims", "{}", asUser, 403},
	{"GET /v1/campaigns/{id}/queue", "/v1/campaigns/q/queue", "", asUser, 404},
	{"POST /v1/campaigns/{id}/queue", "/v1/campaigns/q/queue", "", asUser, 200},
	{"GET /v1/campaigns/{id}/queue", "/v1/campaigns/q/queue", "", asUser, 200},
	{"POST /v1/campaigns/{id}/tickets/challenge", "/v1/campaigns/q/tickets/challenge", "", asUser, 200},
	{"POST /v1/campaigns/{id}/tickets", "/v1/campaigns/q/tickets", "{}", asUser, 200},
	{"DELETE /v1/campaigns/{id}/queue", "/v1/campaigns/q/queue", "", asUser, 200},
	{"POST /v1/campaigns", "/v1/campaigns", `{"id":"lots","kind":"sale","title":"L","starts_at":"2035-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z",` +
		`"stock":{"units":3},"gate":{"room":{"mode":"lottery","registration_closes_at":"2034-01-01T00:00:00Z"}}}`, asAdmin, 201},
	{"POST /v1/campaigns/{id}/publish", "/v1/campaigns/lots/publish", "", asAdmin, 200},
	{"POST /v1/campaigns/{id}/lottery/entries", "/v1/campaigns/lots/lottery/entries", "", asUser, 201},
	{"GET /v1/campaigns/{id}/lottery", "/v1/campaigns/lots/lottery", "", asUser, 200},
	{"GET /v1/campaigns/{id}/lottery/result", "/v1/campaigns/lots/lottery/result", "", asUser, 200},
	{"GET /v1/campaigns/{id}/lottery/entries", "/v1/campaigns/lots/lottery/entries", "", asUser, 409},
	{"POST /v1/campaigns/{id}/lottery/public-value", "/v1/campaigns/lots/lottery/public-value", `{"value":"1"}`, asAdmin, 409},
}

// peopleSamples are those of a server with an identity provider, for a browser that begins, and for one that did not.
// TestPeopleSignIn and TestCommandLineSignIn have what comes of them.
var peopleSamples = []sample{
	{"GET /console/oidc", "/console/oidc?to=/console/orders", "", "", 302},
	{"GET /console/oidc", "/console/oidc?port=0", "", "", 400},
	{"GET /console/oidc/callback", "/console/oidc/callback?state=x&code=y", "", "", 401},
	{"POST /v1/session/token", "/v1/session/token", `{"code":"x","verifier":"y"}`, "", 401},
	{"POST /v1/session/token", "/v1/session/token", `{"code":"x","more":"y"}`, "", 400},
}

// Every documented operation answers as documented, member by member.
func TestAnswersMatchTheDocument(t *testing.T) {
	s := newStack(t, nil)
	tried := map[string]bool{}
	s.matchDocument(samples, tried)
	newGated(t).matchDocument(gateSamples, tried)
	atProvider := newPeople(t, nil)
	atProvider.matchDocument(peopleSamples, tried)
	for _, op := range append(s.operations(), atProvider.operations()...) {
		if !tried[op] {
			t.Errorf("%s has no sample here", op)
		}
	}
}

// matchDocument asks what the samples do, and holds the answers against the
// served document.
func (s *stack) matchDocument(samples []sample, tried map[string]bool) {
	s.t.Helper()
	doc := s.ask("GET", "/openapi.json", "").json
	if doc["openapi"] != "3.1.0" {
		s.t.Errorf("openapi %v", doc["openapi"])
	}
	claim, endpoint, erasure := "", "", ""
	for _, q := range samples {
		tried[q.op] = true
		method, _, _ := strings.Cut(q.op, " ")
		var headers []string
		if q.as != "" {
			headers = append(headers, strings.Split(q.as, "\n")...)
		}
		a := s.ask(method, strings.NewReplacer("$CLAIM", claim, "$ENDPOINT", endpoint, "$ERASURE", erasure).Replace(q.path), q.body, headers...)
		if a.status != q.status {
			s.t.Errorf("%s: %d %s", q.op, a.status, a.body)
			continue
		}
		if q.op == "POST /v1/campaigns/{id}/claims" && a.status == 201 {
			claim = fmt.Sprint(a.json["id"])
		}
		if q.op == "POST /v1/users/{user}/erasure" && a.status == 202 {
			erasure = fmt.Sprint(a.json["id"])
		}
		if q.op == "POST /v1/webhook-endpoints" && a.status == 201 {
			endpoint = fmt.Sprint(a.json["id"])
		}
		documented(s.t, doc, q.op, a)
	}
}

// documented holds one answer against the document.
func documented(t testing.TB, doc map[string]any, op string, a answer) {
	t.Helper()
	method, path, _ := strings.Cut(op, " ")
	responses := at(doc, "paths", path, strings.ToLower(method), "responses")
	r := at(responses, fmt.Sprint(a.status))
	if r == nil {
		if r = at(responses, "default"); a.status < 400 {
			t.Errorf("%s: %d is not documented", op, a.status)
		}
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if r != nil && a.header.Get("Location") != "" && a.status/100 == 3 && a.body == "" {
		// It says where to go, and has no body to describe.
		return
	}
	var schema map[string]any
	for documented, media := range at(r, "content") {
		if base, _, _ := strings.Cut(documented, ";"); base == kind {
			schema = at(media, "schema")
		}
	}
	if schema == nil {
		t.Errorf("%s: %s is not documented for %d", op, kind, a.status)
		return
	}
	if strings.HasSuffix(kind, "json") && path != "/openapi.json" {
		// Every answer fits a schema that says nothing.
		if len(schema) == 0 {
			t.Errorf("%s: the document does not say what %d answers", op, a.status)
		}
		conform(t, doc, schema, a.json, op)
	}
}

// at walks into JSON objects; nil where there is nothing.
func at(v any, names ...string) map[string]any {
	m, _ := v.(map[string]any)
	for _, n := range names {
		m, _ = m[n].(map[string]any)
	}
	return m
}

// conform checks a value against a schema: the members there are, those that
// must be, and the kinds of value.
func conform(t testing.TB, doc, schema map[string]any, v any, where string) {
	t.Helper()
	if ref, ok := schema["$ref"].(string); ok {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		if schema = at(doc, "components", "schemas", name); schema == nil {
			t.Errorf("%s: %s is not in the document", where, ref)
			return
		}
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		if v != nil {
			conform(t, doc, choices[0].(map[string]any), v, where)
		}
		return
	}
	if len(schema) == 0 {
		// Any JSON at all: docs/EVENTS.md says which, by the type of the event.
		return
	}
	kinds := fmt.Sprint(schema["type"])
	has := func(kind string) bool { return regexp.MustCompile(`\b` + kind + `\b`).MatchString(kinds) }
	good := false
	switch x := v.(type) {
	case nil:
		good = has("null")
	case string:
		good = has("string")
		if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
			t.Errorf("%s: %v is none of %v", where, v, enum)
		}
	case bool:
		good = has("boolean")
	case float64:
		good = has("integer") && x == float64(int64(x)) || has("number")
	case []any:
		if good = has("array"); good {
			for _, item := range x {
				conform(t, doc, at(schema, "items"), item, where+"[]")
			}
		}
	case map[string]any:
		if good = has("object"); good {
			conformObject(t, doc, schema, x, where)
		}
	}
	if !good {
		t.Errorf("%s: %v is no %s", where, v, kinds)
	}
}

func conformObject(t testing.TB, doc, schema map[string]any, v map[string]any, where string) {
	t.Helper()
	properties := at(schema, "properties")
	for name, member := range v {
		if p := at(properties, name); p != nil {
			conform(t, doc, p, member, where+"."+name)
		} else if more := at(schema, "additionalProperties"); more != nil {
			conform(t, doc, more, member, where+"."+name)
		} else {
			t.Errorf("%s: %s is not documented", where, name)
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := v[fmt.Sprint(name)]; !ok {
			t.Errorf("%s: %s is documented as always there", where, name)
		}
	}
}

// The document allows null where the contract does.
func TestDocumentAllowsNull(t *testing.T) {
	s := newStack(t, nil)
	doc := s.ask("GET", "/openapi.json", "").json
	spec := at(doc, "components", "schemas", "CampaignSpec", "properties")
	for _, name := range []string{"product_id", "price", "pay_within", "limit_per_user"} {
		raw, err := json.Marshal(spec[name])
		must(t, err)
		if !strings.Contains(string(raw), `"null"`) {
			t.Errorf("%s: %s", name, raw)
		}
	}
	for _, name := range []string{"title", "stock"} {
		raw, err := json.Marshal(spec[name])
		must(t, err)
		if strings.Contains(string(raw), `"null"`) {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

// The document offers an Idempotency-Key where it has an effect, and says of the other calls that it has none.
func TestWhoTakesAKey(t *testing.T) {
	s := newStack(t, nil)
	var without []string
	for path, item := range at(s.ask("GET", "/openapi.json", "").json, "paths") {
		post, ok := item.(map[string]any)["post"].(map[string]any)
		if !ok {
			continue
		}
		takes := strings.Contains(fmt.Sprint(post["parameters"]), "Idempotency-Key")
		if none := strings.Contains(fmt.Sprint(post["description"]), "`Idempotency-Key` has no effect"); none == takes {
			t.Errorf("%s: takes a key: %v, says that it has no effect: %v", path, takes, none)
		}
		if !takes {
			without = append(without, path)
		}
	}
	slices.Sort(without)
	want := []string{
		"/v1/campaigns/{id}/lottery/entries", "/v1/campaigns/{id}/queue", "/v1/campaigns/{id}/tickets", "/v1/campaigns/{id}/tickets/challenge",
		"/v1/dev/payments", "/v1/merchants/{id}/followers", "/v1/merchants/{id}/followers/{user}", "/v1/session", "/v1/users/{user}/erasure", "/v1/ws-tickets",
	}
	if !slices.Equal(without, want) {
		t.Errorf("without a key are %q", without)
	}
}

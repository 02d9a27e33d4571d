package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/webhooks"
)

// TestWebhookSecurity asks every route of webhooks, for an endpoint that there is, as
// callers that are no admins: all are refused, see nothing of it, and change nothing.
func TestWebhookSecurity(t *testing.T) {
	s := newStack(t, nil)
	e, err := s.service.Webhooks.Create(t.Context(), webhooks.EndpointSpec{URL: "https://hooks.example/Secret-path?token=Secret", Description: "Secret hook"})
	must(t, err)
	event, err := s.service.Webhooks.Test(t.Context(), e.ID)
	must(t, err)
	before, err := s.service.Webhooks.Get(t.Context(), e.ID)
	must(t, err)
	m := &matrix{stack: s, t: t, claim: e.Secret, bad: falseTokens(t, "dibs_revoked_0123456789")}
	tried := 0
	for _, op := range s.operations() {
		method, path, _ := strings.Cut(op, " ")
		if !strings.HasPrefix(path, "/v1/webhook-endpoints") {
			continue
		}
		tried++
		path = strings.ReplaceAll(path, "{id}", e.ID)
		body := map[string]string{
			"POST /v1/webhook-endpoints":                `{"url":"https://hooks.example/mine"}`,
			"PATCH /v1/webhook-endpoints/{id}":          `{"url":"https://hooks.example/mine","disabled":true}`,
			"POST /v1/webhook-endpoints/{id}/redeliver": fmt.Sprintf(`{"event_id":%q}`, event),
		}[op]
		for _, name := range slices.Sorted(maps.Keys(m.bad)) {
			m.denied(op, name, s.ask(method, path, body, "Authorization: "+m.bad[name]), 401)
		}
		m.denied(op, "none", s.ask(method, path, body), 401)
		for _, user := range []string{"42", "7", e.ID} {
			m.denied(op, "user "+user, s.ask(method, path, body, jwtFor(t, user, time.Hour)), 403)
		}
	}
	if tried != 9 {
		t.Errorf("%d routes were tried", tried)
	}
	after, err := s.service.Webhooks.Get(t.Context(), e.ID)
	must(t, err)
	all, err := s.service.Webhooks.List(t.Context())
	must(t, err)
	list, err := s.service.Webhooks.Deliveries(t.Context(), e.ID, "", dibs.Page{})
	must(t, err)
	if fmt.Sprint(*after) != fmt.Sprint(*before) || len(all) != 1 || len(list.Items) != 1 {
		t.Errorf("the endpoint was %+v and is %+v, of %d; it has %d deliveries", *before, *after, len(all), len(list.Items))
	}
}

// TestWebhookSecretsAreShownOnce: a secret is in the first answer alone, and is
// not kept to answer a repeat.
func TestWebhookSecretsAreShownOnce(t *testing.T) {
	s := newStack(t, nil)
	post := func(path, body, key string) answer {
		a := s.ask("POST", path, body, asAdmin, "Idempotency-Key: "+key)
		checkCommon(t, a)
		return a
	}
	var secrets []string
	shown := func(what string, a answer) {
		t.Helper()
		secret, _ := a.json["secret"].(string)
		if a.status > 201 || !strings.HasPrefix(secret, webhooks.SecretPrefix) || slices.Contains(secrets, secret) {
			t.Fatalf("%s: %d %s", what, a.status, a.body)
		}
		secrets = append(secrets, secret)
	}
	hidden := func(what string, a answer) {
		t.Helper()
		if a.status != 200 || strings.Contains(a.body, webhooks.SecretPrefix) || strings.Contains(a.body, `"secret"`) {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	const spec = `{"url":"https://hooks.example/x"}`
	first := post("/v1/webhook-endpoints", spec, "k1")
	shown("the first answer", first)
	again := post("/v1/webhook-endpoints", spec, "k1")
	hidden("a repeat", again)
	if again.json["id"] != first.json["id"] || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the repeat made another: %s", again.body)
	}
	path := fmt.Sprint("/v1/webhook-endpoints/", first.json["id"])
	shown("a rotation", post(path+"/rotate-secret", `{}`, "k2"))
	hidden("its repeat", post(path+"/rotate-secret", `{}`, "k2"))
	shown("a rotation without a key", s.ask("POST", path+"/rotate-secret", `{}`, asAdmin))
	hidden("the endpoint", s.ask("GET", path, "", asAdmin))
	hidden("the list", s.ask("GET", "/v1/webhook-endpoints", "", asAdmin))
	hidden("a change", s.ask("PATCH", path, `{"description":"x"}`, asAdmin))
	for _, secret := range secrets {
		if strings.Contains(s.logs.String(), secret) {
			t.Error("the log has a secret")
		}
	}
}

// TestWebhookReasonsInChinese: why an endpoint is disabled is told in the language of the call.
func TestWebhookReasonsInChinese(t *testing.T) {
	s := newStack(t, nil)
	e, err := s.service.Webhooks.Create(t.Context(), webhooks.EndpointSpec{URL: "https://hooks.example/x"})
	must(t, err)
	must(t, s.service.Webhooks.Disable(t.Context(), e.ID, webhooks.AnsweredGone.EN))
	for _, path := range []string{"/v1/webhook-endpoints", "/v1/webhook-endpoints/" + e.ID} {
		if a := s.ask("GET", path, "", asAdmin, "Accept-Language: zh-CN"); !strings.Contains(a.body, webhooks.AnsweredGone.ZH) {
			t.Errorf("%s in Chinese: %s", path, a.body)
		}
		if a := s.ask("GET", path, "", asAdmin); !strings.Contains(a.body, webhooks.AnsweredGone.EN) {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

// A test waits for no other one: what was found wrong by the first may be mended long before its
// next attempt.
func TestWebhookTestsWaitForNoOther(t *testing.T) {
	s := newStack(t, nil)
	e, err := s.service.Webhooks.Create(t.Context(), webhooks.EndpointSpec{URL: "https://hooks.example/x"})
	must(t, err)
	for range 2 {
		_, err := s.service.Webhooks.Test(t.Context(), e.ID)
		must(t, err)
	}
	list, err := s.service.Webhooks.Deliveries(t.Context(), e.ID, "", dibs.Page{})
	must(t, err)
	if len(list.Items) != 2 || list.Items[0].Subject == list.Items[1].Subject {
		t.Errorf("%d deliveries, of one subject", len(list.Items))
	}
}

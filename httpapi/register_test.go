package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/access"
)

func TestAdminIdempotency(t *testing.T) {
	s := newStack(t, nil)
	post := func(path, body, key string) answer {
		a := s.ask("POST", path, body, asAdmin, "Idempotency-Key: "+key)
		checkCommon(t, a)
		return a
	}
	first := post("/v1/campaigns", draftBody, "k1")
	var again map[string]any
	must(t, json.Unmarshal([]byte(draftBody), &again))
	reordered, err := json.Marshal(again)
	must(t, err)
	second := post("/v1/campaigns", string(reordered), "k1")
	if first.status != 201 || second.status != 200 || second.header.Get("Idempotent-Replayed") != "true" || first.body != second.body {
		t.Fatalf("first %d %s, second %d %s", first.status, first.body, second.status, second.body)
	}
	if a := post("/v1/campaigns", strings.Replace(draftBody, "200", "201", 1), "k1"); a.status != 422 || a.json["reason"] != "idempotency_key_reused" {
		t.Errorf("another body: %d %s", a.status, a.body)
	}
	if a := post("/v1/campaigns/phone-noon/publish", "", "k1"); a.status != 422 {
		t.Errorf("another path: %d %s", a.status, a.body)
	}
	if a := post("/v1/campaigns/phone-noon/publish", "{}", "act"); a.status != 200 {
		t.Errorf("an action: %d %s", a.status, a.body)
	}
	if a := post("/v1/campaigns/phone-noon/pause", "{}", "act"); a.status != 422 {
		t.Errorf("another action with the same body: %d %s", a.status, a.body)
	}
	if a := post("/v1/campaigns", `{"title":""}`, "bad"); a.status != 400 {
		t.Errorf("a bad body: %d %s", a.status, a.body)
	}
	// Refusals are not remembered: the key is free for the corrected request.
	if a := post("/v1/campaigns", strings.Replace(draftBody, "phone-noon", "other", 1), "bad"); a.status != 201 {
		t.Errorf("the corrected body: %d %s", a.status, a.body)
	}
	// The same stock change at once, many times: it happens once.
	var wg sync.WaitGroup
	var mu sync.Mutex
	replays := 0
	for range 10 {
		wg.Go(func() {
			a := s.ask("POST", "/v1/campaigns/phone-noon/stock", `{"delta":5}`, asAdmin, "Idempotency-Key: box")
			mu.Lock()
			defer mu.Unlock()
			if a.status != 200 || !strings.Contains(a.body, `"units":205`) {
				t.Errorf("%d %s", a.status, a.body)
			}
			if a.header.Get("Idempotent-Replayed") == "true" {
				replays++
			}
		})
	}
	wg.Wait()
	if replays != 9 {
		t.Errorf("%d replays of 10 calls", replays)
	}
	noID := strings.Replace(draftBody, `"id":"phone-noon",`, "", 1)
	a, b := post("/v1/campaigns", noID, "made"), post("/v1/campaigns", noID, "made")
	if a.status != 201 || b.status != 200 || a.json["id"] != b.json["id"] {
		t.Errorf("a made id: %d %v, %d %v", a.status, a.json["id"], b.status, b.json["id"])
	}
}

// A stock change whose answer was not remembered, as after a crash in between,
// is still made once: its ref is the caller's key.
func TestChangesSurviveLostAnswers(t *testing.T) {
	s := newStack(t, func(s *httpapi.Services) { s.Memory = forgetful{} })
	for range 2 {
		a := s.ask("POST", "/v1/campaigns", strings.Replace(draftBody, `"id":"phone-noon",`, "", 1), asAdmin, "Idempotency-Key: c")
		if a.status != 201 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		path := fmt.Sprintf("/v1/campaigns/%v/stock", a.json["id"])
		if b := s.ask("POST", path, `{"delta":5}`, asAdmin, "Idempotency-Key: s"); !strings.Contains(b.body, `"units":205`) {
			t.Fatalf("%d %s", b.status, b.body)
		}
	}
}

// forgetful loses the answers that it should remember.
type forgetful struct{}

func (forgetful) Remember(_ context.Context, _, _ string, _ []byte, do func() (int, []byte, error)) (access.StoredRequest, bool, error) {
	status, body, err := do()
	return access.StoredRequest{Status: status, Body: body}, false, err
}

// leaving is the stores of keys and approvals, whose callers go away before the work, or after it.
type leaving struct {
	httpapi.KeyStore
	httpapi.Approvals
	goAway context.CancelFunc
	before bool
}

func (l *leaving) leave(before bool) {
	if l.before == before {
		l.goAway()
	}
}

func (l *leaving) AddKey(ctx context.Context, spec access.KeySpec, origins ...string) (*access.APIKey, string, error) {
	l.leave(true)
	defer l.leave(false)
	return l.KeyStore.AddKey(ctx, spec, origins...)
}

func (l *leaving) Ask(ctx context.Context, a *access.Approval) error {
	l.leave(true)
	defer l.leave(false)
	return l.Approvals.Ask(ctx, a)
}

// A change that has begun is made and remembered, also when its client goes away meanwhile: the repeat, which such a
// client sends, makes no second one. So is the question to a second person.
func TestChangesOfClientsWhoWentAway(t *testing.T) {
	l := &leaving{}
	s, _, _ := twoPersonsWith(t, func(services *httpapi.Services) {
		l.KeyStore, l.Approvals = services.KeyStore, services.Approvals
		services.KeyStore, services.Approvals = l, l
	})
	for _, c := range []struct{ path, body, id, list string }{
		{"/v1/keys", `{"name":"till","role":"viewer"}`, "id", "/v1/keys"},
		{"/v1/accounts/42/deposits", `{"amount":{"amount":500,"currency":"CNY"},"ref":"transfer-1"}`, "approval_id", "/v1/approvals"},
	} {
		for _, l.before = range []bool{true, false} {
			key := fmt.Sprintf("Idempotency-Key: %s-%v", c.id, l.before)
			ctx, goAway := context.WithCancel(t.Context())
			l.goAway = goAway
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, c.path, strings.NewReader(c.body))
			for _, header := range []string{asAdmin, key, "Content-Type: application/json"} {
				name, value, _ := strings.Cut(header, ": ")
				r.Header.Set(name, value)
			}
			s.handler.ServeHTTP(httptest.NewRecorder(), r)
			goAway()
			items := func() int { return len(s.ask("GET", c.list, "", asAdmin).json["items"].([]any)) }
			made := items()
			again := s.ask("POST", c.path, c.body, asAdmin, key)
			if n := items(); again.header.Get("Idempotent-Replayed") != "true" || again.json[c.id] == nil || n != made {
				t.Errorf("%s, before the work %v: %d in place of %d, %d %s", c.path, l.before, n, made, again.status, again.body)
			}
		}
	}
}

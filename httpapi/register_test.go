package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
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

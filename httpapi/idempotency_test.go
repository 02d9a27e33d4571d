package httpapi_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
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

func TestClaimsCSVAndPages(t *testing.T) {
	s := newStack(t, nil)
	ctx := context.Background()
	const n = 230
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`seat "%d", row`, i)
	}
	limit := int64(2)
	_, err := s.admin.CreateCampaign(ctx, dibs.CampaignSpec{
		ID: "seats", Kind: dibs.Coupon, Title: "Seats", Limit: &limit,
		StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour), Stock: dibs.StockSpec{Items: items},
	}, "")
	must(t, err)
	_, err = s.admin.Publish(ctx, "seats")
	must(t, err)
	ids := map[string]bool{}
	for i := range n {
		r, err := s.service.Claim(ctx, dibs.ClaimRequest{CampaignID: "seats", UserID: fmt.Sprintf("u%d", i/2)})
		must(t, err)
		ids[r.Claim.ID] = true
	}
	a := s.ask("GET", "/v1/campaigns/seats/claims?format=csv", "", asAdmin)
	if a.status != 200 || a.header.Get("Content-Type") != "text/csv; charset=utf-8" || a.header.Get("Content-Disposition") != `attachment; filename="seats.csv"` {
		t.Fatalf("%d %v", a.status, a.header)
	}
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	must(t, err)
	if len(rows) != n+1 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows[1:] {
		if !ids[row[0]] || row[1] != "seats" || row[5] != "confirmed" || !strings.HasPrefix(row[8], `seat "`) {
			t.Fatalf("row %q", row)
		}
		delete(ids, row[0])
	}
	pages, seen, cursor := 0, map[string]bool{}, ""
	for {
		l, err := s.admin.CampaignClaims(ctx, "seats", clientFilter{}, dibs.Page{Limit: 100, Cursor: cursor})
		must(t, err)
		for _, c := range l.Items {
			seen[c.ID] = true
		}
		pages++
		if cursor = l.NextCursor; cursor == "" {
			break
		}
	}
	if pages != 3 || len(seen) != n {
		t.Errorf("%d claims on %d pages", len(seen), pages)
	}
	l, err := s.admin.CampaignClaims(ctx, "seats", clientFilter{UserID: "u3", Status: "confirmed"}, dibs.Page{})
	must(t, err)
	if len(l.Items) != 2 {
		t.Errorf("u3 holds %d", len(l.Items))
	}
	if b := s.ask("GET", "/v1/campaigns/seats/claims?format=csv&user_id=u3&status=released", "", asAdmin); strings.Count(b.body, "\n") != 1 {
		t.Errorf("a filtered CSV: %s", b.body)
	}
}

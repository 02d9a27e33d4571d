package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// packet publishes a red packet.
func (s *stack) packet(id string, count int64) {
	s.t.Helper()
	_, err := s.admin.Campaigns.Create(context.Background(), dibs.CampaignSpec{
		ID: id, Kind: dibs.RedPacket, Title: id, StartsAt: time.Now().Add(-time.Second), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 1000, Currency: "CNY"}, Count: count}},
	}, "")
	must(s.t, err)
	_, err = s.admin.Campaigns.Publish(context.Background(), id)
	must(s.t, err)
}

// The list is shown when all shares are gone; it sums to the total, hides who is who, and shows callers which is theirs.
func TestLuck(t *testing.T) {
	s := newStack(t, nil)
	s.packet("luck", 25)
	if a := s.ask("GET", "/v1/campaigns/luck/luck", ""); a.status != 409 || a.json["reason"] != "invalid_state" {
		t.Errorf("too early: %d %s", a.status, a.body)
	}
	for i := range 25 {
		if a := s.ask("POST", "/v1/campaigns/luck/claims", "{}", fmt.Sprintf("Authorization: Bearer dev_user%02d", i)); a.status != 201 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	var a answer
	s.eventually("the list", "/v1/campaigns/luck/luck", func(got answer) bool { a = got; return got.status == 200 && got.json["shares"] == 25.0 })
	items := a.json["items"].([]any)
	sum, last := a.json["shared"].(map[string]any)["amount"], 1e9
	if len(items) != 20 || sum != 1000.0 || strings.Contains(a.body, "user0") || strings.Contains(a.body, `"me"`) {
		t.Errorf("%d items of %v: %s", len(items), sum, a.body)
	}
	for _, x := range items {
		n := x.(map[string]any)["amount"].(map[string]any)["amount"].(float64)
		if n > last {
			t.Errorf("%v after %v", n, last)
		}
		last = n
	}
	mine := 0
	for i := range 25 {
		a := s.ask("GET", "/v1/campaigns/luck/luck", "", fmt.Sprintf("Authorization: Bearer dev_user%02d", i))
		mine += strings.Count(a.body, `"me":true`)
	}
	if mine != 20 {
		t.Errorf("%d users see theirs among 20", mine)
	}
}

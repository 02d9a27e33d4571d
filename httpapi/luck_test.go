package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/httpapi"
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

// A red packet of more than ten thousand shares has its list, too.
func TestLuckOfMany(t *testing.T) {
	const many = 10_100
	s := newStack(t, nil)
	_, err := s.admin.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "many", Kind: dibs.RedPacket, Title: "many", StartsAt: time.Now().Add(-time.Second), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 100 * many, Currency: "CNY"}, Count: many}},
	}, "")
	must(t, err)
	_, err = s.admin.Campaigns.Publish(t.Context(), "many")
	must(t, err)
	var all errgroup.Group
	all.SetLimit(100)
	for i := range many {
		all.Go(func() error {
			r, err := s.service.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "many", UserID: fmt.Sprint("u", i), Quantity: 1, Key: "one"})
			if err == nil && r.Outcome != dibs.Granted {
				err = fmt.Errorf("user %d: %s", i, r.Outcome)
			}
			return err
		})
	}
	must(t, all.Wait())
	s.eventually("the list", "/v1/campaigns/many/luck", func(a answer) bool {
		return a.status == 200 && a.json["shares"] == float64(many) && a.json["shared"].(map[string]any)["amount"] == 100.0*many && len(a.json["items"].([]any)) == 20
	})
}

// slowLuck takes long to read the list of one red packet.
type slowLuck struct {
	httpapi.Claims
	id         string
	asked, let chan struct{}
}

func (c *slowLuck) Luck(ctx context.Context, id string, most int) (claims.Luck, error) {
	if id == c.id {
		c.asked <- struct{}{}
		<-c.let
	}
	return c.Claims.Luck(ctx, id, most)
}

// TestLuckOfOthersDoesNotWait: while the list of one red packet is being read, others have theirs.
func TestLuckOfOthersDoesNotWait(t *testing.T) {
	slow := &slowLuck{id: "slow", asked: make(chan struct{}, 1), let: make(chan struct{})}
	s := newStack(t, func(s *httpapi.Services) {
		slow.Claims = s.Claims
		s.Claims = slow
	})
	for _, id := range []string{"slow", "quick"} {
		s.packet(id, 2)
		if a := s.ask("POST", "/v1/campaigns/"+id+"/end", "", asAdmin); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	var all sync.WaitGroup
	all.Go(func() { s.ask("GET", "/v1/campaigns/slow/luck", "") })
	<-slow.asked
	quick := make(chan answer, 1)
	all.Go(func() { quick <- s.ask("GET", "/v1/campaigns/quick/luck", "") })
	select {
	case a := <-quick:
		if a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the other one")
	}
	close(slow.let)
	all.Wait()
}

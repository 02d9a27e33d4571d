package claims_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// A claim just granted is found at once, while settling is far behind.
func TestUnsettledClaimsAreFound(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
	for i := range 30 {
		r.Publish(r.Sale(fmt.Sprint("c", i), 10))
	}
	s := r.Node.Service
	var ids []string
	for i := range 7 {
		res := r.Wants(dibs.Granted, fmt.Sprint("c", i), "42", "")
		ids = append([]string{res.Claim.ID}, ids...)
		found, err := s.Claims.Find(t.Context(), res.Claim.ID)
		if err != nil || found.UserID != "42" || found.CampaignID != res.Claim.CampaignID || found.Status != dibs.Confirmed {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	list, err := s.Claims.OfUser(t.Context(), "42", dibs.Page{})
	if err != nil || len(list.Items) != 7 || list.NextCursor != "" {
		t.Fatalf("%d claims, %v", len(list.Items), err)
	}
	for i, c := range list.Items {
		if c.ID != ids[i] {
			t.Errorf("claim %d is %s, want %s", i, c.ID, ids[i])
		}
	}
	// With more of them than half a page, the list waits for the settling; page
	// by page it shows each claim once.
	for i := 7; i < 30; i++ {
		r.Wants(dibs.Granted, fmt.Sprint("c", i), "42", "")
	}
	seen := map[string]bool{}
	page := dibs.Page{Limit: 8}
	for {
		list, err := s.Claims.OfUser(t.Context(), "42", page)
		if err != nil || len(list.Items) > 8 {
			t.Fatalf("%d claims, %v", len(list.Items), err)
		}
		for _, c := range list.Items {
			if seen[c.ID] {
				t.Errorf("claim %s is listed twice", c.ID)
			}
			seen[c.ID] = true
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	if len(seen) != 30 {
		t.Errorf("%d claims are listed, want 30", len(seen))
	}
	if list, err := s.Claims.OfUser(t.Context(), "43", dibs.Page{}); err != nil || len(list.Items) != 0 {
		t.Errorf("another user has %+v, %v", list.Items, err)
	}
}

func TestClaimsThatAreNot(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 10))
	r.Sell("phone", 3)
	for _, id := range []string{"", "x", "7K3M9QX2B4TD6RWA", "0000000000000000"} {
		_, err := r.Node.Claims.Find(t.Context(), id)
		r.Fails(err, dibs.NotFound)
	}
	_, err := r.Node.Claims.OfCampaign(t.Context(), "nothing", dibs.ClaimFilter{}, dibs.Page{})
	r.Fails(err, dibs.NotFound)
}

func TestListsOfCampaignsHideDrafts(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("open", 1))
	if _, err := r.Node.Campaigns.Create(t.Context(), r.Sale("draft", 1)); err != nil {
		t.Fatal(err)
	}
	for public, want := range map[bool]int{true: 1, false: 2} {
		list, err := r.Node.Campaigns.List(t.Context(), public, "", dibs.Page{})
		if err != nil || len(list.Items) != want {
			t.Errorf("public %v: %d campaigns, %v; want %d", public, len(list.Items), err, want)
		}
	}
}

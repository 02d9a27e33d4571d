package node_test

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestDemo starts dev again on a folder: it finds the demo campaigns as they are, and
// gives one more time whose time is nearly over.
func TestDemo(t *testing.T) {
	data := t.TempDir()
	dev := func() (*clitest.Verb, *client.Client) {
		t.Helper()
		p, _ := startDev(t, "--data", data, "--admin-key", clitest.Key)
		return p, clitest.Admin(t, p.Await(t, p.Out, `API +(\S+)`)[1])
	}
	p, api := dev()
	soon := time.Now().Add(time.Minute)
	if _, err := api.Campaigns.Patch(t.Context(), "phone-noon", dibs.CampaignPatch{EndsAt: &soon}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Campaigns.End(t.Context(), "coupon-rain"); err != nil {
		t.Fatal(err)
	}
	if code := p.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	_, api = dev()
	for id, want := range map[string]dibs.State{
		"phone-noon": dibs.Published, "coupon-rain": dibs.EndedState, "redpacket-rain": dibs.Published, "ticket-tomorrow": dibs.Published,
	} {
		v, err := api.Campaigns.Get(t.Context(), id)
		if err != nil || v.State != want {
			t.Errorf("%s is %s, want %s: %v", id, v.State, want, err)
		}
		if id == "phone-noon" && time.Until(v.EndsAt) < 7*time.Hour {
			t.Errorf("%s ends %s", id, v.EndsAt)
		}
	}
}

package dibs

import (
	"encoding/json"
	"testing"
	"time"
)

// goodSpec is a spec as a merchant posts it.
const goodSpec = `{"id":"phone-noon","kind":"sale","title":"Phone at noon","starts_at":"2026-12-01T04:00:00Z",
	"ends_at":"2026-12-01T06:00:00Z","stock":{"units":200}}`

func specOf(t *testing.T, text string) (*Campaign, error) {
	t.Helper()
	var s CampaignSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s.Campaign(time.Now())
}

func TestSpecDefaults(t *testing.T) {
	c, err := specOf(t, goodSpec)
	if err != nil {
		t.Fatal(err)
	}
	if c.State != Draft || c.LimitPerUser != 1 || c.Shards != 1 || c.LatePayment != Reclaim || c.Price != nil ||
		c.PayWithin != 0 || c.Stock != (Stock{Kind: Units, Total: 200}) || c.InitialStatus() != Confirmed {
		t.Fatalf("%+v", c)
	}
}

package dibs

import (
	"encoding/json"
	"slices"
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

// TestFaultsOfAPatch: all that cannot change is told at once, each under its own field, in the order of the fields.
func TestFaultsOfAPatch(t *testing.T) {
	price, one, two := Money{Amount: 1, Currency: "CNY"}, int64(1), int64(2)
	c := Campaign{State: Published, LimitPerUser: 2, Shards: 2}
	p := CampaignPatch{Price: &price, Limit: &one, LimitPerProduct: &two, Shards: new(1)}
	var fields []string
	for _, f := range p.Faults(&c) {
		fields = append(fields, f.Field)
	}
	if want := []string{"/price", "/limit_per_user", "/limit_per_product", "/shards"}; !slices.Equal(fields, want) {
		t.Errorf("faults of %q, not %q", fields, want)
	}
}

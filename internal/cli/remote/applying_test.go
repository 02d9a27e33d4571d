package remote

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// TestDifferences: a field that the file leaves out, or has as the server has it, is
// no difference; every other one is, and is in the patch.
func TestDifferences(t *testing.T) {
	noon := time.Date(2030, 12, 1, 4, 0, 0, 0, time.UTC)
	text, product, limit, pay := "inner", "mug", int64(2), dibs.Duration(time.Minute)
	have := &api.CampaignView{
		Title: "Mugs", Comment: &text, ProductID: &product, StartsAt: noon, EndsAt: noon.Add(time.Hour), LimitPerUser: 2, LimitPerProduct: 2,
		Price: &dibs.Money{Amount: 5, Currency: "CNY"}, PayWithin: &pay, LatePayment: dibs.Reclaim, LowStock: 3, Shards: 2,
	}
	same := dibs.CampaignSpec{Title: "Mugs", StartsAt: noon.Add(time.Microsecond), EndsAt: noon.Add(time.Hour)}
	// Empty is as good as left out.
	nothing, never := "", dibs.Duration(0)
	same.ProductID, same.ValidFor, same.Gate = &nothing, &never, &dibs.GateSpec{}
	if p, fields := differences(&same, have); len(fields) != 0 || !reflect.DeepEqual(p, dibs.CampaignPatch{}) {
		t.Errorf("left out: %v, %+v", fields, p)
	}
	same.Comment, same.ProductID, same.Limit, same.PayWithin, same.LatePayment, same.LowStock = text, &product, &limit, &pay, dibs.Reclaim, 3
	same.Price, same.LimitPerProduct = &dibs.Money{Amount: 5, Currency: "CNY"}, &limit
	if _, fields := differences(&same, have); len(fields) != 0 {
		t.Errorf("the same: %v", fields)
	}
	other, three, hour := "cup", int64(3), dibs.Duration(time.Hour)
	until, shards := noon.Add(2*time.Hour), 4
	want := dibs.CampaignSpec{
		Title: "Cups", Comment: "outer", ProductID: &other, StartsAt: noon.Add(time.Minute), EndsAt: until, Limit: &three, LimitPerProduct: &three,
		Price: &dibs.Money{Amount: 5, Currency: "USD"}, Tiers: []dibs.Tier{{FromUnit: 2, Percent: 50}}, PayWithin: &hour, LatePayment: dibs.RefundDue,
		ValidFor: &hour, ValidUntil: &until, Gate: &dibs.GateSpec{Ticket: &dibs.TicketSpec{}}, LowStock: 4, Shards: &shards,
	}
	p, fields := differences(&want, have)
	if len(fields) != 16 || !slices.Contains(fields, "valid_until_at") {
		t.Errorf("%d fields: %v", len(fields), fields)
	}
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		// A stock is changed by a call of its own, a file has no null, and whoever applies
		// one does not say which version it changes.
		if name := v.Type().Field(i).Name; name == "Stock" || name == "null" || name == "Version" {
			continue
		}
		if v.Field(i).IsZero() {
			t.Errorf("the patch lacks %s", v.Type().Field(i).Name)
		}
	}
}

package dibs

import (
	"testing"
	"time"
)

// A null sets an optional field to what it is when it is left out, after what the patch
// gives, and is a fault of any other field.
func TestNullsTakeFieldsAway(t *testing.T) {
	c := Campaign{
		State: Draft, Title: "t", Comment: "c", ProductID: "p", LimitPerUser: 5, Price: &Money{Amount: 1, Currency: "CNY"}, Tiers: []Tier{{FromUnit: 2}},
		PayWithin: time.Minute, LatePayment: RefundDue, ValidFor: time.Hour, ValidUntil: time.Unix(1, 0), LowStock: 3, Gate: &GateSpec{},
	}
	var p CampaignPatch
	var names []string
	for name := range clearCampaign {
		names = append(names, name)
	}
	p.Nulls(names)
	if fs := p.Faults(&c); len(fs) != 0 {
		t.Errorf("%+v", fs)
	}
	p.Apply(&c)
	if c.Title != "t" || c.Comment+c.ProductID != "" || c.LimitPerUser != 1 || c.Price != nil || c.Tiers != nil || c.PayWithin != 0 || c.LatePayment != Reclaim ||
		c.ValidFor != 0 || !c.ValidUntil.IsZero() || c.LowStock != 0 || c.Gate != nil {
		t.Errorf("%+v", c)
	}
	p.Nulls([]string{"title", "ends_at", "comment"})
	if fs := p.Faults(&c); len(fs) != 2 || fs[0].Field != "/title" || fs[1].Field != "/ends_at" {
		t.Errorf("%+v", fs)
	}
	// After publishing null is a change as any other.
	c.State, c.LimitPerUser = Published, 3
	p.Nulls([]string{"comment", "limit_per_user", "price"})
	if fs := p.Faults(&c); len(fs) != 2 {
		t.Errorf("%+v", fs)
	}
	product := Product{Name: "n", Comment: "c", Status: OnSale}
	change := ProductPatch{Status: new(OffSale)}
	change.Nulls([]string{"comment"})
	change.Apply(&product)
	if product.Comment != "" || product.Status != OffSale || product.Name != "n" || !change.Shown() {
		t.Errorf("%+v", product)
	}
	change.Nulls([]string{"stock"})
	if fs := change.Faults(); len(fs) != 1 || fs[0].Field != "/stock" {
		t.Errorf("%+v", fs)
	}
}

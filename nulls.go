package dibs

import "time"

// Nulls tells the patch which of its members were null: they take the field away where
// it is optional. Nil fields of a patch do not say so: they are absent too.
func (p *CampaignPatch) Nulls(names []string) { p.null = names }

// Nulls is CampaignPatch.Nulls for products.
func (p *ProductPatch) Nulls(names []string) { p.null = names }

// clearCampaign has what null does to each optional field of a campaign.
var clearCampaign = map[string]func(*Campaign){
	"comment":           func(c *Campaign) { c.Comment = "" },
	"limit_per_product": func(c *Campaign) { c.LimitPerProduct = 0 },
	"product_id":        func(c *Campaign) { c.ProductID = "" },
	"limit_per_user":    func(c *Campaign) { c.LimitPerUser = 1 },
	"price":             func(c *Campaign) { c.Price = nil },
	"tiers":             func(c *Campaign) { c.Tiers = nil },
	"pay_within":        func(c *Campaign) { c.PayWithin = 0 },
	"late_payment":      func(c *Campaign) { c.LatePayment = Reclaim },
	"valid_for":         func(c *Campaign) { c.ValidFor = 0 },
	"valid_until_at":    func(c *Campaign) { c.ValidUntil = time.Time{} },
	"low_stock":         func(c *Campaign) { c.LowStock = 0 },
	"gate":              func(c *Campaign) { c.Gate = nil },
}

// clearProduct has what null does to each optional field of a product.
var clearProduct = map[string]func(*Product){
	"thumbnail":    func(p *Product) { p.Thumbnail = "" },
	"price":        func(p *Product) { p.Price = nil },
	"description":  func(p *Product) { p.Description = "" },
	"comment":      func(p *Product) { p.Comment = "" },
	"pay_within":   func(p *Product) { p.PayWithin = 0 },
	"late_payment": func(p *Product) { p.LatePayment = Reclaim },
}

// notNull is the problem of a null in the place of a field that there must be.
var notNull = Text{"cannot be null: leave it out to keep it", "不能为 null：不修改时请省略该字段"}

// nullFaults lists the nulls that no field can take.
func nullFaults[T any](names []string, clear map[string]func(*T)) []Fault {
	var fs []Fault
	for _, name := range names {
		if clear[name] == nil {
			fs = append(fs, Fault{"/" + name, notNull})
		}
	}
	return fs
}

// setNulls takes the fields away.
func setNulls[T any](of *T, names []string, clear map[string]func(*T)) {
	for _, name := range names {
		clear[name](of)
	}
}

// Faults lists the nulls that a product cannot take.
func (p *ProductPatch) Faults() []Fault { return nullFaults(p.null, clearProduct) }

// Apply changes a product as the patch says; Faults has found nothing.
func (p *ProductPatch) Apply(to *Product) {
	Set(&to.Name, p.Name)
	Set(&to.Thumbnail, p.Thumbnail)
	Set(&to.Description, p.Description)
	Set(&to.Comment, p.Comment)
	Set(&to.Status, p.Status)
	Set(&to.Stock, p.Stock)
	Set(&to.LatePayment, p.LatePayment)
	if p.PayWithin != nil {
		to.PayWithin = p.PayWithin.Std()
	}
	if p.Price != nil {
		to.Price = p.Price
	}
	setNulls(to, p.null, clearProduct)
}

// Shown reports whether the patch changes what campaigns show of their product.
func (p *ProductPatch) Shown() bool {
	return p.Name != nil || p.Thumbnail != nil || p.Description != nil || p.Price != nil || p.PayWithin != nil || p.Status != nil || len(p.null) > 0
}

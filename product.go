package dibs

import (
	"cmp"
	"slices"
	"time"
)

// Product is what is sold or given.
type Product struct {
	ID          string
	Name        string
	Thumbnail   string
	Price       *Money
	Description string
	Comment     string
	// Status is OnSale or OffSale.
	Status string
	// Stock is the regular stock, for regular orders; campaigns have their own.
	// StockLeft is what of it is left.
	Stock     int64
	StockLeft int64
	// PayWithin is the time to pay a regular order; zero means that it is
	// confirmed at once. LatePayment is the rule for payments after it.
	PayWithin   time.Duration
	LatePayment LatePayment
	// Version rises with each change; changes compare and set it.
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// ProductSpec is a product as a merchant writes it. Name is required.
type ProductSpec struct {
	ID          string `json:"id,omitempty" doc:"1-64 characters of A-Z a-z 0-9 . _ -; made up when absent"`
	Name        string `json:"name" doc:"1-200 characters"`
	Thumbnail   string `json:"thumbnail,omitempty" doc:"address of a picture"`
	Price       *Money `json:"price,omitempty"`
	Description string `json:"description,omitempty"`
	Comment     string `json:"comment,omitempty"`
	Stock       int64  `json:"stock,omitempty" doc:"regular stock, for regular orders"`

	Status string `json:"status,omitempty" doc:"whether it may be sold, default on_sale; off_sale refuses regular orders and publishing" enum:"on_sale,off_sale"`

	PayWithin   *Duration   `json:"pay_within,omitempty" doc:"time to pay a regular order, such as 15m; absent: nothing to wait for"`
	LatePayment LatePayment `json:"late_payment,omitempty" doc:"what a payment after the deadline does, default reclaim" enum:"reclaim,refund_due"`
}

// Product turns the spec into a product, or lists every fault.
func (s *ProductSpec) Product(now time.Time) (*Product, error) {
	p := &Product{
		ID: cmp.Or(s.ID, NewID("p-")), Name: s.Name, Thumbnail: s.Thumbnail, Price: s.Price, Description: s.Description,
		Comment: s.Comment, Status: cmp.Or(s.Status, OnSale), Stock: s.Stock, StockLeft: s.Stock,
		LatePayment: cmp.Or(s.LatePayment, Reclaim), Version: 1, CreatedAt: Ms(now), UpdatedAt: Ms(now),
	}
	setDuration(&p.PayWithin, s.PayWithin)
	if fs := p.Faults(); len(fs) > 0 {
		return nil, Invalid(fs...)
	}
	return p, nil
}

// Faults lists what is wrong with a product.
func (p *Product) Faults() []Fault {
	return slices.Concat(
		unless(IsID(p.ID), "/id", BadID),
		TextFault("/name", p.Name, true, MaxTitleLen),
		TextFault("/thumbnail", p.Thumbnail, false, 2048),
		proseFault("/description", p.Description, false, 10_000),
		proseFault("/comment", p.Comment, false, MaxCommentLen),
		priceFaults(p.Price),
		within("/stock", p.Stock, 0, MaxStock),
		unless(p.Status == OnSale || p.Status == OffSale, "/status", Text{"must be on_sale or off_sale", "必须是 on_sale 或 off_sale"}),
		zeroOrWithin("/pay_within", p.PayWithin, time.Second, MaxPayWithin),
		lateFaults(p.LatePayment),
	)
}

// priceFaults and lateFaults check what products and campaigns share.
func priceFaults(price *Money) []Fault {
	if price == nil {
		return nil
	}
	return price.Faults("/price")
}

func lateFaults(p LatePayment) []Fault {
	return unless(p == Reclaim || p == RefundDue, "/late_payment",
		Text{"must be reclaim or refund_due", "必须是 reclaim 或 refund_due"})
}

// ProductPatch changes a product. Nil fields stay.
type ProductPatch struct {
	Name        *string `json:"name,omitempty"`
	Thumbnail   *string `json:"thumbnail,omitempty"`
	Price       *Money  `json:"price,omitempty"`
	Description *string `json:"description,omitempty"`
	Comment     *string `json:"comment,omitempty"`
	Stock       *int64  `json:"stock,omitempty" doc:"never below what is ordered"`

	Status *string `json:"status,omitempty" doc:"off_sale refuses regular orders and publishing" enum:"on_sale,off_sale"`

	PayWithin   *Duration    `json:"pay_within,omitempty" doc:"0s for nothing to wait for; of later orders"`
	LatePayment *LatePayment `json:"late_payment,omitempty" enum:"reclaim,refund_due"`

	null []string
}

// Nulls is CampaignPatch.Nulls for products.
func (p *ProductPatch) Nulls(names []string) { p.null = names }

// clearProduct has what null does to each optional field of a product.
var clearProduct = map[string]func(*Product){
	"thumbnail":    func(p *Product) { p.Thumbnail = "" },
	"price":        func(p *Product) { p.Price = nil },
	"description":  func(p *Product) { p.Description = "" },
	"comment":      func(p *Product) { p.Comment = "" },
	"pay_within":   func(p *Product) { p.PayWithin = 0 },
	"late_payment": func(p *Product) { p.LatePayment = Reclaim },
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
	setDuration(&to.PayWithin, p.PayWithin)
	to.Price = cmp.Or(p.Price, to.Price)
	setNulls(to, p.null, clearProduct)
}

// Shown reports whether the patch changes what campaigns show of their product.
func (p *ProductPatch) Shown() bool {
	return p.Name != nil || p.Thumbnail != nil || p.Description != nil || p.Price != nil || p.PayWithin != nil || p.Status != nil || len(p.null) > 0
}

package api

import (
	"time"

	"github.com/dibs-dev/dibs"
)

// CampaignView is a campaign as shown. The public view leaves the last group
// of fields out.
type CampaignView struct {
	ID        string       `json:"id"`
	Kind      dibs.Kind    `json:"kind"`
	Title     string       `json:"title"`
	ProductID *string      `json:"product_id"`
	Product   *ProductView `json:"product,omitempty"`
	StartsAt  time.Time    `json:"starts_at"`
	EndsAt    time.Time    `json:"ends_at"`
	State     dibs.State   `json:"state"`
	// EndedAt is when it was ended by hand, whatever EndsAt says.
	EndedAt      *time.Time `json:"ended_at,omitempty"`
	LimitPerUser int64      `json:"limit_per_user"`
	// LimitPerProduct is shared by the product's campaigns that have one; absent for
	// none.
	LimitPerProduct int64          `json:"limit_per_product,omitempty"`
	Price           *dibs.Money    `json:"price"`
	Tiers           []dibs.Tier    `json:"tiers,omitempty"`
	PayWithin       *dibs.Duration `json:"pay_within"`
	// ValidFor and ValidUntil are a coupon's life.
	ValidFor   *dibs.Duration `json:"valid_for,omitempty"`
	ValidUntil *time.Time     `json:"valid_until_at,omitempty"`
	// RedPacket is what a red packet divides.
	RedPacket *PacketView `json:"redpacket,omitempty"`
	// Gate is who may claim; absent for everybody.
	Gate *dibs.GateSpec `json:"gate,omitempty"`
	// Remaining is what can still be granted.
	Remaining int64 `json:"remaining"`
	// Version rises with each change of the definition.
	Version int64 `json:"version"`

	Comment     *string          `json:"comment,omitempty"`
	Stock       *StockView       `json:"stock,omitempty"`
	LatePayment dibs.LatePayment `json:"late_payment,omitempty"`
	Shards      int              `json:"shards,omitempty"`
	LowStock    int64            `json:"low_stock,omitempty"`
	// LowSince is since when no more than LowStock is left.
	LowSince *time.Time `json:"low_since_at,omitempty"`
	// SenderID pays for a red packet, and Funds says where its money is.
	SenderID  string     `json:"sender_id,omitempty"`
	Funds     *FundsView `json:"funds,omitempty"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
}

// Phase returns where the campaign of a view stands at a time.
func (v *CampaignView) Phase(now time.Time) dibs.Phase {
	c := dibs.Campaign{State: v.State, StartsAt: v.StartsAt, EndsAt: v.EndsAt}
	return c.Phase(now, v.Remaining)
}

// StockView is a stock as shown to admins: items are counted, not listed.
type StockView struct {
	Units *int64          `json:"units,omitempty"`
	Items *int64          `json:"items_count,omitempty"`
	Codes *dibs.CodesSpec `json:"codes,omitempty"`
	// RedPacket is the whole spec; the count is what it began with.
	RedPacket *dibs.RedPacketSpec `json:"redpacket,omitempty"`
}

// givenTime is nil for no time, which views leave out.
func givenTime(at *time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return at
}

// givenSpan is nil for no time span, which views leave out or show as null.
func givenSpan(d time.Duration) *dibs.Duration {
	if d <= 0 {
		return nil
	}
	span := dibs.Duration(d)
	return &span
}

// CampaignViewOf returns the campaign as shown; admin adds the inner fields.
func CampaignViewOf(c *dibs.Campaign, remaining int64, product *dibs.Product, admin bool) CampaignView {
	v := CampaignView{
		ID: c.ID, Kind: c.Kind, Title: c.Title, StartsAt: c.StartsAt, EndsAt: c.EndsAt, State: c.State,
		EndedAt: givenTime(&c.EndedAt), PayWithin: givenSpan(c.PayWithin), ValidFor: givenSpan(c.ValidFor), ValidUntil: givenTime(&c.ValidUntil),
		LimitPerUser: c.LimitPerUser, LimitPerProduct: c.LimitPerProduct, Price: c.Price, Tiers: c.Tiers, Gate: c.Gate, Remaining: remaining, Version: c.Version,
	}
	if c.ProductID != "" {
		v.ProductID = &c.ProductID
	}
	if c.Packet != nil {
		v.RedPacket = &PacketView{Total: c.Packet.Total, Count: c.Packet.Count}
	}
	if product != nil {
		pv := ProductViewOf(product, admin)
		v.Product = &pv
	}
	if admin {
		v.Comment, v.Stock, v.LatePayment, v.Shards = &c.Comment, stockViewOf(c.Stock), c.LatePayment, c.Shards
		v.LowStock, v.LowSince = c.LowStock, givenTime(&c.LowSince)
		v.CreatedAt, v.UpdatedAt, v.SenderID = &c.CreatedAt, &c.UpdatedAt, c.SenderID
		v.Stock.RedPacket = c.Packet
	}
	return v
}

func stockViewOf(s dibs.Stock) *StockView {
	switch s.Kind {
	case dibs.Units:
		return &StockView{Units: &s.Total}
	case dibs.Items:
		return &StockView{Items: &s.Total}
	case dibs.Shares:
		return &StockView{}
	default:
		return &StockView{Codes: &dibs.CodesSpec{Count: s.Total, Pattern: s.Pattern}}
	}
}

// StatsView is what a campaign's numbers are now, in units.
type StatsView struct {
	CampaignID string `json:"campaign_id"`
	Stock      int64  `json:"stock"`
	Remaining  int64  `json:"remaining"`
	// Granted is granted and not released.
	Granted   int64 `json:"granted"`
	Pending   int64 `json:"pending"`
	Confirmed int64 `json:"confirmed"`
	Released  int64 `json:"released"`
	Refunded  int64 `json:"refunded"`
	// LowStock is the campaign's, and Low says that no more is left.
	LowStock int64            `json:"low_stock"`
	Low      bool             `json:"low"`
	Refused  map[string]int64 `json:"refused" doc:"refusals by reason, of each node since it started"`
	// RefusedCountedBy says which nodes' refusals Refused has: ThisNode or AllNodes.
	RefusedCountedBy string `json:"refused_counted_by" enum:"this_node,all_nodes" doc:"which nodes' refusals refused has: those of the node that answers, or of all nodes"`
	// SettleLagMS is how long the oldest unsettled entry has waited.
	SettleLagMS    int64 `json:"settle_lag_ms"`
	JournalBacklog int64 `json:"journal_backlog"`
	// ShardsAway is how many shards could not be asked, since their deployment is away. Of
	// them the ledger's numbers are counted, and nothing that waits to be settled.
	ShardsAway int `json:"shards_away,omitempty" doc:"shards whose deployment is away: of them the ledger's numbers are counted; absent when there is none"`
	// Funds says where a red packet's money is.
	Funds *FundsView `json:"funds,omitempty"`
}

// Which nodes have counted a number.
const (
	ThisNode = "this_node"
	AllNodes = "all_nodes"
)

// ImportView is what became of an import of codes.
type ImportView struct {
	CampaignID string `json:"campaign_id"`
	// Imported is how many codes were added, Stock how many there are now.
	Imported int64 `json:"imported"`
	Stock    int64 `json:"stock"`
}

// ImportViewOf returns the import as shown.
func ImportViewOf(i *dibs.Imported) ImportView {
	return ImportView{CampaignID: i.Campaign.ID, Imported: i.Items, Stock: i.Campaign.Stock.Total}
}

// The views are the shapes of the outside contract, as JSON shows them. The
// server writes them and the client reads them.

// ProductView is a product as shown.
type ProductView struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Thumbnail   string      `json:"thumbnail"`
	Price       *dibs.Money `json:"price"`
	Description string      `json:"description"`
	// Status is off_sale when no order is taken.
	Status string `json:"status"`
	// PayWithin is the time to pay a regular order.
	PayWithin *dibs.Duration `json:"pay_within,omitempty"`
	// The fields below are for admins. StockLeft is how much of the regular stock is left.
	Comment     string           `json:"comment,omitempty"`
	Stock       *int64           `json:"stock,omitempty"`
	StockLeft   *int64           `json:"stock_left,omitempty"`
	LatePayment dibs.LatePayment `json:"late_payment,omitempty"`
	CreatedAt   time.Time        `json:"created_at"`
	UpdatedAt   time.Time        `json:"updated_at"`
}

// ProductViewOf returns the product as shown; admin adds the inner fields.
func ProductViewOf(p *dibs.Product, admin bool) ProductView {
	v := ProductView{
		ID: p.ID, Name: p.Name, Thumbnail: p.Thumbnail, Price: p.Price,
		Description: p.Description, Status: p.Status, PayWithin: givenSpan(p.PayWithin), CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}
	if admin {
		v.Comment, v.Stock, v.StockLeft, v.LatePayment = p.Comment, &p.Stock, &p.StockLeft, p.LatePayment
	}
	return v
}

// PacketView is a red packet as everybody may see it.
type PacketView struct {
	Total dibs.Money `json:"total"`
	Count int64      `json:"count"`
}

// FundsView says where a red packet's money is: funded = credited + returned +
// escrow.
type FundsView struct {
	Funded   dibs.Money `json:"funded"`
	Credited dibs.Money `json:"credited"`
	Returned dibs.Money `json:"returned"`
	Escrow   dibs.Money `json:"escrow"`
	// ReturnedAt is when the rest went back to the sender; null while open.
	ReturnedAt *time.Time `json:"returned_at"`
	// Problem says why the red packet does not get on; absent while it does.
	Problem string `json:"problem,omitempty"`
	// ProblemZH is Problem in Chinese.
	ProblemZH string `json:"-"`
}

// in returns the view in one language. It changes a copy: f may be shared.
func (f *FundsView) in(zh bool) *FundsView {
	if f == nil || !zh || f.ProblemZH == "" {
		return f
	}
	said := *f
	said.Problem = f.ProblemZH
	return &said
}

// In returns the view in one language, Chinese when zh is set, else English.
func (v *CampaignView) In(zh bool) CampaignView {
	said := *v
	said.Funds = v.Funds.in(zh)
	return said
}

// In returns the view in one language, Chinese when zh is set, else English.
func (v *StatsView) In(zh bool) StatsView {
	said := *v
	said.Funds = v.Funds.in(zh)
	return said
}

package dibs

import "time"

// The views are the shapes of the outside contract, as JSON shows them. The
// server writes them and the client reads them.

// ProductView is a product as shown.
type ProductView struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Thumbnail   string `json:"thumbnail"`
	Price       *Money `json:"price"`
	Description string `json:"description"`
	// PayWithin is the time to pay a regular order.
	PayWithin *Duration `json:"pay_within,omitempty"`
	// What follows is for admins; StockLeft is what of the regular stock is left.
	Comment     string      `json:"comment,omitempty"`
	Stock       *int64      `json:"stock,omitempty"`
	StockLeft   *int64      `json:"stock_left,omitempty"`
	LatePayment LatePayment `json:"late_payment,omitempty"`
	CreatedAt   time.Time   `json:"created_at"`
	UpdatedAt   time.Time   `json:"updated_at"`
}

// CampaignView is a campaign as shown. The public view leaves the last group
// of fields out.
type CampaignView struct {
	ID           string       `json:"id"`
	Kind         Kind         `json:"kind"`
	Title        string       `json:"title"`
	ProductID    *string      `json:"product_id"`
	Product      *ProductView `json:"product,omitempty"`
	StartsAt     time.Time    `json:"starts_at"`
	EndsAt       time.Time    `json:"ends_at"`
	State        State        `json:"state"`
	LimitPerUser int64        `json:"limit_per_user"`
	Price        *Money       `json:"price"`
	Tiers        []Tier       `json:"tiers,omitempty"`
	PayWithin    *Duration    `json:"pay_within"`
	// ValidFor and ValidUntil are a coupon's life.
	ValidFor   *Duration  `json:"valid_for,omitempty"`
	ValidUntil *time.Time `json:"valid_until_at,omitempty"`
	// RedPacket is what a red packet divides.
	RedPacket *PacketView `json:"redpacket,omitempty"`
	// Gate is who may claim; absent for everybody.
	Gate *GateSpec `json:"gate,omitempty"`
	// Remaining is what can still be granted.
	Remaining int64 `json:"remaining"`
	// Version rises with each change of the definition.
	Version int64 `json:"version"`

	Comment     *string     `json:"comment,omitempty"`
	Stock       *StockView  `json:"stock,omitempty"`
	LatePayment LatePayment `json:"late_payment,omitempty"`
	Shards      int         `json:"shards,omitempty"`
	LowStock    int64       `json:"low_stock,omitempty"`
	// LowSince is since when no more than LowStock is left.
	LowSince *time.Time `json:"low_since_at,omitempty"`
	// SenderID pays for a red packet, and Funds says where its money is.
	SenderID  string     `json:"sender_id,omitempty"`
	Funds     *FundsView `json:"funds,omitempty"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
}

// StockView is a stock as shown to admins: items are counted, not listed.
type StockView struct {
	Units *int64     `json:"units,omitempty"`
	Items *int64     `json:"items_count,omitempty"`
	Codes *CodesSpec `json:"codes,omitempty"`
	// RedPacket is the whole spec; the count is what it began with.
	RedPacket *RedPacketSpec `json:"redpacket,omitempty"`
}

// ClaimView is a claim as answered.
type ClaimView struct {
	ID         string     `json:"id"`
	CampaignID string     `json:"campaign_id"`
	ProductID  string     `json:"product_id,omitempty"`
	Kind       Kind       `json:"kind"`
	UserID     string     `json:"user_id"`
	Quantity   int64      `json:"quantity"`
	Status     string     `json:"status" enum:"pending,confirmed,released,refunded"`
	StatusCode int8       `json:"status_code"`
	OrderType  OrderType  `json:"order_type"`
	Items      []string   `json:"items"`
	Amount     *Money     `json:"amount"`
	PayBy      *time.Time `json:"pay_by,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	// ResultCode is "0" for a red packet.
	ResultCode string `json:"result_code,omitempty"`

	// The rest is there once it happened.
	Payment    *PaymentView    `json:"payment,omitempty"`
	Restocked  bool            `json:"restocked,omitempty"`
	Redemption *RedemptionView `json:"redemption,omitempty"`
	Shipment   *ShipmentView   `json:"shipment,omitempty"`
	// Replaces and ReplacedBy name the claim before and after a late payment.
	Replaces   string     `json:"replaces,omitempty"`
	ReplacedBy string     `json:"replaced_by,omitempty"`
	ValidUntil *time.Time `json:"valid_until_at,omitempty"`
	// Events are for admins.
	Events []EventView `json:"events,omitempty"`
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
	LowStock int64 `json:"low_stock"`
	Low      bool  `json:"low"`
	// Refused counts refusals by reason, of this node since it started.
	Refused map[string]int64 `json:"refused"`
	// SettleLagMS is how long the oldest unsettled entry has waited.
	SettleLagMS    int64 `json:"settle_lag_ms"`
	JournalBacklog int64 `json:"journal_backlog"`
	// Funds says where a red packet's money is.
	Funds *FundsView `json:"funds,omitempty"`
}

// ImportView is what became of an import of codes.
type ImportView struct {
	CampaignID string `json:"campaign_id"`
	// Imported is how many codes were added, Stock how many there are now.
	Imported int64 `json:"imported"`
	Stock    int64 `json:"stock"`
}

// View returns the import as shown.
func (i *Imported) View() ImportView {
	return ImportView{CampaignID: i.Campaign.ID, Imported: i.Items, Stock: i.Campaign.Stock.Total}
}

// ListView is a page of views.
type ListView[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor"`
}

// Problem is a refusal or an error as answered: RFC 9457 with dibs' fields.
type Problem struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Reason    string         `json:"reason"`
	Code      int            `json:"code"`
	Retryable bool           `json:"retryable"`
	RequestID string         `json:"request_id"`
	Errors    []ProblemFault `json:"errors,omitempty"`
	Effect    Effect         `json:"effect,omitempty"`
	// The rest belongs to single reasons: not_started, ended, sold_out,
	// limit_reached, waiting.
	StartsAt  *time.Time `json:"starts_at,omitempty"`
	EndsAt    *time.Time `json:"ends_at,omitempty"`
	Remaining *int64     `json:"remaining,omitempty"`
	ClaimIDs  []string   `json:"claim_ids,omitempty"`
	Position  *int64     `json:"position,omitempty"`
	// ResultCode belongs to red packets: "1" for limit_reached, "-1" for sold_out.
	ResultCode string `json:"result_code,omitempty"`
}

// ProblemFault is one thing wrong with an input.
type ProblemFault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// View returns the claim as answered.
func (c *Claim) View() ClaimView {
	v := ClaimView{
		ID: c.ID, CampaignID: c.CampaignID, ProductID: c.ProductID, Kind: c.Kind, UserID: c.UserID, Quantity: c.Quantity,
		Status: c.Status.String(), StatusCode: int8(c.Status), OrderType: c.OrderType,
		Items: c.Items, Amount: c.Amount, CreatedAt: c.CreatedAt,
	}
	if v.Items == nil {
		v.Items = []string{}
	}
	if !c.PayBy.IsZero() {
		v.PayBy = &c.PayBy
	}
	if c.Kind == RedPacket {
		v.ResultCode = ResultCode(Granted)
	}
	c.viewLife(&v)
	return v
}

// View returns the product as shown; admin adds the inner fields.
func (p *Product) View(admin bool) ProductView {
	v := ProductView{
		ID: p.ID, Name: p.Name, Thumbnail: p.Thumbnail, Price: p.Price,
		Description: p.Description, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}
	if admin {
		v.Comment, v.Stock, v.StockLeft, v.LatePayment = p.Comment, &p.Stock, &p.StockLeft, p.LatePayment
	}
	if p.PayWithin > 0 {
		d := Duration(p.PayWithin)
		v.PayWithin = &d
	}
	return v
}

// View returns the campaign as shown; admin adds the inner fields.
func (c *Campaign) View(remaining int64, product *Product, admin bool) CampaignView {
	v := CampaignView{
		ID: c.ID, Kind: c.Kind, Title: c.Title, StartsAt: c.StartsAt, EndsAt: c.EndsAt, State: c.State,
		LimitPerUser: c.LimitPerUser, Price: c.Price, Tiers: c.Tiers, Gate: c.Gate, Remaining: remaining, Version: c.Version,
	}
	if c.ProductID != "" {
		v.ProductID = &c.ProductID
	}
	if c.PayWithin > 0 {
		d := Duration(c.PayWithin)
		v.PayWithin = &d
	}
	if c.ValidFor > 0 {
		d := Duration(c.ValidFor)
		v.ValidFor = &d
	}
	if !c.ValidUntil.IsZero() {
		v.ValidUntil = &c.ValidUntil
	}
	if c.Packet != nil {
		v.RedPacket = &PacketView{Total: c.Packet.Total, Count: c.Packet.Count}
	}
	if product != nil {
		pv := product.View(admin)
		v.Product = &pv
	}
	if admin {
		v.Comment, v.Stock, v.LatePayment, v.Shards = &c.Comment, c.Stock.view(), c.LatePayment, c.Shards
		v.LowStock = c.LowStock
		if !c.LowSince.IsZero() {
			v.LowSince = &c.LowSince
		}
		v.CreatedAt, v.UpdatedAt, v.SenderID = &c.CreatedAt, &c.UpdatedAt, c.SenderID
		v.Stock.RedPacket = c.Packet
	}
	return v
}

func (s Stock) view() *StockView {
	switch s.Kind {
	case Units:
		return &StockView{Units: &s.Total}
	case Items:
		return &StockView{Items: &s.Total}
	case Shares:
		return &StockView{}
	default:
		return &StockView{Codes: &CodesSpec{Count: s.Total, Pattern: s.Pattern}}
	}
}

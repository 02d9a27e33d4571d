package dibs

import (
	"cmp"
	"slices"
	"time"
)

// CampaignSpec is a campaign as a merchant writes it. Kind, Title, StartsAt,
// EndsAt and Stock are required; nil and empty fields take the defaults that
// Campaign documents.
type CampaignSpec struct {
	ID              string      `json:"id,omitempty" doc:"1-64 characters of A-Z a-z 0-9 . _ -; made up when absent"`
	Kind            Kind        `json:"kind" doc:"sale, coupon or redpacket" enum:"sale,coupon,redpacket"`
	Title           string      `json:"title" doc:"1-200 characters"`
	ProductID       *string     `json:"product_id,omitempty" doc:"the product that is sold or given"`
	Comment         string      `json:"comment,omitempty"`
	StartsAt        time.Time   `json:"starts_at" doc:"the first moment of the window"`
	EndsAt          time.Time   `json:"ends_at" doc:"the first moment after the window"`
	Stock           StockSpec   `json:"stock" doc:"exactly one of units, items, codes, redpacket"`
	Limit           *int64      `json:"limit_per_user,omitempty" doc:"units one user may hold, default 1"`
	LimitPerProduct *int64      `json:"limit_per_product,omitempty" doc:"units of the product that one user may hold over all of its campaigns that have this limit, live and past; absent: no such limit"`
	Price           *Money      `json:"price,omitempty" doc:"per unit; default the product's price"`
	Tiers           []Tier      `json:"tiers,omitempty" doc:"prices of later units of a claim, such as the second at half price"`
	PayWithin       *Duration   `json:"pay_within,omitempty" doc:"time to pay, such as 15m; absent: nothing to wait for"`
	LatePayment     LatePayment `json:"late_payment,omitempty" doc:"what a payment after the deadline does, default reclaim" enum:"reclaim,refund_due"`
	ValidFor        *Duration   `json:"valid_for,omitempty" doc:"a coupon's life from its claim on, such as 720h"`
	ValidUntil      *time.Time  `json:"valid_until_at,omitempty" doc:"the first moment at which a coupon is not valid any more"`
	LowStock        int64       `json:"low_stock,omitempty" doc:"operators are warned when so much is left, or less; 0 for never"`
	SenderID        string      `json:"sender_id,omitempty" doc:"the user whose funds pay for a red packet; absent: the platform"`
	Gate            *GateSpec   `json:"gate,omitempty" doc:"who may claim, and when it is whose turn; absent: everybody"`
	Shards          *int        `json:"shards,omitempty" doc:"parts of the stock, for as many cores of Redis, 1-64, default 1"`
}

// StockSpec is what a campaign can grant: exactly one field is set.
type StockSpec struct {
	Units *int64     `json:"units,omitempty" doc:"a count of equal units"`
	Items []string   `json:"items,omitzero" doc:"distinct codes or seats, 1-128 characters each; none for those that are imported"`
	Codes *CodesSpec `json:"codes,omitempty" doc:"codes that dibs generates"`
	// RedPacket is the stock of a red packet: shares of a total.
	RedPacket *RedPacketSpec `json:"redpacket,omitempty" doc:"a total and the shares that dibs divides it into"`
}

// CodesSpec asks for generated codes.
type CodesSpec struct {
	Count int64 `json:"count" doc:"how many, at most 1000000"`
	// Pattern shows the form: each X becomes a random character, anything else
	// stays.
	Pattern string `json:"pattern,omitempty" doc:"each X becomes a random character; default XXXX-XXXX-XXXX"`
}

// Campaign turns the spec into a draft, or lists every fault at once as an
// *Error of InvalidRequest.
func (s *CampaignSpec) Campaign(now time.Time) (*Campaign, error) {
	c := &Campaign{
		ID: cmp.Or(s.ID, NewID("c-")), Kind: s.Kind, Title: s.Title, Comment: s.Comment,
		StartsAt: Ms(s.StartsAt), EndsAt: Ms(s.EndsAt), State: Draft,
		LimitPerUser: 1, Price: s.Price, Tiers: s.Tiers, LowStock: s.LowStock, LatePayment: cmp.Or(s.LatePayment, Reclaim),
		Shards: 1, SenderID: s.SenderID, Gate: s.Gate.orNil(), Version: 1, CreatedAt: Ms(now), UpdatedAt: Ms(now),
	}
	Set(&c.ProductID, s.ProductID)
	Set(&c.LimitPerUser, s.Limit)
	Set(&c.LimitPerProduct, s.LimitPerProduct)
	setDuration(&c.PayWithin, s.PayWithin)
	Set(&c.Shards, s.Shards)
	setDuration(&c.ValidFor, s.ValidFor)
	setMs(&c.ValidUntil, s.ValidUntil)
	ofStock := s.Stock.apply(c)
	fs := slices.Concat(
		c.Faults(), ofStock,
		unless(s.LimitPerProduct == nil || *s.LimitPerProduct != 0, "/limit_per_product", limitRange),
		unless(s.PayWithin == nil || *s.PayWithin != 0, "/pay_within",
			Text{"must be positive, or absent when nothing is to be paid", "必须大于零；无需支付时请省略"}),
		// Only at first: some may be withdrawn later, and items be imported.
		unless(int64(c.Shards) <= c.Stock.Total || c.Stock.Total <= 0 || c.Shards > maxCampaignShards, "/shards",
			Textf("must not be more than the %d units, items or shares of the stock", "不能超过库存数量 %d", c.Stock.Total)),
	)
	if len(fs) > 0 {
		return nil, Invalid(fs...)
	}
	return c, nil
}

// CampaignPatch changes a campaign. Nil fields stay. After publishing, only
// Title, Comment, EndsAt, LowStock, an upward Limit, LimitPerProduct or Shards and what
// GateSpec allows may change.
type CampaignPatch struct {
	Title           *string      `json:"title,omitempty"`
	Comment         *string      `json:"comment,omitempty"`
	ProductID       *string      `json:"product_id,omitempty"`
	StartsAt        *time.Time   `json:"starts_at,omitempty"`
	EndsAt          *time.Time   `json:"ends_at,omitempty"`
	Limit           *int64       `json:"limit_per_user,omitempty"`
	LimitPerProduct *int64       `json:"limit_per_product,omitempty" doc:"after publishing it may only rise"`
	Price           *Money       `json:"price,omitempty"`
	Tiers           []Tier       `json:"tiers,omitzero" doc:"all of them anew; an empty list takes them away"`
	PayWithin       *Duration    `json:"pay_within,omitempty"`
	LatePayment     *LatePayment `json:"late_payment,omitempty" enum:"reclaim,refund_due"`
	ValidFor        *Duration    `json:"valid_for,omitempty"`
	ValidUntil      *time.Time   `json:"valid_until_at,omitempty"`
	LowStock        *int64       `json:"low_stock,omitempty"`
	Shards          *int         `json:"shards,omitempty" doc:"parts of the stock: it may rise, up to 64, and six times at most"`
	Gate            *GateSpec    `json:"gate,omitempty" doc:"all of it anew; {} opens the campaign to everybody"`
	// Stock changes a draft's stock to another number of its kind; campaigns.Patch makes
	// that change, and Apply does not.
	Stock *StockSpec `json:"stock,omitempty" doc:"of a draft: another number of units, or of codes of the same pattern"`
	// Version is that of the campaign which the change was made of. Where the campaign
	// has another one by now, nothing changes; nil changes any version.
	Version *int64 `json:"version,omitempty" doc:"the version that the change was made of; refused with invalid_state and /version when the campaign has another one by now"`

	null []string
}

// Nulls tells the patch which of its members were null: they take the field away where
// it is optional. Nil fields of a patch do not say so: they are absent too.
func (p *CampaignPatch) Nulls(names []string) { p.null = names }

// ChangesGate reports whether the patch sets who may claim, and how, or takes that away.
func (p *CampaignPatch) ChangesGate() bool { return p.Gate != nil || slices.Contains(p.null, "gate") }

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

// StockChange restocks a campaign, or withdraws from it.
type StockChange struct {
	Delta int64    `json:"delta,omitempty" doc:"units or codes to add; negative to withdraw"`
	Items []string `json:"items,omitempty" doc:"items to add, for a campaign of items; delta is then their count"`
	Why   string   `json:"why,omitempty" doc:"for the record"`
}

// Faults lists the fields that c's state does not allow to change.
func (p *CampaignPatch) Faults(c *Campaign) []Fault {
	fs := nullFaults(p.null, clearCampaign)
	if c.State == Draft {
		return append(append(fs, p.stockFaults(c)...), p.shardFaults(c)...)
	}
	null := func(name string) bool { return slices.Contains(p.null, name) }
	for _, fixed := range []given{
		{"/product_id", p.ProductID != nil},
		{"/starts_at", p.StartsAt != nil},
		{"/price", p.Price != nil},
		{"/tiers", p.Tiers != nil},
		{"/pay_within", p.PayWithin != nil},
		{"/late_payment", p.LatePayment != nil},
		{"/valid_for", p.ValidFor != nil},
		{"/valid_until_at", p.ValidUntil != nil},
		{"/stock", p.Stock != nil},
	} {
		fs = append(fs, unless(!fixed.set && !null(fixed.name[1:]), fixed.name, isFixed)...)
	}
	limit, product, gate := p.Limit, p.LimitPerProduct, p.Gate
	productFixed := null("limit_per_product") || product != nil && c.LimitPerProduct == 0
	if productFixed {
		product = nil
	}
	if null("limit_per_user") {
		limit = new(int64(1))
	}
	if null("gate") {
		gate = &GateSpec{}
	}
	return slices.Concat(
		fs, fallen("/limit_per_user", limit, c.LimitPerUser),
		unless(!productFixed, "/limit_per_product", isFixed), fallen("/limit_per_product", product, c.LimitPerProduct),
		gate.changeFaults(c),
		unless(c.State != EndedState || p.EndsAt == nil, "/ends_at", isEnded),
		p.shardFaults(c),
	)
}

// The problems of what a campaign does not take any more.
var (
	isFixed = Text{"cannot change after publishing", "发布后不能修改"}
	isEnded = Text{"cannot change once the campaign has been ended", "活动结束后不能修改"}
)

// fallen is the fault of a limit that may only rise.
func fallen(field string, to *int64, is int64) []Fault {
	return unless(to == nil || *to >= is, field,
		Textf("may only rise after publishing, it is %d", "发布后只能提高，当前为 %d", is))
}

// maxMoreShards bounds how often a campaign gets more shards: a user who has no claim
// is looked for on one shard for each time.
const maxMoreShards = 6

// shardFaults says why a campaign cannot have as many shards as the patch says.
func (p *CampaignPatch) shardFaults(c *Campaign) []Fault {
	bad := func(t Text) []Fault { return []Fault{{"/shards", t}} }
	switch {
	case p.Shards == nil || *p.Shards == c.Shards:
		return nil
	case *p.Shards < c.Shards:
		return bad(Textf("may only rise, it is %d", "只能增加，当前为 %d", c.Shards))
	case *p.Shards > maxCampaignShards:
		return bad(Textf("must be at most %d", "最多为 %d", maxCampaignShards))
	case int64(*p.Shards) > c.Stock.Total && c.Stock.Total > 0:
		return bad(Textf("must not be more than the %d units, items or shares of the stock", "不能超过库存数量 %d", c.Stock.Total))
	case c.State != Draft && c.LimitedProduct() != "":
		// A user has one shard for all campaigns that count for each other.
		return bad(Text{"cannot change after publishing: campaigns that share limit_per_product are divided alike", "发布后不能修改：共享 limit_per_product 的活动分片数必须一致"})
	case c.State == EndedState:
		return bad(isEnded)
	case c.State != Draft && len(c.EarlierShards) >= maxMoreShards:
		return bad(Textf("has risen %d times, and cannot rise more often", "已增加 %d 次，不能再增加", maxMoreShards))
	}
	return nil
}

// Apply changes c as the patch says; Faults has found nothing.
func (p *CampaignPatch) Apply(c *Campaign) {
	Set(&c.Title, p.Title)
	Set(&c.Comment, p.Comment)
	Set(&c.ProductID, p.ProductID)
	Set(&c.LimitPerUser, p.Limit)
	Set(&c.LimitPerProduct, p.LimitPerProduct)
	Set(&c.LatePayment, p.LatePayment)
	Set(&c.LowStock, p.LowStock)
	if p.Shards != nil && *p.Shards > c.Shards {
		// Nobody was on a shard of a draft: of its numbers the first alone is kept, over
		// which its stock was divided.
		if c.State != Draft || c.EarlierShards == nil {
			c.EarlierShards = append(slices.Clip(c.EarlierShards), c.Shards)
		}
		c.Shards = *p.Shards
	}
	setMs(&c.StartsAt, p.StartsAt)
	setMs(&c.EndsAt, p.EndsAt)
	c.Price = cmp.Or(p.Price, c.Price)
	if p.Tiers != nil {
		c.Tiers = p.Tiers
	}
	setDuration(&c.PayWithin, p.PayWithin)
	if p.Gate != nil {
		c.Gate = p.Gate.orNil()
	}
	if p.ValidFor != nil {
		c.ValidFor, c.ValidUntil = p.ValidFor.Std(), time.Time{}
	}
	setMs(&c.ValidUntil, p.ValidUntil)
	setNulls(c, p.null, clearCampaign)
}

// stockFaults says why a draft's stock cannot become what the patch says. Its kind stays:
// items are added and withdrawn by their values.
func (p *CampaignPatch) stockFaults(c *Campaign) []Fault {
	switch {
	case p.Stock == nil:
		return nil
	case p.Stock.Units != nil && p.Stock.kinds() == 1 && c.Stock.Kind == Units:
		return within("/stock/units", *p.Stock.Units, 0, MaxStock)
	case p.Stock.Codes != nil && p.Stock.kinds() == 1 && c.Stock.Kind == Codes:
		if p.Stock.Codes.Pattern != "" && p.Stock.Codes.Pattern != c.Stock.Pattern {
			return []Fault{{"/stock/codes/pattern", Textf("stays as it is, %s: make another draft", "不能修改，当前为 %s：请另建草稿", c.Stock.Pattern)}}
		}
		n := p.Stock.Codes.Count
		if n < 0 || n > MaxItems {
			return []Fault{{"/stock/codes/count", Textf("must be from 0 to %d", "必须在 0 到 %d 之间", MaxItems)}}
		}
		if !patternAllows(c.Stock.Pattern, n) {
			return []Fault{{"/stock/codes/count", tooManyFor(c.Stock.Pattern, n)}}
		}
		return nil
	case c.Stock.Kind == Items:
		return []Fault{{"/stock", Text{"items are added and withdrawn by POST /v1/campaigns/{id}/stock", "items 类库存请用 POST /v1/campaigns/{id}/stock 增减"}}}
	}
	return []Fault{{"/stock", Textf("keeps its kind, %s: make another draft", "库存类型不能修改，当前为 %s：请另建草稿", c.Stock.Kind)}}
}

// StockOf returns how many units or codes the patch wants a draft to have; false when it
// leaves the stock as it is. Faults has found nothing.
func (p *CampaignPatch) StockOf() (int64, bool) {
	switch {
	case p.Stock == nil:
		return 0, false
	case p.Stock.Units != nil:
		return *p.Stock.Units, true
	}
	return p.Stock.Codes.Count, true
}

// Set copies a value that is given.
func Set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func setDuration(to *time.Duration, from *Duration) { Set(to, (*time.Duration)(from)) }

func setMs(to, from *time.Time) {
	if from != nil {
		*to = Ms(*from)
	}
}

// MaxConflicts is how often a change is tried again on a row that moved.
const MaxConflicts = 5

// Faults checks a stock change against the campaign's kind of stock.
func (ch *StockChange) Faults(c *Campaign) []Fault {
	fs := proseFault("/why", ch.Why, false, MaxCommentLen)
	if len(ch.Items) > 0 {
		if c.Stock.Kind != Items {
			fs = append(fs, Fault{"/items", Text{"belongs to a campaign of items", "仅用于 items 类库存"}})
		} else if ch.Delta != 0 && ch.Delta != int64(len(ch.Items)) {
			fs = append(fs, Fault{"/delta", Text{"must be the number of items, or absent", "必须等于 items 的数量，或省略"}})
		}
		ch.Delta = int64(len(ch.Items))
		return append(fs, itemFaults("/items", ch.Items)...)
	}
	most := int64(MaxStock)
	if c.HasItems() {
		most = MaxItems
	}
	switch {
	case ch.Delta == 0:
		fs = append(fs, Fault{"/delta", Text{"is required and not 0", "必填且不能为 0"}})
	case ch.Delta > 0 && c.Stock.Kind == Items:
		fs = append(fs, Fault{"/items", Text{"is required to add to a campaign of items", "增加 items 类库存时必填"}})
	case ch.Delta < -most || ch.Delta > most-c.Stock.Total:
		fs = append(fs, Fault{"/delta", Textf("would leave the range of 0 to %d", "将超出 0 到 %d 的范围", most)})
	case ch.Delta > 0 && c.Stock.Kind == Codes && !patternAllows(c.Stock.Pattern, c.Stock.Total+ch.Delta):
		fs = append(fs, Fault{"/delta", tooManyFor(c.Stock.Pattern, c.Stock.Total+ch.Delta)})
	}
	return fs
}

// Imported is what became of an import.
type Imported struct {
	// Items is how many were added; 0 when Replayed.
	Items int64
	// Replayed says that the same import had been made before.
	Replayed bool
	Campaign *Campaign
}

// NotNull is the problem of a null in the place of a field that there must be.
var NotNull = Text{"cannot be null: leave it out to keep it", "不能为 null：不修改时请省略该字段"}

// nullFaults lists the nulls that no field can take.
func nullFaults[T any](names []string, clear map[string]func(*T)) []Fault {
	var fs []Fault
	for _, name := range names {
		if clear[name] == nil {
			fs = append(fs, Fault{"/" + name, NotNull})
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

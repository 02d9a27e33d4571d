package dibs

import (
	"crypto/rand"
	"strconv"
	"time"
	"unicode/utf8"
)

// CampaignSpec is a campaign as a merchant writes it. Kind, Title, StartsAt,
// EndsAt and Stock are required; nil and empty fields take the defaults that
// Campaign documents.
type CampaignSpec struct {
	ID          string      `json:"id,omitempty" doc:"1-64 characters of A-Z a-z 0-9 . _ -; made up when absent"`
	Kind        Kind        `json:"kind" doc:"sale, coupon or redpacket" enum:"sale,coupon,redpacket"`
	Title       string      `json:"title" doc:"1-200 characters"`
	ProductID   *string     `json:"product_id,omitempty" doc:"the product that is sold or given"`
	Comment     string      `json:"comment,omitempty"`
	StartsAt    time.Time   `json:"starts_at" doc:"the first moment of the window"`
	EndsAt      time.Time   `json:"ends_at" doc:"the first moment after the window"`
	Stock       StockSpec   `json:"stock" doc:"exactly one of units, items, codes, redpacket"`
	Limit       *int64      `json:"limit_per_user,omitempty" doc:"units one user may hold, default 1"`
	Price       *Money      `json:"price,omitempty" doc:"per unit; default the product's price"`
	Tiers       []Tier      `json:"tiers,omitempty" doc:"prices of later units of a claim, such as the second at half price"`
	PayWithin   *Duration   `json:"pay_within,omitempty" doc:"time to pay, such as 15m; absent: nothing to wait for"`
	LatePayment LatePayment `json:"late_payment,omitempty" doc:"what a payment after the deadline does, default reclaim" enum:"reclaim,refund_due"`
	ValidFor    *Duration   `json:"valid_for,omitempty" doc:"a coupon's life from its claim on, such as 720h"`
	ValidUntil  *time.Time  `json:"valid_until_at,omitempty" doc:"the first moment at which a coupon is not valid any more"`
	LowStock    int64       `json:"low_stock,omitempty" doc:"operations hear of it when so much is left, or less; 0 for never"`
	SenderID    string      `json:"sender_id,omitempty" doc:"the user whose funds pay for a red packet; absent: the platform"`
	Gate        *GateSpec   `json:"gate,omitempty" doc:"who may claim, and when it is whose turn; absent: everybody"`
	Shards      *int        `json:"shards,omitempty" doc:"independent parts of the stock, default 1"`
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

// CampaignPatch changes a campaign. Nil fields stay. After publishing, only
// Title, Comment, EndsAt, LowStock, an upward Limit and what GateSpec allows may
// change.
type CampaignPatch struct {
	Title       *string      `json:"title,omitempty"`
	Comment     *string      `json:"comment,omitempty"`
	ProductID   *string      `json:"product_id,omitempty"`
	StartsAt    *time.Time   `json:"starts_at,omitempty"`
	EndsAt      *time.Time   `json:"ends_at,omitempty"`
	Limit       *int64       `json:"limit_per_user,omitempty"`
	Price       *Money       `json:"price,omitempty"`
	Tiers       []Tier       `json:"tiers,omitzero" doc:"all of them anew; an empty list takes them away"`
	PayWithin   *Duration    `json:"pay_within,omitempty"`
	LatePayment *LatePayment `json:"late_payment,omitempty" enum:"reclaim,refund_due"`
	ValidFor    *Duration    `json:"valid_for,omitempty"`
	ValidUntil  *time.Time   `json:"valid_until_at,omitempty"`
	LowStock    *int64       `json:"low_stock,omitempty"`
	Gate        *GateSpec    `json:"gate,omitempty" doc:"all of it anew; {} opens the campaign to everybody"`
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

	PayWithin   *Duration   `json:"pay_within,omitempty" doc:"time to pay a regular order, such as 15m; absent: nothing to wait for"`
	LatePayment LatePayment `json:"late_payment,omitempty" doc:"what a payment after the deadline does, default reclaim" enum:"reclaim,refund_due"`
}

// ProductPatch changes a product. Nil fields stay.
type ProductPatch struct {
	Name        *string `json:"name,omitempty"`
	Thumbnail   *string `json:"thumbnail,omitempty"`
	Price       *Money  `json:"price,omitempty"`
	Description *string `json:"description,omitempty"`
	Comment     *string `json:"comment,omitempty"`
	Stock       *int64  `json:"stock,omitempty" doc:"never below what is ordered"`

	PayWithin   *Duration    `json:"pay_within,omitempty" doc:"0s for nothing to wait for; of later orders"`
	LatePayment *LatePayment `json:"late_payment,omitempty" enum:"reclaim,refund_due"`
}

// StockChange restocks a campaign, or withdraws from it.
type StockChange struct {
	Delta int64    `json:"delta,omitempty" doc:"units or codes to add; negative to withdraw"`
	Items []string `json:"items,omitempty" doc:"items to add, for a campaign of items; delta is then their count"`
	Why   string   `json:"why,omitempty" doc:"for the record"`
}

// ValidID reports whether s may be the id of a campaign, a product or a user:
// 1-64 characters of A-Z a-z 0-9 . _ -.
func ValidID(s string) bool { return IsID(s) }

// IsID reports whether s may be an id given by a caller.
func IsID(s string) bool {
	if len(s) == 0 || len(s) > MaxIDLen {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// NewID makes up an id with a prefix that says what it names.
func NewID(prefix string) string { return prefix + rand.Text()[:12] }

// BadID is the problem of an id.
var BadID = Text{"must be 1-64 characters of A-Z a-z 0-9 . _ -", "必须是 1-64 个字符，限 A-Z a-z 0-9 . _ -"}

// TextFault reports a text that is empty (when required) or too long.
func TextFault(field, s string, required bool, most int) []Fault {
	n := utf8.RuneCountInString(s)
	switch {
	case required && n == 0:
		return []Fault{{field, Text{"is required", "必填"}}}
	case n > most:
		return []Fault{{field, Textf("must be at most %d characters", "最多 %d 个字符", most)}}
	case !utf8.ValidString(s):
		return []Fault{{field, Text{"must be valid UTF-8", "必须是有效的 UTF-8"}}}
	}
	return nil
}

// Faults lists the fields that c's state does not allow to change.
func (p *CampaignPatch) Faults(c *Campaign) []Fault {
	if c.State == Draft {
		return nil
	}
	var fs []Fault
	for _, fixed := range []struct {
		field string
		given bool
	}{
		{"/product_id", p.ProductID != nil},
		{"/starts_at", p.StartsAt != nil},
		{"/price", p.Price != nil},
		{"/tiers", p.Tiers != nil},
		{"/pay_within", p.PayWithin != nil},
		{"/late_payment", p.LatePayment != nil},
		{"/valid_for", p.ValidFor != nil},
		{"/valid_until_at", p.ValidUntil != nil},
	} {
		if fixed.given {
			fs = append(fs, Fault{fixed.field, Text{"cannot change after publishing", "发布后不能修改"}})
		}
	}
	if p.Limit != nil && *p.Limit < c.LimitPerUser {
		fs = append(fs, Fault{"/limit_per_user", Textf("may only rise after publishing, it is %d", "发布后只能提高，当前为 %d", c.LimitPerUser)})
	}
	fs = append(fs, p.Gate.changeFaults(c)...)
	if c.State == EndedState && p.EndsAt != nil {
		fs = append(fs, Fault{"/ends_at", Text{"cannot change once the campaign has been ended", "活动结束后不能修改"}})
	}
	return fs
}

// Apply changes c as the patch says; Faults has found nothing.
func (p *CampaignPatch) Apply(c *Campaign) {
	Set(&c.Title, p.Title)
	Set(&c.Comment, p.Comment)
	Set(&c.ProductID, p.ProductID)
	Set(&c.LimitPerUser, p.Limit)
	Set(&c.LatePayment, p.LatePayment)
	Set(&c.LowStock, p.LowStock)
	if p.StartsAt != nil {
		c.StartsAt = Ms(*p.StartsAt)
	}
	if p.EndsAt != nil {
		c.EndsAt = Ms(*p.EndsAt)
	}
	if p.Price != nil {
		c.Price = p.Price
	}
	if p.Tiers != nil {
		c.Tiers = p.Tiers
	}
	if p.PayWithin != nil {
		c.PayWithin = p.PayWithin.Std()
	}
	if p.Gate != nil {
		c.Gate = p.Gate.orNil()
	}
	if p.ValidFor != nil {
		c.ValidFor, c.ValidUntil = p.ValidFor.Std(), time.Time{}
	}
	if p.ValidUntil != nil {
		c.ValidUntil = Ms(*p.ValidUntil)
	}
}

// Set copies a value that is given.
func Set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// WrongState refuses a step that the campaign's state does not allow.
func WrongState(c *Campaign, doing, doingZH string) error {
	return Fail(InvalidState, Textf("cannot %[1]s a campaign that is %[3]s", "状态为 %[3]s 的活动不能%[2]s", doing, doingZH, c.State))
}

// maxConflicts is how often a change is tried again on a row that moved.
const MaxConflicts = 5

// Faults checks a stock change against the campaign's kind of stock.
func (ch *StockChange) Faults(c *Campaign) []Fault {
	fs := TextFault("/why", ch.Why, false, MaxCommentLen)
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
	}
	return fs
}

// Import adds items that are read one by one to a campaign's stock: all of them
// or none.
type Import struct {
	Shard ShardID
	// Ref makes the import happen once.
	Ref string
	Why string
	// Count is how many there are.
	Count int64
	// Each calls take with every item and the line that it stands on, from the
	// first on, each time it is called: a transaction may have to begin again.
	Each func(take func(line int, item string) error) error
	// Done, unless it is nil, is told now and then how many have been written.
	Done func(written int64)
}

// Imported is what became of an import.
type Imported struct {
	// Items is how many were added; 0 when Replayed.
	Items int64
	// Replayed says that the same import had been made before.
	Replayed bool
	Campaign *Campaign
}

// LineFault is a fault of a line of a file.
func LineFault(line int, problem Text) Fault {
	return Fault{"/lines/" + strconv.Itoa(line), problem}
}

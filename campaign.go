package dibs

import (
	"slices"
	"time"
)

// Kind is what a campaign gives.
type Kind string

// The kinds.
const (
	// Sale sells units, codes or seats; a claim may have to be paid in time.
	Sale Kind = "sale"
	// Coupon gives coupons: issued at once, redeemed later.
	Coupon Kind = "coupon"
	// RedPacket gives shares of a sum, which become the user's money.
	RedPacket Kind = "redpacket"
)

// State is where a campaign stands. Only actions change it; the window
// (StartsAt, EndsAt) is beside it.
type State string

// The states.
const (
	// Draft can be edited and is invisible to users.
	Draft State = "draft"
	// Published grants inside its window.
	Published State = "published"
	// PausedState refuses with Paused until it is resumed.
	PausedState State = "paused"
	// EndedState refuses with Ended for good.
	EndedState State = "ended"
	// RegularState is that of the campaign behind a product's regular orders. The
	// ledger decides these; no engine holds it, no list shows it, and it stays.
	RegularState State = "regular"
)

// StockKind is the shape of what a campaign can grant.
type StockKind string

// The stock kinds.
const (
	// Units are equal and counted.
	Units StockKind = "units"
	// Items are distinct values given by the merchant: codes or seats.
	Items StockKind = "items"
	// Codes are items that dibs generated.
	Codes StockKind = "codes"
	// Shares are items that a red packet was divided into; ShareValue is their
	// form.
	Shares StockKind = "shares"
)

// Stock is what a campaign was given to grant.
type Stock struct {
	Kind StockKind
	// Total counts units or items, restocks and withdrawals included.
	Total int64
	// Pattern is the form of generated codes, `XXXX-XXXX`; else empty.
	Pattern string
}

// LatePayment is what happens to a payment that arrives after its claim
// expired.
type LatePayment string

// The rules for late payments.
const (
	// Reclaim takes stock again for the late payer when there is some.
	Reclaim LatePayment = "reclaim"
	// RefundDue leaves the claim released and flags it for a refund.
	RefundDue LatePayment = "refund_due"
)

// The statuses of a product. Off sale, it takes no regular order and no campaign of it
// can be published; campaigns that run go on, and orders that were made keep their life.
const (
	OnSale  = "on_sale"
	OffSale = "off_sale"
)

// Limits of a campaign's fields.
const (
	MaxIDLen        = 64
	MaxTitleLen     = 200
	MaxCommentLen   = 255
	MaxLimitPerUser = 10_000
	MaxStock        = 1_000_000_000
	MaxItems        = 1_000_000
	MaxItemLen      = 128
	MaxPayWithin    = 30 * 24 * time.Hour
	MaxValidFor     = 3660 * 24 * time.Hour
)

// Campaign is one limited offer. Values handed out by the service and the
// contracts are shared: treat them as read-only and copy before a change.
type Campaign struct {
	// Number is the ledger's own short id, from 1; the first part of every
	// position.
	Number uint32
	ID     string
	Kind   Kind
	Title  string
	// ProductID is empty for a campaign without a product.
	ProductID string
	Comment   string
	// The window: StartsAt ≤ now < EndsAt, UTC, in whole milliseconds.
	StartsAt time.Time
	EndsAt   time.Time
	State    State
	Stock    Stock
	// LimitPerUser is the most units one user may hold, from 1.
	LimitPerUser int64
	// LimitPerProduct is the most units of the product that one user may hold over all
	// of its campaigns that have such a limit, live and past; 0 for none.
	LimitPerProduct int64
	// Price is per unit; nil when nothing is to be paid.
	Price *Money
	// Tiers change the price of later units of one claim, in the order of their
	// units; nil for the same price for all.
	Tiers []Tier
	// PayWithin is the time to pay; zero means claims are confirmed at once.
	PayWithin   time.Duration
	LatePayment LatePayment
	// ValidFor and ValidUntil are a coupon's life, from its claim on or until a
	// time; both zero when it has no end.
	ValidFor   time.Duration
	ValidUntil time.Time
	// LowStock is the stock left at which operations want to be told; 0 for
	// never. LowSince is since when the ledger has no more left; zero while it has.
	LowStock int64
	LowSince time.Time
	// Packet is what a red packet divides, with its defaults filled in; nil for
	// other kinds.
	Packet *RedPacketSpec
	// SenderID is the user whose funds pay for a red packet; empty for the
	// platform.
	SenderID string
	// Gate is who may ask the engine; nil for everybody.
	Gate *GateSpec
	// Shards is how many independent parts the stock is divided into.
	Shards int
	// EarlierShards are the numbers of shards that the campaign had before, in their
	// order; nil while it has those that it began with.
	EarlierShards []int
	// EndedAt is when an administrator ended the campaign; zero while it was not ended,
	// or when only its window is over.
	EndedAt time.Time
	// Version rises with each change; changes compare and set it.
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Regular reports whether the campaign is the one behind a product's regular
// orders.
func (c *Campaign) Regular() bool { return c.State == RegularState }

// LimitedProduct is the product whose campaigns share a limit with this one; empty for
// a campaign without LimitPerProduct.
func (c *Campaign) LimitedProduct() string {
	if c.LimitPerProduct == 0 {
		return ""
	}
	return c.ProductID
}

// Name is how reports name the campaign.
func (c *Campaign) Name() string {
	if c.Regular() {
		return "product:" + c.ProductID
	}
	return c.ID
}

// Live reports whether the engine has to hold the campaign: it was published
// and has not been ended.
func (c *Campaign) Live() bool { return c.State == Published || c.State == PausedState }

// ValidUntilFor is when a coupon stops to be valid; zero when it does not.
func (c *Campaign) ValidUntilFor(claim *Claim) time.Time {
	if c.ValidFor > 0 {
		return claim.CreatedAt.Add(c.ValidFor)
	}
	return c.ValidUntil
}

// InitialStatus is the status of a claim just granted.
func (c *Campaign) InitialStatus() Status {
	if c.PayWithin > 0 {
		return Pending
	}
	return Confirmed
}

// HasItems reports whether the stock is a list of distinct items.
func (c *Campaign) HasItems() bool { return c.Stock.Kind != Units }

// LimitFirst reports whether the limit per user is checked before the stock. It is for
// red packets: a user who has a share is told so, also when all shares are gone.
func (c *Campaign) LimitFirst() bool { return c.Kind == RedPacket }

// ShardOf returns the shard that decides for a user. It stays the same while the number
// of shards does. When that has risen, a user with a claim on one of EarlierShardsOf
// stays there.
func (c *Campaign) ShardOf(user string) ShardID { return c.shardAmong(user, c.Shards) }

// EarlierShardsOf returns the other shards that a user was on by the numbers of shards
// that the campaign had before, the earliest first. A user has claims on one shard at
// most, and stays there: each of these is asked first whether it knows the user.
func (c *Campaign) EarlierShardsOf(user string) []ShardID {
	if len(c.EarlierShards) == 0 {
		return nil
	}
	now := c.ShardOf(user)
	var earlier []ShardID
	for _, shards := range c.EarlierShards {
		if id := c.shardAmong(user, shards); id != now && !slices.Contains(earlier, id) {
			earlier = append(earlier, id)
		}
	}
	return earlier
}

// FirstShards is how many shards the campaign began with: its first stock was divided
// over them.
func (c *Campaign) FirstShards() int {
	if len(c.EarlierShards) > 0 {
		return c.EarlierShards[0]
	}
	return c.Shards
}

func (c *Campaign) shardAmong(name string, shards int) ShardID {
	id := ShardID{Campaign: c.Number}
	if shards > 1 {
		id.Shard = uint8(hash64(name) % uint64(shards))
	}
	return id
}

// hash64 is FNV-1a with a final mix: stable across processes and releases,
// since shards and request keys are stored by it. It resists no attacker and
// need not: a user can only collide with their own keys.
func hash64(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

// Low reports whether so few units are left that an event says so.
func (c *Campaign) Low(remaining int64) bool { return c.LowStock > 0 && remaining <= c.LowStock }

// Ended reports whether the campaign was ended, or its window is over.
func (c *Campaign) Ended(now time.Time) bool { return c.State == EndedState || !now.Before(c.EndsAt) }

// Closed returns why the campaign grants nothing at a time, by its state and window
// alone; false while it grants.
func (c *Campaign) Closed(now time.Time) (Reason, bool) {
	switch {
	case c.State == Draft:
		return NotFound, true
	case c.State == PausedState:
		return Paused, true
	case c.Ended(now):
		return Ended, true
	case now.Before(c.StartsAt):
		return NotStarted, true
	}
	return Granted, false
}

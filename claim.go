package dibs

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Status is where a claim stands in its life.
type Status int8

// The statuses, with the numbers that order tables of flash sales usually give them.
const (
	Released  Status = -1
	Pending   Status = 0
	Confirmed Status = 1
	Refunded  Status = 2
)

var statusWords = [...]string{"released", "pending", "confirmed", "refunded"}

// String returns the word, `pending`.
func (s Status) String() string {
	if s < Released || s > Refunded {
		return fmt.Sprintf("status(%d)", int8(s))
	}
	return statusWords[s+1]
}

// ParseStatus reads a status word.
func ParseStatus(word string) (Status, bool) {
	for i, w := range statusWords {
		if w == word {
			return Status(i - 1), true
		}
	}
	return 0, false
}

// OrderType tells flash-sale orders from regular ones, by the numbers that order
// tables usually give them.
type OrderType int8

// The order types.
const (
	RegularOrder OrderType = 1
	FlashOrder   OrderType = 2
)

// Claim is one user's granted request and its lasting record.
type Claim struct {
	Position   Position
	ID         string
	CampaignID string
	// ProductID is empty for a claim without a product.
	ProductID string
	Kind      Kind
	UserID    string
	Quantity  int64
	Status    Status
	OrderType OrderType
	// Items lists the codes or seats; empty for units.
	Items []string
	// Amount is what the whole claim costs; nil when nothing is to be paid.
	Amount *Money
	// PayBy is the deadline of a pending claim; zero when there is none.
	PayBy     time.Time
	CreatedAt time.Time
	// Reference is what the caller gave the request to come back with the claim, the
	// address to go to afterwards say; empty for none.
	Reference string

	// The fields below tell what happened since the grant.

	// UpdatedAt is when the claim's last step was, or its comment changed; CreatedAt
	// as long as there was none.
	UpdatedAt time.Time
	// Comment is what administrators noted about the claim; users never see it.
	Comment string

	// Restocked says that the stock of a refunded claim came back.
	Restocked bool
	// Payment, Redemption and Shipment are nil while there is none.
	Payment    *Payment
	Redemption *Redemption
	Shipment   *Shipment
	// Replaces and ReplacedBy are the ids of claims: a late payment takes stock
	// again, under a new claim.
	Replaces, ReplacedBy string
	// ValidUntil is a coupon's end; zero when it has none.
	ValidUntil time.Time
	// Events are the claim's steps, in order.
	Events []ClaimEvent
}

// ClaimRequest asks for units of a campaign.
type ClaimRequest struct {
	CampaignID string
	UserID     string
	// Quantity is how many units; 0 means 1.
	Quantity int64
	// Key identifies the request, so that a repeat returns the first result;
	// empty for a request that cannot be repeated. Scoped to user and campaign.
	Key string
	// Reference is the caller's own, at most 256 characters, and comes back with the
	// claim. dibs never reads it.
	Reference string

	// The fields below are for the gates of a campaign that has some; empty when the
	// client sent nothing.

	// Address is where the client is, as the trusted proxies say.
	Address netip.Addr
	// Device is what the client calls itself, in MaxDeviceLen bytes at most.
	Device string
	// Ticket lets a user claim who got it from the opening on, Admission one whose
	// turn it is.
	Ticket, Admission string
	// Until is when the client's token ends, zero for no end: a claim that has waited for its
	// turn until then is refused.
	Until time.Time
	// TokenID is the token's own name, and Issued when it was issued; empty and zero without. A claim that has waited is
	// refused when the token was revoked meanwhile.
	TokenID string
	Issued  time.Time
}

// Result is the answer to a claim request.
type Result struct {
	// Outcome is Granted, or the refusal.
	Outcome Reason
	// Replayed is set when this request had been granted before and this is
	// the first result again.
	Replayed bool
	// Claim is set when Outcome is Granted.
	Claim *Claim
	// Remaining is how many units are left, with SoldOut.
	Remaining int64
	// ClaimIDs are the user's claims that fill the limit, with LimitReached. Where that
	// is the limit per product, they are those of the campaign asked for.
	ClaimIDs []string
	// OfProduct says, with LimitReached, that it is the limit per product.
	OfProduct bool
	// Place is the user's place among those who wait, from 1, with Waiting; 0 when
	// they have none.
	Place int64
	// RetryAfter is when to come again, with RateLimited and Waiting.
	RetryAfter time.Duration
	// Quota is the limit that refused, with RateLimited, or the one that headers
	// tell of; its Name is empty when there is none.
	Quota Quota
	// Detail says more than the outcome does; empty when there is nothing to add.
	Detail Text
	// Campaign is the campaign asked for; nil with NotFound.
	Campaign *Campaign
}

// Quota is how much of a limit is left.
type Quota struct {
	// Name is the limit's: user, address, server, or campaign.user and so on.
	Name string
	// Limit is how many claims there may be in each Window.
	Limit  int64
	Window time.Duration
	// Remaining is how many more would be let through now; after Reset it is as if
	// nothing had been used.
	Remaining int64
	Reset     time.Duration
}

// The refusals of what there is not.
var (
	// NoSuchCampaign is NotFound for a campaign.
	NoSuchCampaign = Fail(NotFound, Text{"there is no such campaign", "该活动不存在"})
	// NoSuchClaim is NotFound for a claim.
	NoSuchClaim = Fail(NotFound, Text{"there is no such claim", "该领取记录不存在"})
)

// Effect is what may have happened to a request before, while nobody can look:
// with a key it may be the repeat of a yes.
func (r *ClaimRequest) Effect() Effect {
	return unlookedEffect(r.Key != "")
}

// Unlooked is what to answer when looking the request's key up has failed: that
// this attempt did nothing does not say that none before it did.
func (r *ClaimRequest) Unlooked(err error) error {
	if r.Key == "" {
		return err
	}
	return Unsure(err)
}

// Unsure is an error after something that may have had an effect, or did: that the
// step which failed had none does not say that nothing happened.
func Unsure(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Effect != EffectNone {
		return err
	}
	other := *e
	other.Effect = EffectUnknown
	return &other
}

// KeyHash is what engines and ledgers keep of a request's key; 0 for none.
func KeyHash(key string) uint64 {
	if key == "" {
		return 0
	}
	return max(hash64(key), 1)
}

// AsUnavailable makes an *Error of any error; one that is already stays, and so does nil.
func AsUnavailable(err error, effect Effect) error {
	if _, is := errors.AsType[*Error](err); is || err == nil {
		return err
	}
	return Unavail(effect, err)
}

// ResultCode is the answer to a grab in one character, as the usual script in Redis
// returns it: "0" granted, "1" the user has one already, "-1" none left; empty for other
// outcomes.
func ResultCode(outcome Reason) string {
	switch outcome {
	case Granted:
		return "0"
	case LimitReached:
		return "1"
	case SoldOut:
		return "-1"
	}
	return ""
}

// Visitor is what the API knows of who asks for a long-lived connection, before
// it knows the user.
type Visitor struct {
	// Chinese says that texts for people are to be in Chinese, else English.
	Chinese bool
	// RequestID is what the log knows the connection by.
	RequestID string
	// Address is the client's, as the trusted proxies say.
	Address netip.Addr
}

// Explain is the sentence that tells people why they were refused; empty when
// the reason's title says it all.
func (r *Result) Explain() Text {
	if r.Detail.EN != "" {
		return r.Detail
	}
	switch r.Outcome {
	case NotFound:
		return NoSuchCampaign.Detail
	case Paused:
		return isPaused
	case NotStarted:
		return Text{"the campaign starts at %s", "活动将于 %s开始"}.At(r.Campaign.StartsAt)
	case Ended:
		return isOver
	case SoldOut:
		if r.Remaining > 0 {
			return Textf("only %d left, fewer than asked for", "仅剩 %d 件，不足所需数量", r.Remaining)
		}
		return isSold
	case LimitReached:
		if r.OfProduct {
			return Textf("at most %d of product %s per user, over all of its campaigns with limit_per_product",
				"每人限领 %d 件商品 %s，设有 limit_per_product 的活动合并计算", r.Campaign.LimitPerProduct, r.Campaign.ProductID)
		}
		return Textf("at most %d per user", "每人限领 %d 件", r.Campaign.LimitPerUser)
	case TooManyClaims:
		return isTooMany
	case KeyReused:
		return isReused
	}
	return Text{}
}

var (
	isPaused  = Text{"the campaign is paused and may go on later", "活动已暂停，稍后可能继续"}
	isOver    = Text{"the campaign is over", "活动已经结束"}
	isSold    = Text{"nothing is left", "已全部领完"}
	isTooMany = Textf("one user may make at most %d claims in a campaign, cancelled ones included",
		"每位用户在一个活动中最多可领取 %d 次（含已取消的）", MaxClaimsPerUser)
	isReused = Text{"this Idempotency-Key was used for a claim of another quantity or reference", "该 Idempotency-Key 已用于数量或 reference 不同的请求"}
)

// NoSuchProduct is NotFound for a product.
var NoSuchProduct = Fail(NotFound, Text{"there is no such product", "该商品不存在"})

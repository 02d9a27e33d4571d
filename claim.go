package dibs

import (
	"fmt"
	"net/netip"
	"time"
)

// Status is where a claim stands in its life.
type Status int8

// The statuses, with the numbers of the articles' orders.
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

// OrderType tells flash-sale orders from regular ones, as the articles number
// them.
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

	// What follows is what happened since the grant.

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

	// What follows is for the gates of a campaign that has some; empty when the
	// client sent nothing.

	// Address is where the client is, as the trusted proxies say.
	Address netip.Addr
	// Device is what the client calls itself, in MaxDeviceLen bytes at most.
	Device string
	// Ticket lets a user claim who got it from the opening on, Admission one whose
	// turn it is.
	Ticket, Admission string
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
	// ClaimIDs are the user's claims that fill the limit, with LimitReached.
	ClaimIDs []string
	// Place is the user's place among those who wait, from 1, with Waiting; 0 when
	// he has none.
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

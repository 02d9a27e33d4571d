package events

import (
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
)

// News is one thing that is published: a claim's grant or step, or a
// change of a campaign.
type News struct {
	// Row is the feed's row that tells it.
	Row int64
	At  time.Time
	// Claim is the claim as it was after the step; nil for a change of a campaign.
	// Its items are those that it has when it is read: none once they came back.
	Claim *dibs.Claim
	// N counts the claim's steps; 0 is its grant.
	N int
	// Campaign is the change of a campaign; nil for what happened to a claim.
	Campaign *CampaignNews
	// Push is a part of an announcement; nil for all else.
	Push *Push
}

// CampaignChange names what became of a campaign.
type CampaignChange string

// CampaignNews is a change of a campaign, with the campaign as it was then.
type CampaignNews struct {
	Change    CampaignChange `json:"change"`
	ID        string         `json:"campaign_id"`
	Kind      dibs.Kind      `json:"kind"`
	Title     string         `json:"title"`
	State     dibs.State     `json:"state"`
	StartsAt  time.Time      `json:"starts_at"`
	EndsAt    time.Time      `json:"ends_at"`
	Stock     int64          `json:"stock"`
	StockLeft int64          `json:"stock_left"`
	// Delta and Why are of a change of the stock.
	Delta int64  `json:"delta,omitempty"`
	Why   string `json:"why,omitempty"`
}

// SinkState is how far one taker of the feed is.
type SinkState struct {
	Name string
	// Taken is the last row that was taken.
	Taken int64
	// Owner is the process that takes rows, until LeaseUntil.
	Owner      string
	LeaseUntil time.Time
	// SeenAt is when a process last had it in its configuration.
	SeenAt time.Time
	// Published counts events, repeats included.
	Published int64
	// Failures counts attempts that failed since the last that did not; Problem
	// is what the last one said.
	Failures int
	Problem  string
}

// Taking says what a sink's owner has taken.
type Taking struct {
	Name, Owner string
	// From is the last row taken before, To the last one now.
	From, To int64
	// Events is how many events these rows told.
	Events int
	// Lease is how long the owner keeps the sink from now on.
	Lease time.Duration
}

// ErrSinkTaken: another process takes the feed for this sink now, or has taken
// these rows.
var ErrSinkTaken = errors.New("dibs: another process takes the feed for this sink")

// The changes of campaigns.
const (
	CampaignPublished CampaignChange = "published"
	CampaignPaused    CampaignChange = "paused"
	CampaignResumed   CampaignChange = "resumed"
	CampaignEnded     CampaignChange = "ended"
	// CampaignChanged: a field other than the state.
	CampaignChanged CampaignChange = "changed"
	// CampaignStockChanged: stock was added, or withdrawn.
	CampaignStockChanged CampaignChange = "stock_changed"
	// CampaignSoldOut: the last unit was granted, as the ledger has it.
	CampaignSoldOut CampaignChange = "sold_out"
	// CampaignLowStock: no more than the campaign's low_stock is left.
	CampaignLowStock CampaignChange = "low_stock"
)

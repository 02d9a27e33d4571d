package dibs

import (
	"context"
	"errors"
	"time"
)

// News is one thing that the world hears of: a claim's grant or step, or a
// change of a campaign.
type News struct {
	// Row is the feed's row that tells it.
	Row int64
	At  time.Time
	// Claim is the claim as it was after the step; nil for a change of a campaign.
	// Its items are those that it has when it is read: none once they came back.
	Claim *Claim
	// N counts the claim's steps; 0 is its grant.
	N int
	// Campaign is the change of a campaign; nil for what happened to a claim.
	Campaign *CampaignNews
	// Push is a part of an announcement; nil for all else.
	Push *Push
}

// CampaignChange names what became of a campaign.
type CampaignChange string

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

// CampaignNews is a change of a campaign, with the campaign as it was then.
type CampaignNews struct {
	Change    CampaignChange `json:"change"`
	ID        string         `json:"campaign_id"`
	Kind      Kind           `json:"kind"`
	Title     string         `json:"title"`
	State     State          `json:"state"`
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

// Feed keeps what the world is to hear of: rows that are written in the
// transaction of what they tell, and numbered in the order in which these
// transactions were committed, without gaps. Whoever reads it from the last
// row that he took on misses nothing.
type Feed interface {
	// News returns what happened after a row, in order: whole rows, of about max
	// news together, and the last row that was read; after itself when there is
	// none.
	News(ctx context.Context, after int64, max int) (news []News, last int64, err error)
	// FeedHead returns the number of the last row, and when the oldest row after
	// a place was written; zero when there is none.
	FeedHead(ctx context.Context, after int64) (head int64, oldest time.Time, err error)
	// TrimFeed drops rows written before a time that every sink has taken, and
	// forgets sinks that were not seen for so long.
	TrimFeed(ctx context.Context, before time.Time, forget time.Duration) (dropped int64, err error)

	// Sinks lists the takers of the feed by name.
	Sinks(ctx context.Context) ([]SinkState, error)
	// HoldSink makes owner the one that takes the feed for a sink for so long,
	// when nobody else is. A sink that is new begins at the feed's end; WebhookSink
	// is there while there are endpoints, and ErrSinkTaken says that it is not. It
	// returns the sink, whoever holds it. Leases, and how long a sink was not seen,
	// go by one clock, the ledger's: those of processes may be wrong.
	HoldSink(ctx context.Context, name, owner string, lease time.Duration) (SinkState, error)
	// TakeNews notes what the owner has taken. ErrSinkTaken.
	TakeNews(ctx context.Context, t Taking) error
	// SinkFailed notes that the owner could not pass the feed on.
	SinkFailed(ctx context.Context, name, owner, problem string) error
	// LetSinkGo ends the owner's hold.
	LetSinkGo(ctx context.Context, name, owner string) error
}

// EventTypePrefix begins the type of every event.
const EventTypePrefix = "dev.dibs."

// eventWords names what a step did, as events say it.
var eventWords = map[Step]string{
	StepConfirm: "confirmed", StepCancel: "cancelled", StepExpire: "expired", StepReplace: "replaced",
	StepRefundDue: "refund_due", StepRefund: "refunded", StepRedeem: "redeemed", StepUnredeem: "unredeemed", StepShip: "shipped",
}

// EventTypes lists the types of all events that there are.
func EventTypes() []string {
	types := []string{EventTypePrefix + "claim.granted"}
	for _, step := range []Step{
		StepConfirm, StepCancel, StepExpire, StepReplace, StepRefundDue, StepRefund, StepRedeem, StepUnredeem, StepShip,
	} {
		types = append(types, claimEventType(step))
	}
	for _, change := range []CampaignChange{
		CampaignPublished, CampaignPaused, CampaignResumed, CampaignEnded, CampaignChanged,
		CampaignStockChanged, CampaignSoldOut, CampaignLowStock,
	} {
		types = append(types, EventTypePrefix+"campaign."+string(change))
	}
	return append(types, EventTypeAnnounced, EventTypeTest)
}

// EventTypeTest is the type of an event that only tries a webhook.
const EventTypeTest = EventTypePrefix + "webhook.test"

func claimEventType(step Step) string {
	word, ok := eventWords[step]
	if !ok {
		word = string(step)
	}
	return EventTypePrefix + "claim." + word
}

package events

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

// Event is one event as it is published: a CloudEvent, version 1.0, in
// its JSON form.
type Event struct {
	SpecVersion string `json:"specversion" enum:"1.0"`
	// ID is the same however often the event comes: whoever has handled it
	// ignores it.
	ID string `json:"id"`
	// Source is `/dibs`.
	Source string `json:"source"`
	// Type is one of EventTypes.
	Type string `json:"type"`
	// Subject is the id of the claim, or of the campaign; for a part of an
	// announcement, the event's own. Events of one subject come in order.
	Subject         string          `json:"subject"`
	Time            time.Time       `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	Data            json.RawMessage `json:"data"`
}

// ClaimEventData is the data of an event of a claim.
type ClaimEventData struct {
	// Claim is the claim as it was after the step.
	Claim api.ClaimView `json:"claim"`
	// N counts the claim's steps, from 0, the grant: events of a claim that come
	// twice or late are told by it.
	N int `json:"n"`
	// Step is what happened; absent for the grant.
	Step *api.EventView `json:"step,omitempty"`
}

const eventSource = "/dibs"

// NewEvent makes an event of its data.
func NewEvent(id, eventType, subject string, at time.Time, data any) (Event, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("dibs: event %s: %w", id, err)
	}
	return Event{
		SpecVersion: "1.0", ID: id, Source: eventSource, Type: eventType, Subject: subject, Time: at.UTC(),
		DataContentType: "application/json", Data: raw,
	}, nil
}

// Encode returns the event as it travels: its JSON form.
func (e *Event) Encode() ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("dibs: event %s: %w", e.ID, err)
	}
	return b, nil
}

// EventTypePrefix begins the type of every event.
const EventTypePrefix = "dev.dibs."

// eventWords names what a step did, as events say it.
var eventWords = map[dibs.Step]string{
	dibs.StepConfirm: "confirmed", dibs.StepCancel: "cancelled", dibs.StepExpire: "expired", dibs.StepReplace: "replaced",
	dibs.StepRefundDue: "refund_due", dibs.StepRefund: "refunded", dibs.StepRedeem: "redeemed", dibs.StepUnredeem: "unredeemed", dibs.StepShip: "shipped",
}

// EventTypes lists the types of all events that there are.
func EventTypes() []string {
	types := []string{EventTypePrefix + "claim.granted"}
	for _, step := range []dibs.Step{
		dibs.StepConfirm, dibs.StepCancel, dibs.StepExpire, dibs.StepReplace, dibs.StepRefundDue, dibs.StepRefund, dibs.StepRedeem, dibs.StepUnredeem, dibs.StepShip,
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

func claimEventType(step dibs.Step) string {
	word, ok := eventWords[step]
	if !ok {
		word = string(step)
	}
	return EventTypePrefix + "claim." + word
}

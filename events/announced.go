package events

import (
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
)

// Announced is what followers are told of a campaign.
type Announced struct {
	AnnouncementID string    `json:"announcement_id"`
	CampaignID     string    `json:"campaign_id"`
	Merchant       string    `json:"merchant"`
	Kind           dibs.Kind `json:"kind"`
	Title          string    `json:"title"`
	Message        string    `json:"message,omitempty"`
	StartsAt       time.Time `json:"starts_at"`
	EndsAt         time.Time `json:"ends_at"`
}

// AnnouncedView is what a connected follower is told.
type AnnouncedView struct {
	Announced
	// DeliveryID is the same however and how often the user is told.
	DeliveryID string `json:"delivery_id"`
}

// Push is one event of an announcement: what up to PushBatch followers are told.
type Push struct {
	Announced
	// N numbers the announcement's events, from 1.
	N     int64    `json:"n"`
	Users []string `json:"users"`
}

// DeliveryID names the delivery of an announcement to a user, always the same.
// No id of an announcement or a user has a colon.
func DeliveryID(announcement, user string) string { return announcement + ":" + user }

// Recipient is one follower in an event of an announcement.
type Recipient struct {
	UserID string `json:"user_id"`
	// DeliveryID is the same however often the event comes.
	DeliveryID string `json:"delivery_id"`
}

// PushEventData is the data of an event of an announcement.
type PushEventData struct {
	Announced
	// N numbers the announcement's events, from 1.
	N          int64       `json:"n"`
	Recipients []Recipient `json:"recipients"`
}

// EventTypeAnnounced is the type of the events of announcements.
const EventTypeAnnounced = EventTypePrefix + "campaign.announced"

// eventOfPush is the event that tells a Push. Each is a subject of its own: they
// may come in any order.
func eventOfPush(p *Push, at time.Time) (Event, error) {
	id := DeliveryID(p.AnnouncementID, strconv.FormatInt(p.N, 10))
	data := PushEventData{Announced: p.Announced, N: p.N, Recipients: make([]Recipient, len(p.Users))}
	for i, u := range p.Users {
		data.Recipients[i] = Recipient{u, DeliveryID(p.AnnouncementID, u)}
	}
	return NewEvent(id, EventTypeAnnounced, id, at, data)
}

// PushTurn asks for some followers to be enqueued.
type PushTurn struct {
	ID string
	// Owner is the process that asks, and keeps the announcement for a Lease.
	Owner string
	Lease time.Duration
}

package gate

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs"
)

// PlaceState is where somebody is with a waiting room.
type PlaceState string

// The states of a place.
const (
	// PlaceArrived: the order is not decided before the start.
	PlaceArrived PlaceState = "arrived"
	// PlaceWaiting: it is not the user's turn yet.
	PlaceWaiting PlaceState = "waiting"
	// PlaceAdmitted: the user may claim.
	PlaceAdmitted PlaceState = "admitted"
)

// PlaceView is where a user stands in a campaign's waiting room.
type PlaceView struct {
	CampaignID string     `json:"campaign_id"`
	State      PlaceState `json:"state" enum:"arrived,waiting,admitted"`
	// Place is the user's number in the one order, from 1; 0 while it is not
	// decided. Users with a Place up to AdmittedUpTo are admitted.
	Place        int64 `json:"place"`
	AdmittedUpTo int64 `json:"admitted_up_to"`
	// Position is how many are to be admitted until it is the user's turn, the user
	// included; 0 once they are admitted, or while the order is not decided.
	Position int64 `json:"position"`
	// Waiting is how many have a place and are not admitted.
	Waiting int64 `json:"waiting"`
	// Estimate is how long it takes until it is the user's turn, at the rate of now.
	Estimate dibs.Duration `json:"estimate"`
	StartsAt time.Time     `json:"starts_at"`
	// Admission is what a claim carries; it is good until AdmissionExpiresAt, and asking
	// again renews it.
	Admission          string     `json:"admission,omitempty"`
	AdmissionExpiresAt *time.Time `json:"admission_expires_at,omitempty"`
	// AskAfter is when it is worth to ask again.
	AskAfter dibs.Duration `json:"ask_after"`
}

// RoomProgress is how far a campaign's waiting room has admitted. A user who knows
// their place knows the rest.
type RoomProgress struct {
	CampaignID   string    `json:"campaign_id"`
	AdmittedUpTo int64     `json:"admitted_up_to"`
	Waiting      int64     `json:"waiting"`
	PerSecond    float64   `json:"per_second"`
	At           time.Time `json:"at"`
}

// Places tells who is where in the waiting rooms of campaigns. Its methods are
// safe for concurrent use.
type Places interface {
	// Join gives the user a place, or returns the one they have: leaving and coming
	// back keeps it. *Error of NotStarted, Paused or Ended when nobody gets one now,
	// of Overloaded when the room is full, of NotFound when there is none.
	Join(ctx context.Context, c *dibs.Campaign, user string) (PlaceView, error)
	// Place returns the user's place. *Error of NotFound when they have none.
	Place(ctx context.Context, c *dibs.Campaign, user string) (PlaceView, error)
	// Glance is Place from this node's memory: it returns at once. False when the
	// user has none, or the node does not know of it yet: it has it looked up, for
	// the next time.
	Glance(c *dibs.Campaign, user string) (PlaceView, bool)
	// Leave gives the place up for good.
	Leave(ctx context.Context, c *dibs.Campaign, user string) error
	// Watch calls f each time a room that somebody uses on this node has admitted
	// more users, a few times a second at most, until stop is called. f must not
	// wait.
	Watch(f func(RoomProgress)) (stop func())
}

// SavedPlace is a place of a waiting room that is kept in one process.
type SavedPlace struct {
	Number int64
	UserID string
}

// PlaceGivenUp is how much higher the number of a place is kept that was given up.
const PlaceGivenUp int64 = 1 << 40

// SavedRoom is how far such a room was.
type SavedRoom struct {
	Campaign uint32
	// Tail is the last number given, Early how many arrived before the start, -1
	// before it, and Seed what these were shuffled by.
	Tail, Early int64
	Seed        string
	// AdmittedMicro is a million times up to which place it has admitted, at At.
	AdmittedMicro int64
	At            time.Time
}

package api

import (
	"time"

	"github.com/dibs-dev/dibs"
)

// AudienceView is a list of users as shown.
type AudienceView struct {
	ID        string    `json:"id"`
	Users     int64     `json:"users"`
	UpdatedAt time.Time `json:"updated_at"`
	// Duplicates is how many users came more than once in the file, right after an
	// import.
	Duplicates *int64 `json:"duplicates,omitempty"`
}

// FollowersView is what an import of followers did.
type FollowersView struct {
	Merchant string `json:"merchant"`
	// Imported counts lines, and New the users who did not follow before.
	Imported int64 `json:"imported"`
	New      int64 `json:"new"`
	// Followers is how many follow the merchant now.
	Followers int64 `json:"followers"`
}

// AudienceViewOf returns a list of users as shown.
func AudienceViewOf(a *dibs.Audience) AudienceView {
	return AudienceView{ID: a.ID, Users: a.Users, UpdatedAt: a.UpdatedAt}
}

package api

import (
	"time"

	"github.com/dibs-dev/dibs"
)

// SituationView is a situation as connected clients hear of it.
type SituationView struct {
	CampaignID string `json:"campaign_id"`
	// Event is what has changed: opened, paused, resumed, sold_out, reopened,
	// ended, changed, stock, or state to begin with.
	Event     string     `json:"event"`
	Phase     dibs.Phase `json:"phase"`
	Remaining int64      `json:"remaining"`
	Title     string     `json:"title"`
	StartsAt  time.Time  `json:"starts_at"`
	EndsAt    time.Time  `json:"ends_at"`
	Version   int64      `json:"version"`
	At        time.Time  `json:"at"`
	// Mark orders what is told of a campaign; see Mark.
	Mark string `json:"mark"`
}

// SituationViewOf is the situation after a change that is called so.
func SituationViewOf(s *dibs.Situation, event string) SituationView {
	c := s.Campaign
	return SituationView{
		CampaignID: c.ID, Event: event, Phase: s.Phase, Remaining: s.Remaining, Title: c.Title,
		StartsAt: c.StartsAt, EndsAt: c.EndsAt, Version: c.Version, At: s.At, Mark: s.Mark.String(),
	}
}

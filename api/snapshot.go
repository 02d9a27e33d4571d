package api

import (
	"time"

	"github.com/dibs-dev/dibs"
)

// SnapshotView is a snapshot as connected clients receive it.
type SnapshotView struct {
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

// SnapshotViewOf is the snapshot after a change of that name.
func SnapshotViewOf(s *dibs.Snapshot, event string) SnapshotView {
	c := s.Campaign
	return SnapshotView{
		CampaignID: c.ID, Event: event, Phase: s.Phase, Remaining: s.Remaining, Title: c.Title,
		StartsAt: c.StartsAt, EndsAt: c.EndsAt, Version: c.Version, At: s.At, Mark: s.Mark.String(),
	}
}

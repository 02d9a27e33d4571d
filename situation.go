package dibs

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Phase is what a campaign has for who presses the button now: its state, its
// window and its stock in one word.
type Phase string

// The phases, in the order in which a claim would hear of them.
const (
	PhaseEnded    Phase = "ended"
	PhasePaused   Phase = "paused"
	PhaseUpcoming Phase = "upcoming"
	PhaseSoldOut  Phase = "sold_out"
	PhaseOpen     Phase = "open"
)

// Situation is where a campaign stands, as one node knows it. It is complete in
// itself: who has the newest needs none before it.
type Situation struct {
	// Campaign is the definition, drafts excluded.
	Campaign *Campaign
	Phase    Phase
	// Remaining is what can still be granted.
	Remaining int64
	// At is when it was seen, by the engine's clock.
	At   time.Time
	Mark Mark
}

// SituationView is a situation as connected clients hear of it.
type SituationView struct {
	CampaignID string `json:"campaign_id"`
	// Event is what has changed: opened, paused, resumed, sold_out, reopened,
	// ended, changed, stock, or state to begin with.
	Event     string    `json:"event"`
	Phase     Phase     `json:"phase"`
	Remaining int64     `json:"remaining"`
	Title     string    `json:"title"`
	StartsAt  time.Time `json:"starts_at"`
	EndsAt    time.Time `json:"ends_at"`
	Version   int64     `json:"version"`
	At        time.Time `json:"at"`
	// Mark orders what is told of a campaign; see Mark.
	Mark string `json:"mark"`
}

// View is the situation after a change that is called so.
func (s *Situation) View(event string) SituationView {
	c := s.Campaign
	return SituationView{
		CampaignID: c.ID, Event: event, Phase: s.Phase, Remaining: s.Remaining, Title: c.Title,
		StartsAt: c.StartsAt, EndsAt: c.EndsAt, Version: c.Version, At: s.At, Mark: s.Mark.String(),
	}
}

// Mark orders the situations of one campaign, also those that different nodes
// tell of, and those before and after a restart.
type Mark struct {
	// Version is the definition's.
	Version int64
	// Head is the place of the last journal entry; of a campaign with several
	// shards their places are added up.
	Head Cursor
	// Window is 0 before the campaign starts, 1 until it ends, then 2.
	Window uint8
}

// Compare returns -1 when m is before o, 0 when both are the same, else 1.
func (m Mark) Compare(o Mark) int {
	if c := cmp.Or(cmp.Compare(m.Version, o.Version), cmp.Compare(m.Window, o.Window)); c != 0 {
		return c
	}
	switch {
	case m.Head == o.Head:
		return 0
	case m.Head.Before(o.Head):
		return -1
	}
	return 1
}

// String is the mark as ParseMark reads it, `3.1.200.1`.
func (m Mark) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", m.Version, m.Head.Epoch, m.Head.Seq, m.Window)
}

// ParseMark reads what String wrote; false for anything else.
func ParseMark(s string) (Mark, bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return Mark{}, false
	}
	var n [4]uint64
	for i, bits := range [4]int{63, 16, 32, 2} {
		v, err := strconv.ParseUint(parts[i], 10, bits)
		if err != nil {
			return Mark{}, false
		}
		n[i] = v
	}
	return Mark{Version: int64(n[0]), Head: Cursor{Epoch: uint16(n[1]), Seq: uint32(n[2])}, Window: uint8(n[3])}, true
}

// CatalogVersion rises when this node learns that some campaign has changed, on
// whichever node: what was read of the campaigns before may be stale then.
func (s *Service) CatalogVersion() int64 { return s.catalog.Load() }

// situationOf puts together what is known.
func situationOf(c *Campaign, remaining int64, head Cursor, now time.Time) Situation {
	st := Situation{Campaign: c, Remaining: remaining, At: now.UTC(), Mark: Mark{Version: c.Version, Head: head, Window: 1}}
	switch {
	case !now.Before(c.EndsAt):
		st.Mark.Window = 2
	case now.Before(c.StartsAt):
		st.Mark.Window = 0
	}
	switch {
	case c.State == EndedState || st.Mark.Window == 2:
		st.Phase = PhaseEnded
	case c.State == PausedState:
		st.Phase = PhasePaused
	case st.Mark.Window == 0:
		st.Phase = PhaseUpcoming
	case remaining <= 0:
		st.Phase = PhaseSoldOut
	default:
		st.Phase = PhaseOpen
	}
	return st
}

// Situation returns where a campaign stands by what this node knows, without
// asking another machine while the campaign is live here. ErrNotFound, for
// drafts too; *Error of Overloaded when too much is asked about campaigns that
// are not live.
func (s *Service) Situation(ctx context.Context, id string) (Situation, error) {
	if v, ok := s.lives.Load(id); ok {
		if st, ok := s.liveSituation(v.(*live)); ok {
			return st, nil
		}
	}
	c, err := s.publicLookUp(ctx, id)
	if err != nil {
		return Situation{}, err
	}
	if !s.sells(c) {
		// What is left of a campaign that is over is for reports.
		return situationOf(c, 0, Cursor{}, s.cfg.Now()), nil
	}
	l, err := s.liveOf(ctx, c)
	if err == nil && l != nil {
		if st, ok := s.liveSituation(l); ok {
			return st, nil
		}
	}
	// It is being loaded: nobody can tell yet what is left.
	return situationOf(c, c.Stock.Total, Cursor{}, s.cfg.Now()), nil
}

// liveSituation is where a live campaign stands; false while a shard is not open.
func (s *Service) liveSituation(l *live) (Situation, bool) {
	c := l.campaign.Load()
	var remaining int64
	var head Cursor
	now := s.cfg.Now()
	for _, t := range l.shards {
		st, err := s.glance(s.life, t)
		if err != nil {
			return Situation{}, false
		}
		remaining += st.Remaining
		head.Epoch += st.Head.Epoch
		head.Seq += st.Head.Seq
		if !s.engine.Shared() {
			now = fromMS(st.Now)
		} else {
			now = now.Add(time.Duration(t.skewMS.Load()) * time.Millisecond)
		}
	}
	return situationOf(c, remaining, head, now), true
}

package dibs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Phase is a campaign's state, window and stock in one word, as a claim would find
// them now.
type Phase string

// The phases, the first of which counts: a campaign that is paused when its window is over
// has ended.
const (
	PhaseEnded    Phase = "ended"
	PhasePaused   Phase = "paused"
	PhaseUpcoming Phase = "upcoming"
	PhaseSoldOut  Phase = "sold_out"
	PhaseOpen     Phase = "open"
)

// Phase returns where a campaign with so many units left stands at a time. Drafts have no
// phase.
func (c *Campaign) Phase(now time.Time, remaining int64) Phase {
	switch {
	case c.Ended(now):
		return PhaseEnded
	case c.State == PausedState:
		return PhasePaused
	case now.Before(c.StartsAt):
		return PhaseUpcoming
	case remaining <= 0:
		return PhaseSoldOut
	}
	return PhaseOpen
}

// Snapshot is where a campaign stands, as one node knows it. It is complete in
// itself: the newest needs none before it.
type Snapshot struct {
	// Campaign is the definition, drafts excluded.
	Campaign *Campaign
	Phase    Phase
	// Remaining is what can still be granted.
	Remaining int64
	// At is when it was seen, by the engine's clock.
	At   time.Time
	Mark Mark
}

// Mark orders the snapshots of one campaign, also those that different nodes
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

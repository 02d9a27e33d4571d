package live

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// A campaign's phase is what a claim would be refused by first; its mark rises with
// the window, so that a later snapshot is known as such.
func TestPhasesOfASnapshot(t *testing.T) {
	starts := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	ends := starts.Add(time.Hour)
	for name, c := range map[string]struct {
		state  dibs.State
		left   int64
		at     time.Time
		phase  dibs.Phase
		window uint8
	}{
		"before the start":           {dibs.Published, 5, starts.Add(-time.Millisecond), dibs.PhaseUpcoming, 0},
		"at the start":               {dibs.Published, 5, starts, dibs.PhaseOpen, 1},
		"at the end":                 {dibs.Published, 5, ends, dibs.PhaseEnded, 2},
		"with nothing left":          {dibs.Published, 0, starts, dibs.PhaseSoldOut, 1},
		"nothing left, not started":  {dibs.Published, 0, starts.Add(-1), dibs.PhaseUpcoming, 0},
		"paused":                     {dibs.PausedState, 5, starts, dibs.PhasePaused, 1},
		"paused before the start":    {dibs.PausedState, 5, starts.Add(-1), dibs.PhasePaused, 0},
		"paused, and over":           {dibs.PausedState, 5, ends, dibs.PhaseEnded, 2},
		"ended in its window":        {dibs.EndedState, 5, starts, dibs.PhaseEnded, 1},
		"ended before it has begun":  {dibs.EndedState, 5, starts.Add(-1), dibs.PhaseEnded, 0},
		"sold out, and paused since": {dibs.PausedState, 0, starts, dibs.PhasePaused, 1},
	} {
		campaign := &dibs.Campaign{StartsAt: starts, EndsAt: ends, State: c.state, Version: 3}
		head := dibs.Cursor{Epoch: 1, Seq: 9}
		got := snapshotOf(campaign, c.left, head, c.at)
		if got.Phase != c.phase || got.Mark != (dibs.Mark{Version: 3, Head: head, Window: c.window}) {
			t.Errorf("%s the phase is %s with the mark %+v, want %s in window %d", name, got.Phase, got.Mark, c.phase, c.window)
		}
	}
}

// A campaign begins by its servers' clock, however many shards it has.
func TestClockOfManyShards(t *testing.T) {
	begun := time.UnixMilli(1_000_000_000)
	now := func() time.Time { return begun }
	l := NewCampaign(&dibs.Campaign{ID: "c", Number: 1, Shards: 8, State: dibs.Published, StartsAt: begun.Add(3 * time.Second), EndsAt: begun.Add(time.Hour)})
	for i := range 8 {
		sh := newShard(dibs.ShardID{Campaign: 1, Shard: uint8(i)}, l)
		// Each answer took a millisecond longer.
		sh.seen.keep(&dibs.ShardStats{Head: dibs.Cursor{Epoch: 1, Seq: 1}, Remaining: 5, Now: begun.UnixMilli() + 500 - int64(i)}, begun)
		l.Shards = append(l.Shards, sh)
	}
	s := &Snapshots{shared: shared{registry: &Registry{engine: several{}, now: now}, engine: several{}, now: now, life: t.Context()}}
	if st, ok := s.liveSnapshot(l); !ok || st.At.Sub(begun) != 500*time.Millisecond || st.Phase != dibs.PhaseUpcoming {
		t.Errorf("the servers' clock is 500 ms ahead, and the snapshot's %s: %v, %s", st.At.Sub(begun), ok, st.Phase)
	}
}

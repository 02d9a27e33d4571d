//go:build soak

package redisengine_test

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
)

// TestFrozenMasterComesBack has a master that is replaced while it stands
// still, and then goes on as if nothing had been. Its answers are lost until it
// learns that it is no master, unless replicas have to confirm them; nothing is sold
// twice in the ledger, and the nodes that never lost sight of it find the new
// one.
func TestFrozenMasterComesBack(t *testing.T) {
	for _, level := range []string{dibs.LevelDurable, dibs.LevelReplicated} {
		var all tally
		for range rounds(t, 1, 20) {
			s := startSentinel(t)
			old := []*redisengine.Engine{openEngine(t, failoverConfig(s.URL(), level)), openEngine(t, failoverConfig(s.URL(), level))}
			r := newRush(t, 1, 150_000, old...)
			r.begin(crashClients)
			r.more(leastAnswered)
			master, err := s.Master(t.Context())
			must(t, err)
			next := others(s, master)[0]
			must(t, s.Prefer(t.Context(), next))
			must(t, master.Freeze())
			must(t, s.Promoted(t.Context(), next))
			must(t, master.Thaw())
			// Until it is told better, it answers.
			pause(t.Context(), 500*time.Millisecond)
			r.end()
			must(t, s.Ready(t.Context()))
			r.begin(crashClients)
			all.add(recovered(t, s, r, level, old...))
			s.Stop()
		}
		if level == dibs.LevelReplicated && all.lost > 0 {
			t.Errorf("%d answered grants are lost", all.lost)
		}
		t.Logf("at %s: %v", level, all)
	}
}

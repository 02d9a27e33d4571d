package enginetest_test

import (
	"context"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// Abilities returns what the naive engine can do beside the contract; see dibs.Engine.
func (n *naive) Abilities() dibs.Abilities {
	return dibs.Abilities{Stats: n.stats, Level: n.level, Store: &n.store, Counts: n.counts}
}

// stats counts each grant of the journal as a batch.
func (n *naive) stats() dibs.EngineStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	granted := int64(0)
	for _, entries := range n.disk.journals {
		for _, e := range entries {
			if e.Kind == dibs.EntryGrant && !n.faults.statsStill {
				granted++
			}
		}
	}
	none := dibs.Tally{Counts: []int64{granted}}
	batches := none
	batches.Sum = granted
	return dibs.EngineStats{Batches: batches, Queued: none, Durable: none}
}

// level is what naive promises, which depends on its disk.
func (n *naive) level() (string, []dibs.Finding) {
	settings := []dibs.Finding{{Standing: dibs.StandingOK, Subject: "disk", Found: "there"}}
	if n.faults.settingTwice {
		settings = append(settings, settings...)
	}
	return n.Durability(), settings
}

// naiveStore is a store whose values have no end.
type naiveStore struct {
	kept       sync.Map
	takenTwice bool // a planted fault
}

func (s *naiveStore) RunScript(context.Context, string, []string, ...string) ([]any, error) {
	return nil, dibs.Unavail(dibs.EffectNone, nil)
}

func (s *naiveStore) Put(_ context.Context, name, value string, _ time.Duration) error {
	s.kept.Store(name, value)
	return nil
}

func (s *naiveStore) Take(_ context.Context, name string) (string, bool, error) {
	take := s.kept.LoadAndDelete
	if s.takenTwice {
		take = s.kept.Load
	}
	value, ok := take(name)
	text, _ := value.(string)
	return text, ok, nil
}

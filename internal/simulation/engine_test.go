package simulation

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/enginetest"
)

// modelState is a server for the contract's suite, with one node after the other.
type modelState struct {
	site *site
	last *process
}

// Open starts a node's engine.
func (s *modelState) Open(context.Context) (dibs.Engine, error) {
	s.last = &process{w: s.site.w, site: s.site, name: "node", dead: make(chan struct{})}
	s.last.eng = newEngine(s.last)
	return s.last.eng, nil
}

// Kill ends it.
func (s *modelState) Kill(context.Context) error {
	s.last.die.Do(func() { close(s.last.dead) })
	return nil
}

// TestModelKeepsTheContract runs the contract of engines on the model: what it
// promises less than the real one, or more, would be found nowhere else.
func TestModelKeepsTheContract(t *testing.T) {
	f := enginetest.Factory{OwnClock: true, New: func(testing.TB, func() time.Time) enginetest.State {
		w := &world{scene: newScene(Planted{}), plan: &plan{}, fates: newChances(0)}
		w.calm.Store(true)
		w.master = &server{scene: w.scene, name: "redis", run: "redis/1", mem: newMemory()}
		return &modelState{site: &site{w: w, name: "node", at: w.master}}
	}}
	for _, c := range enginetest.Checks() {
		if raced && (strings.HasPrefix(c.Name, "random/") || strings.HasPrefix(c.Name, "linear/")) {
			// They take half a minute even without the race detector.
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if err := c.Run(t, f); err != nil {
				t.Error(err)
			}
		})
	}
}

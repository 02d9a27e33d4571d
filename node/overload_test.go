package node

import "testing"

// A node says that a backlog is nearly full before claims are refused for it, and
// that it is not any more only when it is well below.
func TestBacklogNearlyFull(t *testing.T) {
	s := wire(ServiceConfig{MaxBacklog: 1000}.WithDefaults())
	for _, step := range []struct {
		backlog int64
		want    bool
	}{{0, false}, {899, false}, {900, true}, {760, true}, {740, false}, {899, false}, {2000, true}} {
		if got := s.nearlyFull(step.backlog); got != step.want {
			t.Errorf("%d of 1000: %v, want %v", step.backlog, got, step.want)
		}
	}
}

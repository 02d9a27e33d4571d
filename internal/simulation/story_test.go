package simulation

import (
	"log/slog"
	"strings"
	"testing"
)

// TestStoryKeepsTheEnd: a long story keeps what happened last, and what a node logs
// again and again is told ever more rarely.
func TestStoryKeepsTheEnd(t *testing.T) {
	s := newStory()
	for i := range 3 * maxLines {
		s.tell("step %d.", i)
	}
	if text := s.String(); strings.Count(text, "\n") != maxLines || !strings.Contains(text, "step 17999.") || strings.Contains(text, "step 11999.") {
		t.Errorf("%d lines, %.80q …", strings.Count(text, "\n"), text)
	}
	s = newStory()
	log := slog.New(newLogHandler(s, "node1.a"))
	log.Info("all is well")
	for range 100 {
		log.Warn("the ledger does not answer", "op", "settle")
	}
	if text := s.String(); strings.Count(text, "\n") != 7 || !strings.Contains(text, "node1.a logs: the ledger does not answer: op=settle (64)") {
		t.Errorf("100 equal lines are told as\n%s", text)
	}
}

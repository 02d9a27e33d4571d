package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxLines bounds the story of a run: the latest are kept.
const maxLines = 6000

// story is what happened in a run, in order. It is written out only when it is
// read: most runs end well.
// mu guards lines. begun is a time of the bubble, set once.
type story struct {
	mu    sync.Mutex
	begun time.Time
	lines []line
}

type line struct {
	at   time.Duration
	text string
	args []any
}

func newStory() *story { return &story{begun: time.Now()} }

// tell adds a line. Its arguments are values: they are read later.
func (s *story) tell(text string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) >= 2*maxLines {
		s.lines = slices.Delete(s.lines, 0, maxLines)
	}
	s.lines = append(s.lines, line{time.Since(s.begun), text, args})
}

// String is the story, a line for each thing that happened, with the seconds
// since the beginning.
func (s *story) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, l := range s.lines[max(0, len(s.lines)-maxLines):] {
		fmt.Fprintf(&b, "%9.4f  %s\n", l.at.Seconds(), fmt.Sprintf(l.text, l.args...))
	}
	return b.String()
}

// logHandler writes what a node logs into the story: what it says again and again,
// ever more rarely.
type logHandler struct {
	s    *story
	node string
	mu   *sync.Mutex
	said map[string]int
}

func newLogHandler(s *story, node string) logHandler {
	return logHandler{s, node, &sync.Mutex{}, map[string]int{}}
}

// Enabled is true for what operators should know.
func (h logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle adds a record to the story.
func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	text := r.Message + ":" + b.String()
	h.mu.Lock()
	h.said[text]++
	n := h.said[text]
	h.mu.Unlock()
	// The 1st, 2nd, 4th, 8th … time.
	if n&(n-1) == 0 {
		h.s.tell("%s logs: %s (%d)", h.node, text, n)
	}
	return nil
}

// WithAttrs and WithGroup return the handler as it is: nodes use neither.
func (h logHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup returns the handler as it is.
func (h logHandler) WithGroup(string) slog.Handler { return h }

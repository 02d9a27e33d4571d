// Package trouble logs errors that go on: each at once, then rarely, and its end. A loop
// that waits for a database for an hour must not fill the log.
package trouble

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// remind is how often a trouble that goes on is logged again.
	remind = time.Minute
	// kinds is how many different errors of one trouble are logged between two reminders.
	// The text of some errors differs each time, as by the port of a connection.
	kinds = 8
)

// Log writes troubles to a log, each by a name that its user gives. Use New. mu guards
// of, and all that it leads to. All methods are safe for concurrent use.
type Log struct {
	to    *slog.Logger
	level slog.Level

	mu sync.Mutex
	of map[string]*trouble
}

// trouble is one that goes on.
type trouble struct {
	since time.Time
	times int
	// reminded is when it was logged for the first time, or again.
	reminded time.Time
	// said are the errors that were logged since reminded.
	said []string
}

// New returns a Log that writes troubles at a level, and their ends at Info.
func New(to *slog.Logger, level slog.Level) *Log {
	return &Log{to: to, level: level, of: make(map[string]*trouble)}
}

// Is logs an error of a trouble: at once when it is another one than before, else once a
// minute, with how often and for how long it has happened.
func (l *Log) Is(name, what string, err error, attrs ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, text := time.Now(), err.Error()
	t := l.of[name]
	if t == nil {
		t = &trouble{since: now}
		l.of[name] = t
	}
	t.times++
	switch {
	case now.Sub(t.reminded) >= remind:
		t.reminded, t.said = now, nil
	case len(t.said) == kinds || slices.Contains(t.said, text):
		return
	}
	t.said = append(t.said, text)
	if t.times > 1 {
		attrs = append(attrs, "tries", t.times, "for", now.Sub(t.since).Round(time.Second).String())
	}
	l.to.Log(context.Background(), l.level, what, append(attrs, "err", err)...)
}

// Over logs that a trouble is over, when there was one.
func (l *Log) Over(name, what string, attrs ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of[name]
	if t == nil {
		return
	}
	delete(l.of, name)
	l.to.Info(what, append(attrs, "after", time.Since(t.since).Round(time.Millisecond).String())...)
}

// Forget drops a trouble that is of no interest any more, without a word.
func (l *Log) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, name)
}

// ForgetAll drops every trouble, without a word.
func (l *Log) ForgetAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.of)
}

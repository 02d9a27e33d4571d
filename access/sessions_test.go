package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// sessionRows is a ledger of sessions.
type sessionRows struct {
	SessionLedger
	rows  map[string]*Session
	reads int
	used  []map[string]time.Time
	// meanwhile is called while a session is being looked up.
	meanwhile func()
}

func (l *sessionRows) InsertSession(_ context.Context, s *Session) error {
	row := *s
	l.rows[s.ID] = &row
	return nil
}

func (l *sessionRows) Session(_ context.Context, id string) (*Session, error) {
	l.reads++
	if s := l.rows[id]; s != nil {
		row := *s
		if l.meanwhile != nil {
			l.meanwhile()
		}
		return &row, nil
	}
	return nil, dibs.ErrNotFound
}

func (l *sessionRows) EndSession(_ context.Context, id string, at time.Time) error {
	l.rows[id].EndedAt = at
	return nil
}

func (l *sessionRows) TouchSessions(_ context.Context, used map[string]time.Time) error {
	l.used = append(l.used, used)
	return nil
}

func (l *sessionRows) DropSessions(context.Context, time.Time) error { return nil }

func (l *sessionRows) DropPending(context.Context, time.Time) error { return nil }

func (l *sessionRows) DropSignIns(context.Context, time.Time) error { return nil }

// TestSessionsEnd: a session is looked up once a second; one that is ended elsewhere is worth
// nothing within a second, and it lasts no longer than its key.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &sessionRows{rows: map[string]*Session{}}
		one, other := NewSessions(l, 0, func() {}, slog.New(slog.DiscardHandler), time.Now), NewSessions(l, 0, func() {}, slog.New(slog.DiscardHandler), time.Now)
		ends := time.Now().Add(time.Minute)
		is, err := one.Begin(t.Context(), &APIKey{ID: "k", ExpiresAt: ends}, ends.Add(time.Hour), "::1", string(make([]byte, 2*maxAgent)))
		if err != nil || !is.ExpiresAt.Equal(ends) || len(is.Agent) != maxAgent {
			t.Fatalf("%+v, %v", is, err)
		}
		check := func(s *Sessions, when string, lasts bool) {
			t.Helper()
			if err := s.Check(t.Context(), is.ID); errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated}) == lasts {
				t.Errorf("%s: %v", when, err)
			}
		}
		for range 10 {
			check(other, "it was begun", true)
		}
		if l.reads != 1 {
			t.Errorf("it was looked up %d times", l.reads)
		}
		if err := one.End(t.Context(), is.ID); err != nil {
			t.Fatal(err)
		}
		check(one, "ended here", false)
		wait.Sleep(t.Context(), sessionCacheFor)
		check(other, "ended elsewhere", false)
		other.Tidy(t.Context())
		other.Tidy(t.Context())
		if len(l.used) != 1 || len(l.used[0]) != 1 {
			t.Errorf("noted was %v", l.used)
		}
		second, err := one.Begin(t.Context(), &APIKey{ID: "k"}, ends, "", "")
		if err != nil {
			t.Fatal(err)
		}
		is = second
		check(one, "it lasts", true)
		wait.Sleep(t.Context(), time.Minute)
		check(one, "after its time", false)
	})
}

// TestSessionThatEndsWhileItIsLookedUp: a session is worth nothing at the node that ended it, also when another call was
// looking it up.
func TestSessionThatEndsWhileItIsLookedUp(t *testing.T) {
	l := &sessionRows{rows: map[string]*Session{}}
	s := NewSessions(l, 0, func() {}, slog.New(slog.DiscardHandler), time.Now)
	is, err := s.Begin(t.Context(), &APIKey{ID: "k"}, time.Now().Add(time.Hour), "", "")
	if err != nil {
		t.Fatal(err)
	}
	l.meanwhile = func() {
		if err := s.End(t.Context(), is.ID); err != nil {
			t.Error(err)
		}
	}
	if err := s.Check(t.Context(), is.ID); err != nil {
		t.Errorf("the call meanwhile: %v", err)
	}
	if err := s.Check(t.Context(), is.ID); !errors.Is(err, errSessionEnded) {
		t.Errorf("a call after its end: %v", err)
	}
}

// TestIdleSessionsEnd: a session that is not used for the time given ends, for good, and uses at any node keep it.
func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &sessionRows{rows: map[string]*Session{}}
		ended := 0
		s := NewSessions(l, 30*time.Minute, func() { ended++ }, slog.New(slog.DiscardHandler), time.Now)
		is, err := s.Begin(t.Context(), &APIKey{ID: "k"}, time.Now().Add(12*time.Hour), "::1", "")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			wait.Sleep(t.Context(), 29*time.Minute)
			if i == 1 {
				// Another node has seen it, and this one forgets what it saw.
				clear(s.used)
				l.rows[is.ID].LastUsedAt = time.Now().Add(-time.Minute)
			}
			if err := s.Check(t.Context(), is.ID); err != nil {
				t.Fatalf("after use %d: %v", i, err)
			}
		}
		wait.Sleep(t.Context(), 30*time.Minute)
		for range 2 {
			if err := s.Check(t.Context(), is.ID); !errors.Is(err, errSessionEnded) {
				t.Errorf("without a use: %v", err)
			}
		}
		if ended != 1 || l.rows[is.ID].EndedAt.IsZero() {
			t.Errorf("it ended %d times, at %v", ended, l.rows[is.ID].EndedAt)
		}
	})
}

// TestSessionsAreBounded: what is remembered of sessions is bounded.
func TestSessionsAreBounded(t *testing.T) {
	l := &sessionRows{rows: map[string]*Session{}}
	s := NewSessions(l, 0, func() {}, slog.New(slog.DiscardHandler), time.Now)
	for i := range 3 * maxCachedSessions {
		id := fmt.Sprint("s-", i)
		l.rows[id] = &Session{ID: id, ExpiresAt: time.Now().Add(time.Hour)}
		if err := s.Check(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.known) > maxCachedSessions || len(s.used) > maxCachedSessions {
		t.Errorf("%d and %d are remembered", len(s.known), len(s.used))
	}
}

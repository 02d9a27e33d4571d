package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// rushed is a server that a claim costs 100 µs, and 1 µs more for each console that follows.
type rushed struct {
	spent, following, waiting atomic.Int64
	keys                      atomic.Int64
}

func (s *rushed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") == "Bearer key" {
		s.keys.Add(1)
	}
	switch {
	case r.Method == http.MethodPost:
		s.spent.Add(100 + s.following.Load())
		s.waiting.Store(2)
		w.WriteHeader(http.StatusCreated)
	case r.URL.Path == "/metrics":
		_, _ = fmt.Fprintf(w, "process_cpu_seconds_total %f\n", float64(s.spent.Load())/1e6)
	case r.URL.Path == "/readyz":
		// What waits is settled a little later.
		_, _ = fmt.Fprintf(w, `{"journal_backlog":%d}`, max(0, s.waiting.Add(-1)))
	case strings.HasSuffix(r.URL.Path, "/stream"):
		s.following.Add(1)
		defer s.following.Add(-1)
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// A rush beside consoles is measured while all of them follow, and until nothing waits to be settled.
func TestTurn(t *testing.T) {
	is := &rushed{}
	s := httptest.NewServer(is)
	defer s.Close()
	r := &presses{url: s.URL, key: "key", claims: 200, client: s.Client()}
	for _, open := range []int{0, openConsoles} {
		want := float64(100+open) * 1e-6
		cost, err := r.turn(t.Context(), open)
		if err != nil || cost < want-1e-6 || cost > want+1e-6 {
			t.Errorf("%d consoles: a claim costs %.1f µs, want %.1f: %v", open, cost*1e6, want*1e6, err)
		}
		if is.waiting.Load() > 0 {
			t.Errorf("%d consoles: something still waits to be settled", open)
		}
	}
	if r.sent.Load() != 400 || is.keys.Load() < openConsoles {
		t.Errorf("%d claims, %d calls with the key", r.sent.Load(), is.keys.Load())
	}
}

// A server that refuses the key, or claims, is no measurement.
func TestTurnFails(t *testing.T) {
	for name, refuse := range map[string]func(*http.Request) bool{
		"the streams": func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/stream") },
		"claims":      func(r *http.Request) bool { return r.Method == http.MethodPost },
		"metrics":     func(r *http.Request) bool { return r.URL.Path == "/metrics" },
	} {
		is := &rushed{}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refuse(r) {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			is.ServeHTTP(w, r)
		}))
		r := &presses{url: s.URL, key: "key", claims: 5, client: s.Client()}
		if cost, err := r.turn(t.Context(), 2); err == nil {
			t.Errorf("without %s: %v", name, cost)
		}
		s.Close()
	}
}

// The median is judged: two percent are allowed, and no more.
func TestConsoleFaults(t *testing.T) {
	if m := middle([]float64{0.5, 0.019, -0.1}); m != 0.019 || len(consoleFaults(m)) > 0 {
		t.Errorf("%v", m)
	}
	if got := consoleFaults(0.021); len(got) != 1 || !strings.Contains(got[0], "2.1 %") {
		t.Error(got)
	}
}

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The time of processors is read from the server's metrics; a server that does not tell it is an error, not a zero.
func TestProcessorTime(t *testing.T) {
	metrics := "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 1.25\nprocess_open_fds 3\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, metrics) }))
	defer s.Close()
	if got, err := processorTime(t.Context(), s.URL); err != nil || got != 1.25 {
		t.Errorf("%v, %v", got, err)
	}
	metrics = "process_open_fds 3\n"
	if got, err := processorTime(t.Context(), s.URL); err == nil {
		t.Errorf("without the metric: %v", got)
	}
}

// Each claim of the load is another user's, and those that are granted are counted.
func TestClaimAll(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	users := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if user := r.Header.Get("Authorization"); !users[user] {
			users[user] = true
		} else {
			t.Errorf("%s claims twice", user)
		}
		if len(users)%2 == 0 {
			w.WriteHeader(http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusCreated)
		if len(users) > 20 {
			cancel()
		}
	}))
	defer s.Close()
	var granted atomic.Int64
	claimAll(ctx, s.URL, &granted)
	mu.Lock()
	defer mu.Unlock()
	if n := granted.Load(); len(users) <= 20 || n < 5 || n > int64(len(users)) {
		t.Errorf("%d users, %d granted", len(users), n)
	}
}

// A page that shows nothing, or shows it late, or moves, breaks a limit; others do not.
func TestLoadingFaults(t *testing.T) {
	for n, m := range []loading{{First: maxFirst, Moved: maxMoved}, {First: -1}, {First: maxFirst + 1}, {First: 100, Moved: 0.06, What: "main"}} {
		if got := m.faults("page"); (len(got) == 0) != (n == 0) {
			t.Errorf("%+v: %v", m, got)
		}
	}
}

// People who watch may cost a tenth of a core, and no more.
func TestWatchingFaults(t *testing.T) {
	if got := watchingFaults(0.099); len(got) > 0 {
		t.Error(got)
	}
	if got := watchingFaults(0.101); len(got) != 1 || !strings.Contains(got[0], "10.1 %") {
		t.Error(got)
	}
}

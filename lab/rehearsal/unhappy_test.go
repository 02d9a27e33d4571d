package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// TestLostReplies cuts every fifth claim's connection after the server has
// decided it. The effect of such a press is unknown to its user; repeated with
// the same key it is found, and no promise breaks.
func TestLostReplies(t *testing.T) {
	var claims atomic.Int64
	cfg := serve(t, func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isClaim(r) && claims.Add(1)%5 == 0 {
				honest.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
			honest.ServeHTTP(w, r)
		})
	})
	// Its default: a repeat may be cut too, and nothing is to be given up for that.
	cfg.Patience = 0
	r := rehearse(t, cfg)
	if !r.OK || r.Transport.Lost == 0 || r.Transport.Resolved == 0 || r.Transport.Unresolved != 0 {
		t.Errorf("%+v\n%s", r.Transport, table(t, r))
	}
	if !strings.Contains(table(t, r), "Sent again with the same key") {
		t.Errorf("the table does not explain what was lost:\n%s", table(t, r))
	}
}

// TestLostRepliesWithoutKeys: without a key nobody may send a press again, so
// its effect stays unknown, and the report says so instead of passing.
func TestLostRepliesWithoutKeys(t *testing.T) {
	var cut atomic.Bool
	cfg := serve(t, func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isClaim(r) && cut.CompareAndSwap(false, true) {
				panic(http.ErrAbortHandler)
			}
			honest.ServeHTTP(w, r)
		})
	})
	cfg.NoKeys, cfg.Repeats = true, 0
	r := rehearse(t, cfg)
	if r.OK || r.Transport.Unresolved != 1 || !brokenPromises(r)["every press is answered by answers"] {
		t.Errorf("%+v\n%s", r.Transport, table(t, r))
	}
}

// TestStopped ends a rehearsal in the middle of its load, as ctrl-C does, after
// the server has granted a press and before it answered: what is known is
// reported, nothing is called broken, and it has not passed.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var claims atomic.Int64
	cfg := serve(t, func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isClaim(r) && claims.Add(1) == 5 {
				honest.ServeHTTP(httptest.NewRecorder(), r)
				cancel(errors.New("somebody had enough"))
				<-r.Context().Done()
				return
			}
			honest.ServeHTTP(w, r)
		})
	})
	cfg.Concurrency = 1
	r, err := rehearsal.Run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK || !r.Interrupted || count(r, "granted") == 0 || r.Stats.Granted == 0 {
		t.Errorf("a stopped rehearsal:\n%s", table(t, r))
	}
	if text := table(t, r); !strings.Contains(text, "STOPPED (somebody had enough)") {
		t.Errorf("the table does not say that it was stopped:\n%s", text)
	}
}

// TestEndsByItself: a server that never answers does not hold the rehearsal.
func TestEndsByItself(t *testing.T) {
	cfg := serve(t, func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isClaim(r) {
				// Only with the body read does a server notice that a client left.
				if _, err := io.Copy(io.Discard, r.Body); err == nil {
					<-r.Context().Done()
				}
				return
			}
			honest.ServeHTTP(w, r)
		})
	})
	cfg.MaxTime = 2 * time.Second
	r := rehearse(t, cfg)
	if r.OK || !r.Interrupted || !strings.Contains(r.Why, "longer than 2s") {
		t.Errorf("a server that never answers:\n%s", table(t, r))
	}
}

// TestLatencyFromIntendedStart stalls the server once. One caller meets the
// stall, but all whose time came during it waited too, and are counted as they
// would have felt it.
func TestLatencyFromIntendedStart(t *testing.T) {
	const stall = 400 * time.Millisecond
	var once atomic.Bool
	cfg := serve(t, func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isClaim(r) && once.CompareAndSwap(false, true) {
				timer := time.NewTimer(stall)
				defer timer.Stop()
				<-timer.C
			}
			honest.ServeHTTP(w, r)
		})
	})
	cfg.Requests, cfg.Rate, cfg.Duration, cfg.Concurrency = 0, 200, 500*time.Millisecond, 1
	r := rehearse(t, cfg)
	all := r.Latencies[len(r.Latencies)-1]
	// 80 of the 100 arrivals fall into the stall, so the median did.
	if !r.OK || r.Requests != 100 || all.P50 < 100 || all.Max < float64(stall.Milliseconds()) {
		t.Errorf("a stall of %s:\n%s", stall, table(t, r))
	}
}

// TestUnjudged: a promise that cannot be judged has neither been kept nor broken.
func TestUnjudged(t *testing.T) {
	for _, path := range []string{"/v1/verify", "/stats", "/claims"} {
		looks := 0
		cfg := serve(t, liar(func(r *http.Request, status int, body []byte) (int, []byte) {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, path) || strings.HasPrefix(r.URL.Path, "/v1/me/") {
				return status, body
			}
			if looks++; path == "/stats" && looks == 1 {
				return status, body
			}
			return http.StatusServiceUnavailable, []byte(`{"reason":"unavailable","status":503,"effect":"none"}`)
		}))
		r := rehearse(t, cfg)
		if r.OK || len(brokenPromises(r)) > 0 || !strings.Contains(table(t, r), "NOT JUDGED: nothing is broken") {
			t.Errorf("without %s:\n%s", path, table(t, r))
		}
	}
}

// TestNoBeginning: what stands in the way before the load is an error that says
// what to do.
func TestNoBeginning(t *testing.T) {
	honest := func(h http.Handler) http.Handler { return h }
	for want, spoil := range map[string]func(*rehearsal.Config){
		"making a campaign: unauthenticated":   func(c *rehearsal.Config) { c.AdminKey = "dibs_wrong" },
		"a user's first call: unauthenticated": func(c *rehearsal.Config) { c.JWTSecret = "not the server's" },
		"reading the campaign nowhere":         func(c *rehearsal.Config) { c.Campaign, c.Stock = "nowhere", 0 },
	} {
		cfg := serve(t, honest)
		spoil(&cfg)
		if _, err := rehearsal.Run(t.Context(), cfg); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the error is %v, not %q", err, want)
		}
	}
}

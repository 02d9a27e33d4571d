package remote_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestWatch follows a campaign until Ctrl-C, and until the time is over.
func TestWatch(t *testing.T) {
	env := clitest.Served(t)
	clitest.Run(t, env, "campaign", "watch").Want(t, 1, "no campaign is published")
	clitest.Run(t, env, "campaign", "create", "--id", "w", "--title", "W", "--units", "7", "--ends", "+1h", "--publish").Want(t, 0)
	// On a busy machine the first look may take all of a short time.
	for length, lines := 250*time.Millisecond, 0; lines < 2; length *= 2 {
		r := clitest.Run(t, env, "campaign", "watch", "--for", length.String(), "--every", "100ms")
		r.Want(t, 0, "RATE/S")
		if lines = strings.Count(r.Out, " w "); strings.Contains(r.Out, "\x1b") || lines < 2 && length > clitest.Patience {
			t.Fatalf("%d lines in %s:\n%s", lines, length, r.Out)
		}
	}
	p := clitest.Start(t, env, "campaign", "watch", "w", "--output", "json", "--every", "100ms")
	p.Await(t, p.Out, `(?m)^\{"at":"[^"]+","campaign_id":"w","remaining":7,.*\}$`)
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit code %d after Ctrl-C", code)
	}
	clitest.Run(t, env, "campaign", "watch", "nobody").Want(t, 1, "not_found")
}

// TestWatchCountsGrants: orders that come back unpaid take nothing from how fast others are granted.
func TestWatchCountsGrants(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := calls.Add(1)
		if err := json.NewEncoder(w).Encode(api.StatsView{Granted: 1_000_000 - n, Released: 2 * n}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	p := clitest.Start(t, append(clitest.Secrets, "DIBS_URL="+server.URL), "campaign", "watch", "unpaid", "--every", "100ms", "--output", "json")
	p.Await(t, p.Out, `"granted_per_second":[0-9.]*[1-9]`)
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit code %d after Ctrl-C", code)
	}
}

// TestWatchGoesOn leaves out a campaign that the server cannot tell of, and says so; of one with
// shards away it says how many they are.
func TestWatchGoesOn(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/campaigns/wide/stats", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(api.StatsView{Remaining: 7, Granted: 5, ShardsAway: 3}); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("GET /v1/campaigns/halted/stats", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		if err := json.NewEncoder(w).Encode(api.Problem{Reason: "unavailable", Detail: "it is halted"}); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("GET /v1/campaigns/busy/stats", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		if err := json.NewEncoder(w).Encode(api.Problem{Reason: "rate_limited", Detail: "it is busy", Retryable: true}); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	env := append(clitest.Secrets, "DIBS_URL="+server.URL)
	for _, ids := range [][]string{{"halted", "wide"}, {"wide", "halted"}} {
		p := clitest.Start(t, env, append([]string{"campaign", "watch", "--every", "100ms"}, ids...)...)
		p.Await(t, p.Err, `campaign halted: unavailable: it is halted`)
		p.Await(t, p.Out, `(?s) wide +7 .* 0ms \(without 3 shards\).* wide +7 `)
		if code := p.Stop(t); code != 0 {
			t.Errorf("exit code %d after Ctrl-C", code)
		}
	}
	p := clitest.Start(t, env, "campaign", "watch", "--every", "100ms", "busy", "wide")
	p.Await(t, p.Err, `campaign busy: rate_limited: it is busy`)
	p.Await(t, p.Out, `(?s) wide +7 .* wide +7 `)
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit code %d after Ctrl-C", code)
	}
	clitest.Run(t, env, "campaign", "watch", "wide", "--for", "150ms", "--output", "json").Want(t, 0, `"shards_away":3`)
	clitest.Run(t, env, "campaign", "watch", "halted").Want(t, 1, "it is halted")
	clitest.Run(t, env, "campaign", "watch", "wide", "nobody").Want(t, 1, "nobody")
}

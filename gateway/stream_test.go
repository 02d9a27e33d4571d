package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
)

// event is one server-sent event.
type event struct {
	name, id, retry string
	data            message
}

// events is an open stream.
type events struct {
	resp  *http.Response
	lines *bufio.Scanner
	stop  context.CancelFunc
}

// follow opens a stream of a campaign.
func (r *rig) follow(campaign, lastID string) *events {
	r.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/v1/campaigns/"+campaign+"/events", nil)
	must(r, err)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := http.DefaultClient.Do(req)
	must(r, err)
	e := &events{resp: resp, lines: bufio.NewScanner(resp.Body), stop: stop}
	r.Cleanup(e.close)
	return e
}

func (e *events) close() {
	e.stop()
	_ = e.resp.Body.Close()
}

// next returns the next event.
func (e *events) next(tb testing.TB) event {
	tb.Helper()
	var ev event
	for e.lines.Scan() {
		name, value, _ := strings.Cut(e.lines.Text(), ": ")
		switch name {
		case "event":
			ev.name = value
		case "id":
			ev.id = value
		case "retry":
			ev.retry = value
		case "data":
			must(tb, json.Unmarshal([]byte(value), &ev.data))
		case "":
			if ev.name != "" {
				return ev
			}
			// The chunk had no event in it, but how long to wait, or a sign of life.
			ev = event{}
		}
	}
	tb.Fatalf("the stream ended: %v", e.lines.Err())
	return ev
}

func (e *events) until(tb testing.TB, phase dibs.Phase) event {
	tb.Helper()
	for {
		if ev := e.next(tb); ev.data["phase"] == string(phase) {
			return ev
		}
	}
}

// metrics are the hub's, as the API shows them.
func (r *rig) metrics() string {
	r.Helper()
	resp, err := http.Get(r.url + "/metrics")
	must(r, err)
	raw, err := io.ReadAll(resp.Body)
	must(r, err)
	must(r, resp.Body.Close())
	return string(raw)
}

// A stream tells what happens, and goes on after a node is gone where it was.
func TestStream(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := start(t, gateway.Config{})
	sale := r.sale(1)
	e := r.follow(sale, "")
	if kind := e.resp.Header.Get("Content-Type"); kind != "text/event-stream" || e.resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", e.resp.Header)
	}
	first := e.next(t)
	if first.name != "state" || first.data["phase"] != "open" || first.id == "" || first.id != first.data["mark"] {
		t.Errorf("%v", first)
	}
	_, err := shared.Service.Campaigns.Pause(ctx, sale)
	must(t, err)
	paused := e.until(t, dibs.PhasePaused)
	if paused.name != "paused" {
		t.Errorf("%v", paused)
	}
	r.hub.Close()
	if e.lines.Scan(); e.lines.Scan() {
		t.Errorf("after the end: %q", e.lines.Text())
	}
	// A client that comes with the last id is not told it again, whichever node tells.
	other := start(t, gateway.Config{})
	again := other.follow(sale, paused.id)
	_, err = shared.Service.Campaigns.Resume(ctx, sale)
	must(t, err)
	if ev := again.next(t); ev.name != "resumed" || ev.data["phase"] != "open" {
		t.Errorf("%v", ev)
	}
	// A missed change is told as it is now.
	if ev := other.follow(sale, paused.id).next(t); ev.data["phase"] != "open" {
		t.Errorf("%v", ev)
	}
	if ev := other.follow(sale, "no mark").next(t); ev.data["phase"] != "open" {
		t.Errorf("%v", ev)
	}
	for _, id := range []string{"none", "a%20b"} {
		if got := other.follow(id, ""); got.resp.StatusCode != http.StatusNotFound || got.resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s", id, got.resp.Status)
		}
	}
}

// A stream that is silent for long shows that it lives.
func TestStreamLives(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{Heartbeat: 50 * time.Millisecond})
	e := r.follow(r.sale(1), "")
	for e.lines.Scan() {
		if strings.HasPrefix(e.lines.Text(), ":") {
			return
		}
	}
	t.Error("no sign of life")
}

// A stream on which nothing happens for longer than a write may take goes on, over HTTP/2 too, where a deadline that has
// passed ends a stream by itself.
func TestSilentStreamOverHTTP2(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{Heartbeat: time.Second, WriteWithin: 250 * time.Millisecond})
	server := httptest.NewUnstartedServer(r.handler)
	server.Config, server.EnableHTTP2 = httpapi.NewServer("", r.handler), true
	server.StartTLS()
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/campaigns/"+r.sale(1)+"/events", nil)
	must(t, err)
	resp, err := server.Client().Do(req)
	must(t, err)
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatalf("it is %s", resp.Proto)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), ":") {
			return
		}
	}
	t.Errorf("the stream ended before a sign of life: %v", lines.Err())
}

package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs/gateway"
)

// A claim whose connection dies is decided, and found by sending it again.
func TestConnectionDiesDuringClaim(t *testing.T) {
	t.Parallel()
	h := hold(shared.Claims)
	r := start(t, gateway.Config{Claims: h})
	t.Cleanup(h.release)
	sale := r.sale(1)
	p := r.join("42")
	p.send(message{"type": "claim", "id": "tap", "campaign_id": sale})
	<-h.reached
	must(t, p.ws.CloseNow())
	h.release()
	await(t, "the claim is decided", func() bool { return r.granted(sale) == 1 })
	if m := r.join("42").claim(sale, "tap"); m["outcome"] != "granted" || m["replayed"] != true {
		t.Errorf("%v", m)
	}
}

// A node that stops says so, answers what is under way, takes nothing new, and
// closes with the code for it.
func TestDrain(t *testing.T) {
	t.Parallel()
	h := hold(shared.Claims)
	r := start(t, gateway.Config{Claims: h, DrainWithin: 20 * time.Millisecond})
	t.Cleanup(h.release)
	sale := r.sale(5)
	busy, idle := r.join("42"), r.join("43")
	events := r.follow(sale, "")
	if e := events.next(t); e.name != "state" {
		t.Errorf("%v", e)
	}
	busy.send(message{"type": "claim", "id": "tap", "campaign_id": sale})
	<-h.reached
	drained := make(chan error, 1)
	go func() { drained <- r.hub.Drain(context.Background()) }()
	for _, p := range []*peer{busy, idle} {
		if m := p.next("goaway"); m["within_ms"] != 20.0 || m["reason"] != "restart" {
			t.Errorf("%v", m)
		}
	}
	if e := events.next(t); e.name != "goaway" || e.retry == "" {
		t.Errorf("%v", e)
	}
	if code := idle.ended(); code != websocket.StatusServiceRestart {
		t.Errorf("the idle one was closed with %d", code)
	}
	//nolint:bodyclose // the library has read and closed it
	if ws, resp := r.try("/v1/ws"); ws != nil || resp.StatusCode != 503 {
		t.Errorf("a new connection: %v", resp.Status)
	}
	busy.send(message{"type": "claim", "id": "late", "campaign_id": sale})
	if m := busy.next("result"); m["id"] != "late" || m["outcome"] != "unavailable" || m["effect"] != "unknown" {
		t.Errorf("%v", m)
	}
	select {
	case err := <-drained:
		t.Errorf("drained with a claim under way: %v", err)
	default:
	}
	h.release()
	if m := busy.next("result"); m["id"] != "tap" || m["outcome"] != "granted" {
		t.Errorf("%v", m)
	}
	if code := busy.ended(); code != websocket.StatusServiceRestart {
		t.Errorf("the busy one was closed with %d", code)
	}
	must(t, <-drained)
	if n := r.granted(sale); n != 1 {
		t.Errorf("%d granted", n)
	}
}

// A hub that is closed leaves nothing behind and says what is going on.
func TestClosed(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{})
	p := r.join("42")
	r.hub.Close()
	if code := p.ended(); code != -1 {
		t.Errorf("closed with %d", code)
	}
	//nolint:bodyclose // the library has read and closed it
	if ws, resp := r.try("/v1/ws"); ws != nil || resp.StatusCode != 503 {
		t.Errorf("after the end: %v", resp.Status)
	}
	if _, err := gateway.New(gateway.Config{MaxMessage: 1, MaxPerUser: -1}); err == nil || !strings.Contains(err.Error(), "Claims is") ||
		!strings.Contains(err.Error(), "MaxMessage") || !strings.Contains(err.Error(), "MaxPerUser") {
		t.Errorf("%v", err)
	}
}

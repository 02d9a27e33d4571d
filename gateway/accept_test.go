package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs/gateway"
)

// A user's newest connections count.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{MaxPerUser: 2, MaxConnections: 4})
	first, second, third := r.join("42"), r.join("42"), r.join("42")
	if code := first.ended(); code != gateway.CloseReplaced {
		t.Errorf("closed with %d", code)
	}
	for _, p := range []*peer{second, third} {
		p.send(message{"type": "ping"})
		p.next("pong")
	}
	// The first one's place is free once it is gone.
	await(t, "a place is free", func() bool {
		ws, _ := r.try("/v1/ws") //nolint:bodyclose // an upgraded connection has no body
		return ws != nil
	})
	await(t, "the node is full", func() bool {
		ws, resp := r.try("/v1/ws") //nolint:bodyclose // the library has read and closed it
		return ws == nil && resp.StatusCode == 503 && resp.Header.Get("Retry-After") != ""
	})
}

// A client that gives no sign of life is cut.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{Heartbeat: 50 * time.Millisecond, ReplyWithin: 10 * time.Second})
	r.mute("42")
	answering := r.join("43")
	read := make(chan websocket.StatusCode, 1)
	go func() { read <- answering.ended() }()
	await(t, "the silent one is cut", func() bool {
		m := r.metrics()
		return strings.Contains(m, `cause="silent"} `) && !strings.Contains(m, `cause="silent"} 0`)
	})
	select {
	case code := <-read:
		t.Errorf("the one that answers was closed with %d", code)
	default:
	}
	must(t, answering.ws.CloseNow())
	<-read
}

package gateway_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"

	"github.com/dibs-dev/dibs/gate"
)

// Who sends faster than may be hears so, and when it goes on is cut. Claims
// beyond those under way are not begun.
func TestTooMuchAtOnce(t *testing.T) {
	t.Parallel()
	h := hold(shared.Claims)
	r := start(t, gateway.Config{Claims: h, MessageRate: 1, MessageBurst: 5, MaxInFlight: 2, MaxSubscriptions: 1})
	t.Cleanup(h.release)
	sale, second := r.sale(10), r.sale(1)
	p := r.join("42")
	p.send(message{"type": "claim", "id": "a", "campaign_id": sale})
	p.send(message{"type": "claim", "id": "b", "campaign_id": sale})
	<-h.reached
	<-h.reached
	// The same tap again is answered with the first one.
	p.send(message{"type": "claim", "id": "a", "campaign_id": sale})
	p.send(message{"type": "claim", "id": "c", "campaign_id": sale})
	if m := p.next("result"); m["id"] != "c" || m["outcome"] != "rate_limited" || m["code"] != 30011.0 || m["retry_after_ms"] == 0.0 {
		t.Errorf("%v", m)
	}
	// The rate is used up by now.
	p.send(message{"type": "ping", "id": "p"})
	if m := p.next("error"); m["id"] != "p" || m["reason"] != "rate_limited" {
		t.Errorf("%v", m)
	}
	for range 20 {
		p.send(message{"type": "claim", "id": "d", "campaign_id": sale})
	}
	answers := map[string]int{}
	var code websocket.StatusCode
	for {
		m, err := p.read()
		if err != nil {
			code = websocket.CloseStatus(err)
			break
		}
		answers[m["reason"].(string)]++
	}
	if code != gateway.CloseTooFast || answers["rate_limited"] < 2 || len(answers) != 1 {
		t.Errorf("closed with %d after %v", code, answers)
	}
	h.release()
	await(t, "both claims are decided", func() bool { return r.granted(sale) == 1 })
	q := r.join("43")
	for i, want := range []string{"subscribed", "campaign", "subscribed", "error"} {
		if i%2 == 0 {
			q.send(message{"type": "subscribe", "campaign_id": sale})
		}
		if i == 3 {
			q.send(message{"type": "subscribe", "campaign_id": second})
		}
		if m := q.next(want); want == "error" && m["reason"] != "rate_limited" {
			t.Errorf("%v", m)
		}
	}
}

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

// mute opens a WebSocket by hand and reads nothing from it after the handshake.
func (r *rig) mute(user string) net.Conn {
	r.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	must(r, err)
	r.Cleanup(func() { _ = conn.Close() })
	must(r, conn.(*net.TCPConn).SetReadBuffer(1<<10))
	_, err = conn.Write([]byte("GET /v1/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"))
	must(r, err)
	r.frame(conn, `{"type":"auth","token":"dev_`+user+`"}`)
	return conn
}

// frame writes a text frame under a mask of zeros.
func (r *rig) frame(conn net.Conn, text string) {
	head := []byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}
	if len(text) > 125 {
		head = []byte{0x81, 0x80 | 126, byte(len(text) >> 8), byte(len(text)), 0, 0, 0, 0}
	}
	_, err := conn.Write(append(head, text...))
	must(r, err)
}

// Who does not read is cut, and nobody else notices.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{WriteWithin: 100 * time.Millisecond, MaxQueued: 8, Heartbeat: time.Hour})
	sale := r.sale(5)
	well := r.join("43")
	slow := r.mute("42")
	gone := func() bool { return strings.Contains(r.metrics(), `cause="slow"} 1`) }
	await(t, "the slow one is there", func() bool { return strings.Contains(r.metrics(), `kind="websocket"} 2`) })
	long := []byte(`{"type":"note","text":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range 20 {
		r.hub.Tell("42", long)
	}
	await(t, "the slow one is cut", gone)
	_ = slow
	if m := well.claim(sale, "tap"); m["outcome"] != "granted" {
		t.Errorf("%v", m)
	}
}

// Who gives no sign of life is cut.
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

// Places in a waiting room are told when they change, and nobody else's.
func TestPlaces(t *testing.T) {
	t.Parallel()
	var at atomic.Int64
	at.Store(3)
	r := start(t, gateway.Config{PlaceEvery: 20 * time.Millisecond, Glance: func(_ *dibs.Campaign, user string) (gate.PlaceView, bool) {
		n := at.Load()
		if user != "42" {
			return gate.PlaceView{}, false
		}
		if n == 0 {
			return gate.PlaceView{State: gate.PlaceAdmitted, Place: 3, Admission: "let me in", AskAfter: dibs.Duration(time.Hour)}, true
		}
		return gate.PlaceView{State: gate.PlaceWaiting, Place: 3, Position: n}, true
	}})
	sale := r.queued()
	p := r.join("42")
	p.send(message{"type": "subscribe", "campaign_id": sale})
	p.next("subscribed")
	p.next("campaign")
	for want := int64(3); want > 0; want-- {
		if m := p.next("position"); m["position"] != float64(want) || m["state"] != "waiting" || m["campaign_id"] != sale || m["admission"] != nil {
			t.Errorf("position %d: %v", want, m)
		}
		at.Store(want - 1)
	}
	if m := p.next("position"); m["state"] != "admitted" || m["admission"] != "let me in" {
		t.Errorf("%v", m)
	}
}

// queued publishes a sale with a waiting room.
func (r *rig) queued() string {
	r.Helper()
	ctx := context.Background()
	id, units := fmt.Sprintf("c%d", campaigns.Add(1)), int64(5)
	_, err := shared.Service.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: time.Now().Add(time.Hour), EndsAt: time.Now().Add(2 * time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Gate: &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 10}},
	})
	must(r, err)
	_, err = shared.Service.Campaigns.Publish(ctx, id)
	must(r, err)
	return id
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

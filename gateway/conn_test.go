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

// A client that sends too fast is told so, and is cut when it goes on. Claims
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
	// The rate is used up by now, or soon: on a slow machine some of it came back.
	for n := 0; ; n++ {
		p.send(message{"type": "ping", "id": "p"})
		m, err := p.read()
		must(t, err)
		if m["type"] == "pong" && n < 20 {
			continue
		}
		if m["type"] != "error" || m["id"] != "p" || m["reason"] != "rate_limited" {
			t.Errorf("%v", m)
		}
		break
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

// A client that does not read is cut, and nobody else notices.
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
	// The first position may come before the campaign.
	campaign := false
	position := func() message {
		m, err := p.read()
		must(t, err)
		if m["type"] == "campaign" && !campaign {
			campaign = true
			m = p.next("position")
		}
		if m["type"] != "position" {
			t.Fatalf("want a position, have %v", m)
		}
		return m
	}
	for want := int64(3); want > 0; want-- {
		if m := position(); m["position"] != float64(want) || m["state"] != "waiting" || m["campaign_id"] != sale || m["admission"] != nil {
			t.Errorf("position %d: %v", want, m)
		}
		at.Store(want - 1)
	}
	if m := position(); m["state"] != "admitted" || m["admission"] != "let me in" {
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

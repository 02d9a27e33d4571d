package gateway_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// A user with a long-lived connection is told where they wait, and gets what their
// claim has to carry.
func TestPositionsOverTheGateway(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	hub, err := gateway.Open(r.Node, gateway.Config{PlaceEvery: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(r.Node.Service), Places: r.Node.Rooms, AllowDevTokens: true, Gateway: hub})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	spec := r.Sale("phone", 15)
	spec.Gate = &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Per: dibs.Duration(time.Hour), Burst: 1}}
	r.Publish(spec)
	c, err := r.Node.Live.Registry.Get(t.Context(), "phone")
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "bob"} {
		if _, err := r.Node.Rooms.Join(t.Context(), c, user); err != nil {
			t.Fatal(err)
		}
	}
	heard := func(user string) (state string, place float64, admission string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ws, _, err := websocket.Dial(ctx, strings.Replace(server.URL, "http", "ws", 1)+"/v1/ws", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ws.CloseNow() }()
		for _, m := range []map[string]any{{"type": "auth", "token": "dev_" + user}, {"type": "subscribe", "campaign_id": "phone"}} {
			if err := wsjson.Write(ctx, ws, m); err != nil {
				t.Fatal(err)
			}
		}
		for {
			var m map[string]any
			if err := wsjson.Read(ctx, ws, &m); err != nil {
				t.Fatalf("%s hears no position: %v", user, err)
			}
			if m["type"] == "position" {
				admission, _ = m["admission"].(string)
				return m["state"].(string), m["place"].(float64), admission
			}
		}
	}
	state, place, admission := heard("ann")
	if place != 1 || state != "admitted" || admission == "" {
		t.Errorf("the first hears place %v, %s, admission %q", place, state, admission)
	}
	res, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "ann", Admission: admission})
	if err != nil || res.Outcome != dibs.Granted {
		t.Errorf("%s, %v", res.Outcome, err)
	}
	if state, place, admission := heard("bob"); place != 2 || state != "waiting" || admission != "" {
		t.Errorf("the second hears place %v, %s, admission %q", place, state, admission)
	}
}

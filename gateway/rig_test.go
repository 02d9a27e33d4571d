package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/node"
)

// shared is the one dibs of all tests here; each has its own hub and campaigns.
var shared *node.Node

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "dibs-gateway-")
		if err == nil {
			shared, err = node.Open(context.Background(), node.Config{Dir: dir, Migrate: true})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := shared.Close(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if err := leaks.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return code
	}())
}

// patience is how long anything may take on a machine that does much else.
const patience = 30 * time.Second

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// rig is a hub behind HTTP.
type rig struct {
	testing.TB
	hub     *gateway.Hub
	handler http.Handler
	url     string
}

// start starts a hub; cfg.Claims may wrap the node's.
func start(tb testing.TB, cfg gateway.Config) *rig {
	tb.Helper()
	return startOn(tb, shared, cfg)
}

func startOn(tb testing.TB, n *node.Node, cfg gateway.Config) *rig {
	tb.Helper()
	if cfg.Claims == nil {
		cfg.Claims = n.Claims
	}
	cfg.Snapshots = n.Live.Snapshots
	hub, err := gateway.New(cfg)
	must(tb, err)
	tb.Cleanup(hub.Close)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(n.Service), JWTSecret: []byte("a secret of at least 32 bytes ..."), AllowDevTokens: true, Gateway: hub, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	must(tb, err)
	server := httptest.NewUnstartedServer(h)
	server.Config = httpapi.NewServer("", h)
	server.Start()
	tb.Cleanup(server.Close)
	tb.Cleanup(http.DefaultClient.CloseIdleConnections)
	return &rig{TB: tb, hub: hub, handler: h, url: server.URL}
}

var campaigns atomic.Int64

// sale publishes a sale that runs now and returns its id.
func (r *rig) sale(units int64) string {
	r.Helper()
	return r.saleAt(shared, units, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
}

func (r *rig) saleAt(n *node.Node, units int64, from, to time.Time) string {
	r.Helper()
	id := fmt.Sprintf("c%d", campaigns.Add(1))
	_, err := n.Service.Campaigns.Create(context.Background(), dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: "Sale " + id, StartsAt: from, EndsAt: to, Stock: dibs.StockSpec{Units: &units},
	})
	must(r, err)
	_, err = n.Service.Campaigns.Publish(context.Background(), id)
	must(r, err)
	return id
}

// granted is how many units of a campaign are granted.
func (r *rig) granted(id string) int64 {
	r.Helper()
	st, err := shared.Service.Stats(context.Background(), id)
	must(r, err)
	return st.Granted
}

// peer is a WebSocket client that does nothing by itself.
type peer struct {
	*rig
	ws *websocket.Conn
}

// message is a message as it came.
type message map[string]any

// dial opens a WebSocket without a token.
func (r *rig) dial(headers ...string) *peer {
	r.Helper()
	ws, resp := r.try("/v1/ws", headers...)
	if ws == nil {
		r.Fatalf("no WebSocket: %s", resp.Status)
	}
	return &peer{rig: r, ws: ws}
}

// try opens a WebSocket, or returns how that was refused.
func (r *rig) try(path string, headers ...string) (*websocket.Conn, *http.Response) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	ws, resp, err := websocket.Dial(ctx, r.url+path, &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		if resp == nil {
			r.Fatal(err)
		}
		return nil, resp
	}
	r.Cleanup(func() { _ = ws.CloseNow() })
	ws.SetReadLimit(1 << 20)
	return ws, resp
}

// join opens a WebSocket as a user.
func (r *rig) join(user string, headers ...string) *peer {
	r.Helper()
	p := r.dial(headers...)
	p.send(message{"type": "auth", "token": "dev_" + user})
	if w := p.next("welcome"); w["user_id"] != user {
		r.Fatalf("welcome %v", w)
	}
	return p
}

func (p *peer) send(m message) {
	p.Helper()
	raw, err := json.Marshal(m)
	must(p, err)
	p.sendRaw(websocket.MessageText, raw)
}

func (p *peer) sendRaw(kind websocket.MessageType, raw []byte) {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must(p, p.ws.Write(ctx, kind, raw))
}

// read returns the next message, or the error that ended the connection.
func (p *peer) read() (message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, raw, err := p.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	var m message
	return m, json.Unmarshal(raw, &m)
}

// next returns the next message, which is of a type.
func (p *peer) next(kind string) message {
	p.Helper()
	m, err := p.read()
	if err != nil {
		p.Fatalf("waiting for %s: %v", kind, err)
	}
	if m["type"] != kind {
		p.Fatalf("want %s, have %v", kind, m)
	}
	return m
}

// until reads until a campaign message has a phase.
func (p *peer) until(phase dibs.Phase) message {
	p.Helper()
	for {
		if m := p.next("campaign"); m["phase"] == string(phase) {
			return m
		}
	}
}

// ended reads until the connection ends and returns its close code, -1 when it
// was cut.
func (p *peer) ended() websocket.StatusCode {
	for {
		if _, err := p.read(); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func (p *peer) claim(campaign, id string) message {
	p.Helper()
	p.send(message{"type": "claim", "id": id, "campaign_id": campaign})
	m := p.next("result")
	if m["id"] != id || m["campaign_id"] != campaign {
		p.Fatalf("the answer to %s of %s is %v", id, campaign, m)
	}
	return m
}

// await waits until a condition holds.
func await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			tb.Fatalf("%s: not in %v", what, patience)
		}
		<-tick.C
	}
}

// held is a service whose claims wait until they are let go.
type held struct {
	gateway.Claims
	reached chan string
	free    chan struct{}
	once    sync.Once
}

func hold(c gateway.Claims) *held {
	return &held{Claims: c, reached: make(chan string, 100), free: make(chan struct{})}
}

func (h *held) Claim(ctx context.Context, req dibs.ClaimRequest) (dibs.Result, error) {
	h.reached <- req.Key
	<-h.free
	return h.Claims.Claim(ctx, req)
}

func (h *held) release() { h.once.Do(func() { close(h.free) }) }

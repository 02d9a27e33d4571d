package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/tokens"
)

// secrets are the tokens that are good, of which some stop to be.
type secrets struct {
	mu    sync.Mutex
	good  map[string]bool
	epoch atomic.Uint64
}

func (s *secrets) check(_ context.Context, token string) (tokens.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, _, _ := strings.Cut(token, ":")
	if !s.good[token] {
		return tokens.Token{}, dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the token is not valid"})
	}
	return tokens.Token{User: user, ID: token, Until: time.Now().Add(time.Hour)}, nil
}

// become makes these the only good ones.
func (s *secrets) become(tokens ...string) {
	s.mu.Lock()
	s.good = map[string]bool{}
	for _, token := range tokens {
		s.good[token] = true
	}
	s.mu.Unlock()
	s.epoch.Add(1)
}

// A change of secrets ends the connections whose tokens are good no more, with the
// code that asks for another token, and no others; a ticket does not say by which
// token it was got.
func TestTokensAreCheckedAgain(t *testing.T) {
	s := &secrets{}
	s.become("ann:old", "ann:new", "bob:new")
	hub, err := gateway.New(gateway.Config{Claims: shared.Claims, Snapshots: shared.Live.Snapshots, Epoch: s.epoch.Load, Heartbeat: 20 * time.Millisecond, ReplyWithin: patience})
	must(t, err)
	t.Cleanup(hub.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := hub.WebSocket(w, r, s.check, dibs.Visitor{}); err != nil {
			p := web.ProblemOf(err)
			w.WriteHeader(p.StatusCode())
		}
	}))
	t.Cleanup(server.Close)
	r := &rig{TB: t, hub: hub, url: server.URL}
	as := func(token string) *peer {
		p := r.dial()
		p.send(message{"type": "auth", "token": token})
		p.next("welcome")
		return p
	}
	old, renewed, bob := as("ann:old"), as("ann:old"), as("bob:new")
	// A client that has sent another token meanwhile is judged by that one.
	renewed.send(message{"type": "auth", "token": "ann:new"})
	renewed.next("welcome")
	ticket, _, err := hub.Ticket(t.Context(), tokens.Token{User: "cid", Until: time.Now().Add(time.Hour)})
	must(t, err)
	ws, _ := r.try("/v1/ws?ticket=" + ticket)
	cid := &peer{rig: r, ws: ws}
	cid.next("welcome")

	s.become("ann:new", "bob:new")
	for name, p := range map[string]*peer{"the token that was taken away": old, "a ticket": cid} {
		if m := p.next("error"); m["reason"] != "unauthenticated" {
			t.Errorf("%s: %v", name, m)
		}
		if code := p.ended(); code != gateway.CloseUnauthenticated {
			t.Errorf("%s: closed with %d", name, code)
		}
	}
	for name, p := range map[string]*peer{"the renewed one": renewed, "another's": bob} {
		p.send(message{"type": "ping", "id": "1"})
		if m := p.next("pong"); m["id"] != "1" {
			t.Errorf("%s: %v", name, m)
		}
	}
}

// A ticket that was made before a change of secrets opens nothing after it, on any node; one that was made after it does.
// Of the tickets of an older version, which do not say when they were made, none is good for the life of one.
func TestTicketsFromBeforeAChange(t *testing.T) {
	var clock atomic.Int64
	clock.Store(time.Now().UnixMilli())
	pass := func(d time.Duration) { clock.Add(d.Milliseconds()) }
	now := func() time.Time { return time.UnixMilli(clock.Load()) }
	var epoch atomic.Uint64
	tickets := gateway.NewMemoryTickets(now)
	start := func() *rig {
		hub, err := gateway.New(gateway.Config{Claims: shared.Claims, Snapshots: shared.Live.Snapshots, Tickets: tickets, Epoch: epoch.Load, Now: now})
		must(t, err)
		t.Cleanup(hub.Close)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := hub.WebSocket(w, r, (&secrets{}).check, dibs.Visitor{}); err != nil {
				p := web.ProblemOf(err)
				w.WriteHeader(p.StatusCode())
			}
		}))
		t.Cleanup(server.Close)
		return &rig{TB: t, hub: hub, url: server.URL}
	}
	here, there := start(), start()
	made := func() string {
		ticket, _, err := there.hub.Ticket(t.Context(), tokens.Token{User: "cid"})
		must(t, err)
		return ticket
	}
	madeByOlder := func() string {
		must(t, tickets.Put(t.Context(), "OLD", "0 cid", 30*time.Second))
		return "OLD"
	}
	opens := func(what, ticket string, want bool) {
		t.Helper()
		ws, resp := here.try("/v1/ws?ticket=" + ticket)
		if (ws != nil) != want || ws == nil && resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: opened %v, %v", what, ws != nil, resp)
		}
	}
	opens("a ticket", made(), true)
	opens("one of an older version", madeByOlder(), true)
	before, older := made(), madeByOlder()
	epoch.Add(1)
	opens("one from before the change", before, false)
	opens("one of an older version, from before", older, false)
	pass(time.Millisecond)
	opens("one from after the change", made(), true)
	opens("one of an older version, in the time of a ticket after it", madeByOlder(), false)
	pass(31 * time.Second)
	opens("one of an older version, later", madeByOlder(), true)
	opens("one from long after the change", made(), true)
}

// An address has no more connections than it may have; others, this machine, and
// who goes, make room.
func TestConnectionsPerAddress(t *testing.T) {
	r := start(t, gateway.Config{MaxPerAddress: 2})
	id := r.sale(1)
	from := func(address string) []string { return []string{"X-Forwarded-For", address} }
	first, _ := r.try("/v1/ws", from("192.0.2.7")...)
	r.join("ann", from("192.0.2.7")...)
	refused := func(path, address string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
		must(t, err)
		req.Header.Set("X-Forwarded-For", address)
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		} {
			if path == "/v1/ws" {
				req.Header.Set(name, value)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		if err := resp.Body.Close(); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || err != nil {
			t.Errorf("%s from %s: %s, Retry-After %q, %v", path, address, resp.Status, resp.Header.Get("Retry-After"), err)
		}
	}
	refused("/v1/ws", "192.0.2.7")
	refused("/v1/campaigns/"+id+"/events", "192.0.2.7")
	r.join("bob", from("192.0.2.8")...)
	// A /64 is one address.
	r.join("cid", from("2001:db8::1")...)
	r.join("cid", from("2001:db8::2")...)
	refused("/v1/ws", "2001:db8::3")
	r.join("dan", from("2001:db8:0:1::1")...)
	// A /48 has eight times as many, over all of its networks.
	for i := range 8*2 - 3 {
		r.join("fay", from(fmt.Sprintf("2001:db8:0:%x::1", i+2))...)
	}
	refused("/v1/ws", "2001:db8:0:ff::1")
	refused("/v1/campaigns/"+id+"/events", "2001:db8:0:fe::1")
	r.join("gil", from("2001:db8:1::1")...)
	for range 3 {
		r.join("eve")
	}
	must(t, errors.Join(first.CloseNow()))
	await(t, "there is room again", func() bool {
		ws, _ := r.try("/v1/ws", from("192.0.2.7")...)
		return ws != nil
	})
	refused("/v1/ws", "192.0.2.7")
}

// A revocation ends the connections, by token and by ticket, and a claim over one of them is
// refused before the next look at it.
func TestRevokedConnections(t *testing.T) {
	var revoked sync.Map
	s := &secrets{}
	s.become("ann:1", "bob:1")
	hub, err := gateway.New(gateway.Config{
		Claims: shared.Claims, Snapshots: shared.Live.Snapshots, Heartbeat: time.Minute, ReplyWithin: patience,
		Revoked: func(user, id string, _ time.Time) bool {
			_, byUser := revoked.Load(user)
			_, byID := revoked.Load(id)
			return byUser || byID
		},
	})
	must(t, err)
	t.Cleanup(hub.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := hub.WebSocket(w, r, s.check, dibs.Visitor{}); err != nil {
			p := web.ProblemOf(err)
			w.WriteHeader(p.StatusCode())
		}
	}))
	t.Cleanup(server.Close)
	r := &rig{TB: t, hub: hub, url: server.URL}
	campaign := r.sale(9)
	as := func(token string) *peer {
		p := r.dial()
		p.send(message{"type": "auth", "token": token})
		p.next("welcome")
		return p
	}
	ann, bob := as("ann:1"), as("bob:1")
	ticket := func() string {
		name, _, err := hub.Ticket(t.Context(), tokens.Token{User: "cid", ID: "cid's", Issued: time.Now()})
		must(t, err)
		return name
	}
	ws, _ := r.try("/v1/ws?ticket=" + ticket())
	cid, late := &peer{rig: r, ws: ws}, ticket()
	cid.next("welcome")
	revoked.Store("ann:1", true)
	revoked.Store("cid's", true)
	for name, p := range map[string]*peer{"by its token": ann, "by its ticket": cid} {
		p.send(message{"type": "claim", "id": "1", "campaign_id": campaign})
		if m := p.next("error"); m["reason"] != "unauthenticated" {
			t.Errorf("%s: %v", name, m)
		}
		if code := p.ended(); code != gateway.CloseUnauthenticated {
			t.Errorf("%s: closed with %d", name, code)
		}
	}
	if ws, resp := r.try("/v1/ws?ticket=" + late); ws != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a ticket of a revoked token: %v", resp)
	}
	bob.send(message{"type": "claim", "id": "1", "campaign_id": campaign})
	if m := bob.next("result"); m["outcome"] != "granted" {
		t.Errorf("another's claim: %v", m)
	}
}

// slowTurn lets claims wait until the end of a token.
type slowTurn struct{ until func() time.Time }

func (s slowTurn) Enter(context.Context, *dibs.ClaimRequest) (dibs.Result, bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !time.Now().After(s.until()) {
		<-tick.C
	}
	return dibs.Result{}, true
}

// A token that ends while a claim waits for its turn claims nothing over a WebSocket either.
func TestTokenThatEndsWhileAClaimWaits(t *testing.T) {
	// The token begins when somebody signs in.
	until := sync.OnceValue(func() time.Time { return time.Now().Add(2 * time.Second) })
	hub, err := gateway.New(gateway.Config{Claims: shared.Claims, Snapshots: shared.Live.Snapshots, Limits: slowTurn{until}, Heartbeat: time.Minute, ReplyWithin: patience})
	must(t, err)
	t.Cleanup(hub.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		check := func(context.Context, string) (tokens.Token, error) {
			return tokens.Token{User: "dan", Until: until()}, nil
		}
		if err := hub.WebSocket(w, r, check, dibs.Visitor{}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	r := &rig{TB: t, hub: hub, url: server.URL}
	campaign := r.sale(9)
	p := r.dial()
	p.send(message{"type": "auth", "token": "x"})
	p.next("welcome")
	p.send(message{"type": "claim", "id": "1", "campaign_id": campaign})
	// The connection's token ends at the same moment: that may be said first, and end the
	// connection before the claim is answered.
	m, err := p.read()
	if err != nil || m["type"] == "result" && m["outcome"] != "unauthenticated" || m["type"] == "error" && m["reason"] != "unauthenticated" {
		t.Errorf("%v, %v", m, err)
	}
	p.ended()
	if st, err := shared.Live.Snapshots.Get(t.Context(), campaign); err != nil || st.Remaining != 9 {
		t.Errorf("%d of 9 are left: %v", st.Remaining, err)
	}
}

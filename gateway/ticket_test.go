package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/tokens"
)

// A ticket opens one connection, once.
func TestTicket(t *testing.T) {
	t.Parallel()
	r := start(t, gateway.Config{})
	ticket := func(token string) (int, string) {
		req, err := http.NewRequest(http.MethodPost, r.url+"/v1/ws-tickets", nil)
		must(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		raw, err := io.ReadAll(resp.Body)
		must(t, err)
		must(t, resp.Body.Close())
		var v struct {
			Ticket string `json:"ticket"`
		}
		must(t, json.Unmarshal(raw, &v))
		if resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("a ticket may be kept by %q", resp.Header.Get("Cache-Control"))
		}
		return resp.StatusCode, v.Ticket
	}
	if status, _ := ticket(""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	status, one := ticket("dev_42")
	if status != http.StatusCreated || len(one) < 20 {
		t.Fatalf("%d, ticket %q", status, one)
	}
	if _, two := ticket("dev_42"); two == one {
		t.Error("the same ticket twice")
	}
	ws, _ := r.try("/v1/ws?ticket=" + one) //nolint:bodyclose // an upgraded connection has no body
	p := &peer{rig: r, ws: ws}
	if w := p.next("welcome"); w["user_id"] != "42" {
		t.Errorf("%v", w)
	}
	for path, status := range map[string]int{
		"/v1/ws?ticket=" + one:                         http.StatusUnauthorized,
		"/v1/ws?ticket=none":                           http.StatusUnauthorized,
		"/v1/ws?ticket=" + strings.Repeat("x", 1000):   http.StatusUnauthorized,
		"/v1/ws?token=dev_42":                          http.StatusBadRequest,
		"/v1/ws?access_token=eyJ.x.y&ticket=something": http.StatusBadRequest,
	} {
		ws, resp := r.try(path) //nolint:bodyclose // the library has read and closed it
		if ws != nil || resp.StatusCode != status || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.40s: %v", path, resp.Status)
		}
	}
	resp, err := http.Get(r.url + "/v1/ws")
	must(t, err)
	must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without an upgrade: %s", resp.Status)
	}
}

// One user gets some tickets at a time, and leaves those of others alone; a store that is
// full is searched once a second, not at each ticket.
func TestTicketsAreShared(t *testing.T) {
	// The hub looks at the clock by itself, too.
	var at atomic.Int64
	at.Store(1000)
	clock := func() time.Time { return time.Unix(at.Load(), 0) }
	hub, err := gateway.New(gateway.Config{Claims: struct{ gateway.Claims }{}, Snapshots: struct{ gateway.Snapshots }{}, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	ask := func(user string) error { _, _, err := hub.Ticket(t.Context(), tokens.Token{User: user}); return err }
	for i := range 20 {
		if err := ask("greedy"); err != nil {
			t.Fatalf("ticket %d: %v", i, err)
		}
	}
	var refusal *dibs.Error
	if err := ask("greedy"); !errors.As(err, &refusal) || refusal.Reason != dibs.RateLimited || refusal.RetryAfter != 30*time.Second {
		t.Errorf("the 21st ticket: %v", err)
	}
	if err := ask("42"); err != nil {
		t.Errorf("another user's: %v", err)
	}
	at.Add(30)
	if err := ask("greedy"); err != nil {
		t.Errorf("later: %v", err)
	}

	m := gateway.NewMemoryTickets(clock)
	for i := range 100_000 {
		if err := m.Put(t.Context(), strconv.Itoa(i), "", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	for range 100_000 {
		if err := m.Put(t.Context(), "one more", "", time.Minute); !errors.Is(err, dibs.ErrOverloaded) {
			t.Fatal(err)
		}
	}
	// A search of all takes a millisecond: of each Put it would be minutes.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("100,000 refusals took %s", took)
	}
	at.Add(60)
	if err := m.Put(t.Context(), "one more", "", time.Minute); err != nil {
		t.Errorf("when the others expired: %v", err)
	}
}

// Tickets end by themselves.
func TestTicketsExpire(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := gateway.NewMemoryTickets(func() time.Time { return now })
	ctx := context.Background()
	must(t, m.Put(ctx, "a", "1", time.Second))
	must(t, m.Put(ctx, "b", "2", 3*time.Second))
	now = now.Add(2 * time.Second)
	if _, ok, err := m.Take(ctx, "a"); ok || err != nil {
		t.Error("a ticket outlived its time")
	}
	if v, ok, err := m.Take(ctx, "b"); v != "2" || !ok || err != nil {
		t.Errorf("%q %t %v", v, ok, err)
	}
	if _, ok, _ := m.Take(ctx, "b"); ok {
		t.Error("a ticket was taken twice")
	}
}

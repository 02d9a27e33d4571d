package sinks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events/sinks"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/events"
)

// patience bounds every wait of these tests.
const patience = time.Minute

func TestMain(m *testing.M) {
	if dir := os.Getenv(dyingDir); dir != "" {
		fmt.Println(die(dir, os.Getenv(dyingSink), os.Getenv(dyingStep)))
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(servers.StopAll(), leaks.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// shop is a node with a campaign that has begun.
type shop struct {
	t    testing.TB
	node *node.Node
}

// openShop opens a node in a folder, with sinks, and makes the campaign when
// it is new.
func openShop(t testing.TB, dir string, addresses ...string) *shop {
	t.Helper()
	nd, err := openNode(t.Context(), dir, sinks.Config{Sinks: addresses, Poll: 5 * time.Millisecond, Lease: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, node: nd}
	t.Cleanup(s.close)
	return s
}

func openNode(ctx context.Context, dir string, ev sinks.Config) (*node.Node, error) {
	nd, err := node.Open(ctx, node.Config{
		Dir: dir, Events: ev, Service: node.ServiceConfig{SettleEvery: time.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	_, err = nd.Service.Live.Registry.Get(ctx, "noon")
	if errors.Is(err, dibs.ErrNotFound) {
		pay := dibs.Duration(time.Hour)
		units := int64(100_000)
		_, err = nd.Service.Campaigns.Create(ctx, dibs.CampaignSpec{
			ID: "noon", Kind: dibs.Sale, Title: "Phones at noon", Stock: dibs.StockSpec{Units: &units}, PayWithin: &pay,
			Price: &dibs.Money{Amount: 100, Currency: "CNY"}, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		})
		if err == nil {
			_, err = nd.Service.Campaigns.Publish(ctx, "noon")
		}
	}
	if err != nil {
		return nil, errors.Join(err, nd.Close(ctx))
	}
	return nd, nil
}

// close closes the node; twice is no harm.
func (s *shop) close() {
	if s.node == nil {
		return
	}
	if err := s.node.Close(context.Background()); err != nil {
		s.t.Error(err)
	}
	s.node = nil
}

// buy claims for n users and takes each claim further: every second one is paid
// and shipped, the others are cancelled. It returns the ids of the claims.
func buy(ctx context.Context, nd *node.Node, prefix string, n int) ([]string, error) {
	var ids []string
	for i := range n {
		r, err := nd.Service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "noon", UserID: fmt.Sprintf("%s-%d", prefix, i)})
		if err != nil || r.Claim == nil {
			return nil, fmt.Errorf("claim %d: %v, %w", i, r.Outcome, err)
		}
		ids = append(ids, r.Claim.ID)
		if i%2 == 1 {
			if _, _, err := nd.Service.Orders.Cancel(ctx, r.Claim.ID, "", ""); err != nil {
				return nil, err
			}
			continue
		}
		if _, _, err := nd.Service.Orders.Confirm(ctx, r.Claim.ID, dibs.PaymentSpec{
			Amount: &dibs.Money{Amount: 100, Currency: "CNY"}, PaymentRef: "pay-" + r.Claim.ID,
		}); err != nil {
			return nil, err
		}
		if _, _, err := nd.Service.Orders.Ship(ctx, r.Claim.ID, dibs.ShipmentSpec{Carrier: "SF", TrackingNo: "1"}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (s *shop) buy(prefix string, n int) []string {
	s.t.Helper()
	ids, err := buy(s.t.Context(), s.node, prefix, n)
	if err != nil {
		s.t.Fatal(err)
	}
	return ids
}

// wanted are the events of claims that buy made, in order for each claim.
func wanted(ids []string) map[string][]string {
	all := map[string][]string{}
	for i, id := range ids {
		all[id] = []string{"claim.granted", "claim.confirmed", "claim.shipped"}
		if i%2 == 1 {
			all[id] = []string{"claim.granted", "claim.cancelled"}
		}
	}
	return all
}

// tally checks what a sink got: nothing missing, nothing else, order kept, and
// whatever came twice was the same.
type tally struct {
	t      testing.TB
	want   map[string][]string
	left   int
	seen   map[string]string
	next   map[string]int
	twice  int
	events map[string]events.Event
}

func newTally(t testing.TB, ids []string) *tally {
	w := &tally{t: t, want: wanted(ids), seen: map[string]string{}, next: map[string]int{}, events: map[string]events.Event{}}
	for _, types := range w.want {
		w.left += len(types)
	}
	return w
}

// take notes one message and reports whether all have come.
func (w *tally) take(id, body string) bool {
	w.t.Helper()
	var e events.Event
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		w.t.Fatalf("%q: %v", body, err)
	}
	if e.ID != id || e.SpecVersion != "1.0" || e.Source != "/dibs" || e.DataContentType != "application/json" || e.Time.IsZero() {
		w.t.Errorf("the message %s has the event %+v", id, e)
	}
	types, ours := w.want[e.Subject]
	if !ours {
		return w.left == 0
	}
	if before, again := w.seen[id]; again {
		w.twice++
		if before != body {
			w.t.Errorf("the event %s came again and was another:\n%s\n%s", id, before, body)
		}
		return w.left == 0
	}
	w.seen[id], w.events[id] = body, e
	n := w.next[e.Subject]
	if n >= len(types) || e.Type != events.EventTypePrefix+types[n] || id != fmt.Sprintf("%s.%d", e.Subject, n) {
		w.t.Errorf("the event %d of claim %s is %s, %s; want one of %v", n, e.Subject, id, e.Type, types)
	}
	w.next[e.Subject]++
	w.left--
	return w.left == 0
}

// await tries until it is true.
func await(t testing.TB, what string, try func() bool) {
	t.Helper()
	over := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !try() {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%s does not happen", what)
		}
	}
}

// sinkState returns a sink of a node.
func (s *shop) sinkState(name string) events.SinkView {
	s.t.Helper()
	sinks, err := s.node.Service.Events.Sinks(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range sinks {
		if v.Name == name {
			return v
		}
	}
	return events.SinkView{}
}

// folder is a new folder for a node.
func folder(t testing.TB) string { return filepath.Join(t.TempDir(), "node") }

func contains(text, part string) bool { return strings.Contains(text, part) }

package node_test

import (
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/gate/ticket"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/node"
)

// TestKeysAreRenewed: keys that are taken from the ledger are made anew by one of the nodes that run, and all use them:
// what one seals, the other opens. What was sealed before is good for a while on both, and no node needs a restart.
func TestKeysAreRenewed(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	dir := t.TempDir()
	var nodes [2]*node.Node
	for i := range nodes {
		if nodes[i], err = node.Open(t.Context(), node.Config{Dir: dir, Migrate: true, Engine: redis.URL()}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := nodes[i].Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	c := ticketed()
	passes := func(n *node.Node, text string) bool { return isGood(t, n.Tickets, c, text) }
	// The test stands for a part of the node that watches a key of its own.
	renewed := make(chan []byte, 10)
	session, err := nodes[0].Ledger.Secret(t.Context(), "session", 32)
	if err != nil {
		t.Fatal(err)
	}
	nodes[0].WatchKey("session", session, func(key []byte) error { renewed <- key; return nil })
	before := ticketOf(t, nodes[0], c)
	old, err := nodes[0].Ledger.Secret(t.Context(), "gate", 32)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := nodes[1].Ledger.ForgetSecrets(t.Context(), "gate", "limit", "session"); n != 3 || err != nil {
		t.Fatalf("%d keys are forgotten, %v", n, err)
	}
	// A node that still has the former key refuses what the other one has sealed.
	tick, over := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		key, err := nodes[0].Ledger.Secret(t.Context(), "gate", 32)
		if err != nil {
			t.Fatal(err)
		}
		fresh, other := ticketOf(t, nodes[0], c), ticketOf(t, nodes[1], c)
		if string(key) != string(old) && opens(t, key, c, fresh) && opens(t, key, c, other) {
			if !passes(nodes[0], other) || !passes(nodes[1], fresh) {
				t.Error("a ticket of one node is refused by the other")
			}
			break
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatal("a minute later a node still has the former key")
		}
	}
	for i, n := range nodes {
		if !passes(n, before) {
			t.Errorf("node %d refuses a ticket from before", i)
		}
	}
	select {
	case key := <-renewed:
		if now, err := nodes[1].Ledger.Secret(t.Context(), "session", 32); err != nil || string(key) != string(now) || string(key) == string(session) {
			t.Errorf("the key that was told is not the one of the ledger: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a key that is watched was not told")
	}
}

// ticketed is a campaign that asks for tickets.
func ticketed() *dibs.Campaign {
	now := time.Now()
	return &dibs.Campaign{
		ID: "phone", Number: 7, State: dibs.Published, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		Gate: &dibs.GateSpec{Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(10 * time.Minute)}},
	}
}

// ticketOf fetches ann's ticket at a node.
func ticketOf(t *testing.T, n *node.Node, c *dibs.Campaign) string {
	t.Helper()
	v, err := n.Tickets.Ticket(t.Context(), c, "ann", gate.TicketRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return v.Ticket
}

// opens reports whether a ticket of ann is sealed under a key.
func opens(t *testing.T, key []byte, c *dibs.Campaign, text string) bool {
	t.Helper()
	b, err := ticket.New(ticket.Config{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return isGood(t, b, c, text)
}

// isGood reports whether a ticket of ann passes.
func isGood(t *testing.T, b *ticket.Tickets, c *dibs.Campaign, text string) bool {
	t.Helper()
	_, ok := b.Pass(t.Context(), c, &dibs.ClaimRequest{CampaignID: c.ID, UserID: "ann", Ticket: text})
	return ok
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestCrowdKilled has a crowd tap over WebSockets while the node is killed.
func TestCrowdKilled(t *testing.T) { crowdKilled(t, 200) }

// crowdPatience bounds what takes long with ten thousand connections.
const crowdPatience = 3 * time.Minute

// crowd are users with a WebSocket each.
type crowd struct {
	t     *testing.T
	users []string
	conns []*client.Conn
	// ids are the claims that were answered, empty for a refusal.
	ids []string
	// opened counts the news of an open campaign, answered the taps.
	opened, answered atomic.Int64
}

// crowdKilled connects n users, kills the node while the first half taps, has
// the second half tap while there is none, and starts it again. Every tap is
// answered once, and a tap sent again finds its first answer.
func crowdKilled(t *testing.T, n int) {
	data, address := t.TempDir(), freeAddress(t)
	serve := func() (*process, string) {
		p := start(t, clitest.Secrets, "serve", "--data", data, "--listen", address)
		return p, p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	}
	p, url := serve()
	stock := int64(n * 2 / 3)
	clitest.Publish(t, clitest.Admin(t, url), "crowd", stock)
	c := &crowd{t: t, ids: make([]string, n)}
	c.connect(url, n)
	await(t, "everybody hears of the campaign", func() bool { return c.opened.Load() >= int64(n) })

	var taps sync.WaitGroup
	for i := range n / 2 {
		taps.Go(func() { c.tap(i) })
	}
	await(t, "somebody is answered", func() bool { return c.answered.Load() > 0 })
	p.kill()
	before := c.answered.Load()
	for i := n / 2; i < n; i++ {
		taps.Go(func() { c.tap(i) })
	}
	_, url = serve()
	taps.Wait()
	t.Logf("%d of %d taps were answered before the node was killed", before, n)
	c.again()
	c.judge(claimsOf(t, clitest.Admin(t, url), "crowd"), stock)
}

// freeAddress returns an address that no program listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	return ln.Addr().String()
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(crowdPatience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in %v", what, crowdPatience)
		}
		<-tick.C
	}
}

// connect opens a WebSocket for each user, and subscribes it.
func (c *crowd) connect(url string, n int) {
	c.t.Helper()
	c.users, c.conns = make([]string, n), make([]*client.Conn, n)
	admin, err := client.New(url, client.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(admin.CloseIdle)
	var group errgroup.Group
	group.SetLimit(64)
	for i := range n {
		group.Go(func() error {
			c.users[i] = fmt.Sprintf("u%d", i)
			token, err := httpapi.IssueToken([]byte(clitest.Secret), c.users[i], time.Hour)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(context.Background(), crowdPatience)
			defer cancel()
			var once sync.Once
			c.conns[i], err = admin.WithToken(token).Connect(ctx, client.ConnOptions{OnCampaign: func(n api.SnapshotView) {
				if n.Phase == dibs.PhaseOpen {
					once.Do(func() { c.opened.Add(1) })
				}
			}, LongestPause: 2 * time.Second})
			if err == nil {
				c.conns[i].Subscribe("crowd")
			}
			return err
		})
	}
	err = group.Wait()
	c.t.Cleanup(func() {
		var closing errgroup.Group
		closing.SetLimit(256)
		for _, conn := range c.conns {
			if conn != nil {
				closing.Go(func() error { conn.Close(); return nil })
			}
		}
		_ = closing.Wait()
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// tap has a user claim, and notes what came of it.
func (c *crowd) tap(i int) {
	id, _, err := c.claim(i)
	if err != nil {
		c.t.Errorf("the tap of %s: %v", c.users[i], err)
	}
	c.ids[i] = id
	c.answered.Add(1)
}

// claim claims until the answer is a yes or sold out.
func (c *crowd) claim(i int) (id string, replayed bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), crowdPatience)
	defer cancel()
	for {
		claim, replayed, err := c.conns[i].Claim(ctx, client.Tap{CampaignID: "crowd", Key: "tap-" + c.users[i]})
		var refusal *client.Error
		switch {
		case err == nil:
			return claim.ID, replayed, nil
		case errors.As(err, &refusal) && refusal.Reason == "sold_out":
			return "", false, nil
		case errors.As(err, &refusal) && strings.HasPrefix(refusal.Type, "urn:dibs:problem:") && refusal.Retryable:
			// The node is starting or stopping, or has too much to do.
			pause := time.NewTimer(refusal.RetryAfter)
			select {
			case <-pause.C:
			case <-ctx.Done():
			}
			continue
		}
		return "", false, err
	}
}

// again sends every tap once more, over the connections there are now.
func (c *crowd) again() {
	var taps sync.WaitGroup
	for i := range c.ids {
		taps.Go(func() {
			id, replayed, err := c.claim(i)
			if err != nil || id != c.ids[i] || (id != "") != replayed {
				c.t.Errorf("the tap of %s was answered %q, then %q (replayed %t): %v", c.users[i], c.ids[i], id, replayed, err)
			}
		})
	}
	taps.Wait()
}

// judge compares what was answered with what the ledger has.
func (c *crowd) judge(kept map[string]string, stock int64) {
	c.t.Helper()
	granted := int64(0)
	for i, id := range c.ids {
		if id == "" {
			continue
		}
		if granted++; kept[id] != c.users[i] {
			c.t.Errorf("%s was granted %s, the ledger has %q", c.users[i], id, kept[id])
		}
	}
	if granted != stock || int64(len(kept)) != stock {
		c.t.Errorf("%d answered, %d kept, %d were there", granted, len(kept), stock)
	}
	moved := 0
	for _, conn := range c.conns {
		if conn.Connects() > 1 {
			moved++
		}
	}
	if moved != len(c.conns) {
		c.t.Errorf("%d of %d connections were made again", moved, len(c.conns))
	}
}

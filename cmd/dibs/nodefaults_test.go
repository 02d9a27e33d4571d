package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// TestRehearseNodes loads three nodes by their proxy while one of them is
// killed and started again, and another one drained: every promise holds, and
// a user without an answer learns the outcome by repeating the request.
func TestRehearseNodes(t *testing.T) { rehearseNodes(t, servers.MariaDB, "sale", (rounds(t)+19)/20) }

func rehearseNodes(t *testing.T, get func() (*servers.Server, error), kind string, n int) {
	c := newCluster(t, get, 3)
	size, stock := []string{"--rate", "500", "--duration", "5s", "--users", "2000"}, int64(1000)
	if os.Getenv("SOAK") != "" {
		size, stock = []string{"--rate", "600", "--duration", "8s", "--users", "4000"}, 3000
	}
	for round := range n {
		p := start(t, clitest.Secrets, append([]string{"rehearse", "--url", c.url, "--stock", strconv.FormatInt(stock, 10), "--kind", kind, "--output", "json"}, size...)...)
		p.await(t, p.err, `pressing`)
		killed, drained := c.nodes[round%3], c.nodes[(round+1)%3]
		eventually(t, clitest.Patience, "some claims are granted", func(ctx context.Context) bool { return c.grantedAt(ctx, killed) > 50 })
		killed.kill()
		c.start(killed)
		drained.signal(t, syscall.SIGTERM)
		if code := drained.code(t); code != cli.ExitOK {
			t.Errorf("the drained node ends with %d", code)
		}
		c.start(drained)
		if code := p.code(t); code != cli.ExitOK {
			t.Fatalf("round %d: the rehearsal ends with %d:\n%s%s", round, code, p.out, p.err)
		}
		var report rehearsal.Report
		if err := json.Unmarshal([]byte(p.out.String()), &report); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: %d granted of %d, %d attempts without an answer", round, report.Stats.Granted, stock, report.Transport.Lost)
		if report.Stats.Granted != stock {
			t.Errorf("%d of %d granted with more demand than stock", report.Stats.Granted, stock)
		}
	}
	c.verify()
	c.drain()
}

// grantedAt is how many claims a node has granted since its start, by its
// metrics; -1 while it does not answer.
func (c *cluster) grantedAt(ctx context.Context, n *member) int64 {
	return c.metric(ctx, n, "dibs_granted_total")
}

// TestSettlerDies kills the nodes in turn, the one that settles among them:
// within seconds another one takes over, and nothing is left behind.
func TestSettlerDies(t *testing.T) {
	c := newCluster(t, servers.MariaDB, 3)
	clitest.Publish(t, c.admin(0), "sale", bigStock)
	var users atomic.Int64
	all := map[string]string{}
	for i, victim := range c.nodes {
		l := newLoader(c.nodes[(i+1)%3].url(), &users, 300, "sale")
		ctx, stop := context.WithCancel(t.Context())
		wait := l.begin(ctx, t)
		victim.kill()
		stop()
		wait()
		api := c.admin((i + 2) % 3)
		eventually(t, clitest.Patience, "another node has settled everything", func(ctx context.Context) bool {
			stats, err := api.Campaigns.Stats(ctx, "sale")
			return err == nil && stats.JournalBacklog == 0
		})
		for _, p := range l.presses {
			if p.id != "" {
				all[p.id] = p.user
			}
		}
		for _, err := range l.failures {
			t.Errorf("a node that was left alone fails: %v", err)
		}
		c.start(victim)
	}
	c.keeps(all)
	c.verify()
	c.drain()
}

// TestNodesAndRedisDie kills Redis under load, and now and then a node with it.
// What was answered is kept, and the nodes go on by themselves.
func TestNodesAndRedisDie(t *testing.T) {
	c := newCluster(t, servers.MariaDB, 2)
	seed := killSeed(t)
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	clitest.Publish(t, c.admin(0), "sale", bigStock)
	var users atomic.Int64
	all := map[string]string{}
	for round := range max(2, rounds(t)/10) {
		l := newLoader(c.nodes[round%2].url(), &users, 200, "sale")
		wait := l.begin(t.Context(), t)
		c.redis.Kill()
		if r.IntN(2) == 0 {
			c.nodes[1-round%2].kill()
		}
		wait()
		if err := c.redis.Start(); err != nil {
			t.Fatal(err)
		}
		for _, n := range c.nodes {
			if n.gone() {
				c.start(n)
			}
		}
		c.await()
		c.collect(l.presses, all)
	}
	c.keeps(all)
	c.verify()
	c.drain()
}

// keeps fails unless the ledger has all that was granted of the sale, for whom
// it was granted, and nothing else.
func (c *cluster) keeps(all map[string]string) {
	c.t.Helper()
	kept := claimsOf(c.t, c.admin(0), "sale")
	for id, user := range all {
		if kept[id] != user {
			c.t.Errorf("claim %s of user %s is lost", id, user)
		}
	}
	if len(kept) != len(all) {
		c.t.Errorf("%d claims are kept, %d were granted", len(kept), len(all))
	}
	c.t.Logf("%d claims granted, %d kept", len(all), len(kept))
}

// collect repeats what was not answered and adds all that was granted.
func (c *cluster) collect(presses []press, all map[string]string) {
	c.t.Helper()
	transport := client.NewTransport()
	defer transport.CloseIdleConnections()
	for _, p := range presses {
		if p.id == "" && p.refused == "" {
			eventually(c.t, clitest.Patience, "a repeat is answered", func(ctx context.Context) bool {
				return p.send(ctx, c.url, transport) == nil
			})
		}
		if p.id != "" {
			all[p.id] = p.user
		}
	}
}

// await waits until every node is ready.
func (c *cluster) await() {
	c.t.Helper()
	for i := range c.nodes {
		api := c.admin(i)
		eventually(c.t, clitest.Patience, "node "+strconv.Itoa(i)+" is ready", func(ctx context.Context) bool {
			health, err := api.Health(ctx)
			return err == nil && health.Ready
		})
	}
}

// get reads a page.
func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	return string(text), errors.Join(err, resp.Body.Close())
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// metric reads one number of a node; -1 while it does not answer.
func (c *cluster) metric(ctx context.Context, n *member, name string) int64 {
	text, err := get(ctx, n.url()+"/metrics")
	if err != nil {
		return -1
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndex(rest, " "):]), 64)
		if err != nil {
			c.t.Fatalf("metric %q: %v", line, err)
		}
		sum += value
	}
	return int64(sum)
}

//go:build soak

package main

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestSettlerKilled kills the node that settles, found by what it has settled,
// again and again, with the ledger in files of one machine.
func TestSettlerKilled(t *testing.T) {
	settlerKilled(t, "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"), (rounds(t)+2)/3)
}

// TestSettlerKilledMySQL and TestSettlerKilledPostgres are the same with the
// ledger in a server.
func TestSettlerKilledMySQL(t *testing.T)    { settlerKilledOnServer(t, servers.MariaDB) }
func TestSettlerKilledPostgres(t *testing.T) { settlerKilledOnServer(t, servers.Postgres) }

func settlerKilledOnServer(t *testing.T, get func() (*servers.Server, error)) {
	_, ledger, _ := servers.Database(t, get)
	settlerKilled(t, ledger, (rounds(t)+2)/3)
}

// settlerKilled kills n times whichever of three nodes settles, while users press
// at all of them by the proxy. Another one takes over, and in the end the ledger
// has each claim that was granted, once, and nothing else.
func settlerKilled(t *testing.T, ledger string, n int) {
	c := clusterOn(t, ledger, 3)
	seed := killSeed(t)
	t.Logf("seed %d, %d rounds", seed, n)
	r := rand.New(rand.NewPCG(seed, 0))
	clitest.Publish(t, c.admin(0), "sale", bigStock)
	var users atomic.Int64
	all := map[string]string{}
	unanswered := 0
	for range n {
		before := c.settled(t.Context())
		l := newLoader(c.url, &users, leastAnswered+r.Int64N(400), "sale")
		ctx, stop := context.WithCancel(t.Context())
		wait := l.begin(ctx, t)
		victim := c.settler(before)
		// At any moment of its work, not just after a settling.
		moment := time.NewTimer(time.Duration(r.IntN(300)) * time.Millisecond)
		<-moment.C
		c.nodes[victim].kill()
		stop()
		wait()
		api := c.admin((victim + 1) % 3)
		eventually(t, clitest.Patience, "another node has settled everything", func(ctx context.Context) bool {
			stats, err := api.Campaigns.Stats(ctx, "sale")
			return err == nil && stats.JournalBacklog == 0
		})
		unanswered += len(l.failures)
		c.collect(l.presses, all)
		c.start(c.nodes[victim])
	}
	c.keeps(all)
	c.verify()
	t.Logf("the settling node was killed %d times; %d presses went unanswered at first", n, unanswered)
	c.drain()
}

// settled is what each node has settled since its start.
func (c *cluster) settled(ctx context.Context) []int64 {
	counts := make([]int64, len(c.nodes))
	for i, n := range c.nodes {
		counts[i] = c.metric(ctx, n, "dibs_settled_total")
	}
	return counts
}

// settler waits until a node has settled more than before, and names it.
func (c *cluster) settler(before []int64) (found int) {
	c.t.Helper()
	eventually(c.t, clitest.Patience, "a node settles", func(ctx context.Context) bool {
		for i, count := range c.settled(ctx) {
			if count > before[i] {
				found = i
				return true
			}
		}
		return false
	})
	return found
}

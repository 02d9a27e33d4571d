package main

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs/internal/badnet"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestStandbyPromoted kills the primary of a PostgreSQL pair whose standby lacks
// what was settled last, and promotes the standby under load. The nodes find it by
// themselves, and settle again what it lacks from the journal that Redis keeps:
// nothing is lost, nothing is sold twice.
func TestStandbyPromoted(t *testing.T) {
	t.Parallel()
	for range max(1, rounds(t)/30) {
		standbyPromoted(t)
	}
}

func standbyPromoted(t *testing.T) {
	pair, c := onPair(t, false)
	const stock = 3000
	clitest.Publish(t, c.admin(0), "sale", stock)
	var users atomic.Int64
	all := map[string]string{}
	c.load(&users, 300, all)
	c.settledAll("sale")
	noFault(t, pair.CaughtUp())
	noFault(t, pair.Cut())
	c.load(&users, 300, all)
	c.settledAll("sale")
	stop := c.pressOn(&users, stock, all)
	pair.Primary.Kill()
	before := len(all)
	noFault(t, pair.Promote())
	c.await()
	eventually(t, clitest.Patience, "everything is granted", func(ctx context.Context) bool {
		stats, err := c.admin(0).Campaigns.Stats(ctx, "sale")
		return err == nil && stats.Granted == stock
	})
	stop()
	t.Logf("%d were granted before the primary died, %d in all", before, len(all))
	if len(all) != stock {
		t.Errorf("%d of %d were granted and answered", len(all), stock)
	}
	c.keeps(all)
	c.verify()
	c.drain()
}

// onPair starts two nodes on a pair of PostgreSQL servers.
func onPair(t *testing.T, synchronous bool, args ...string) (*servers.PostgresPair, *cluster) {
	t.Helper()
	pair, err := servers.StartPostgresPair(synchronous, badnet.Link)
	noFault(t, err)
	t.Cleanup(func() {
		if err := pair.Stop(); err != nil {
			t.Error(err)
		}
	})
	noFault(t, pair.Primary.Exec("", "CREATE DATABASE d"))
	return pair, clusterOn(t, pair.URL("d"), 2, args...)
}

func noFault(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// settledAll waits until a campaign's grants are in the ledger.
func (c *cluster) settledAll(campaign string) {
	c.t.Helper()
	eventually(c.t, clitest.Patience, "everything is settled", func(ctx context.Context) bool {
		stats, err := c.admin(0).Campaigns.Stats(ctx, campaign)
		return err == nil && stats.JournalBacklog == 0
	})
}

// pressOn presses in the background until stop is called, which adds what was
// granted. It returns once some more were.
func (c *cluster) pressOn(users *atomic.Int64, most int64, all map[string]string) (stop func()) {
	c.t.Helper()
	l := newLoader(c.url, users, min(most, 50), "sale")
	ctx, cancel := context.WithCancel(c.t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		l.runOn(ctx)
	}()
	select {
	case <-l.enough:
	case <-c.t.Context().Done():
	}
	return func() {
		cancel()
		<-stopped
		c.collect(l.presses, all)
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// TestRehearseShards lets 20,000 users press for 5,000 units over six shards of a
// Cluster of three masters, through two nodes, while a master is killed: exactly 5,000
// are granted, and every promise holds by what the users were told.
func TestRehearseShards(t *testing.T) {
	redis, err := servers.StartCluster(t.Context(), t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Stop)
	c := clusterAt(t, redis.URL(), "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"), 2, "--durability", dibs.LevelLedgered)
	const units = 5_000
	var p *process
	var master *servers.Redis
	granted := int64(0)
	// A sale takes seconds: after one that was sold out before it was looked at comes another one.
	for i := range int64(3) {
		id := fmt.Sprint("sale", i+1)
		c.publishShards(id, units, 1)
		if _, master, err = redis.Owner(t.Context(), fmt.Sprintf("dibs:{%d:%d}:meta", i+1, 3)); err != nil {
			t.Fatal(err)
		}
		p = start(t, clitest.Secrets, "rehearse", "--url", c.url, "--campaign", id, "--users", "20000", "--requests", "22000", "--concurrency", "400", "--output", "json")
		p.await(t, p.err, `pressing`)
		eventually(t, clitest.Patience, "some claims are granted", func(ctx context.Context) bool {
			granted = c.grantedAt(ctx, c.nodes[0]) + c.grantedAt(ctx, c.nodes[1]) - i*units
			return granted > 300
		})
		if granted < units || p.code(t) != cli.ExitOK {
			break
		}
	}
	master.Kill()
	if granted >= units {
		t.Errorf("all %d were granted before the master was killed", granted)
	}
	if code := p.code(t); code != cli.ExitOK {
		t.Fatalf("the rehearsal ends with %d:\n%s%s", code, p.out, p.err)
	}
	var report rehearsal.Report
	if err := json.Unmarshal([]byte(p.out.String()), &report); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d granted of %d, %d attempts without an answer", report.Stats.Granted, units, report.Transport.Lost)
	if report.Stats.Granted != units || report.Stats.Remaining != 0 {
		t.Errorf("%d of %d granted, and %d left", report.Stats.Granted, units, report.Stats.Remaining)
	}
	c.verify()
	c.drain()
}

// publishShards publishes a sale of six shards.
func (c *cluster) publishShards(id string, units, limit int64) {
	c.t.Helper()
	shards := 6
	if _, err := c.admin(0).Campaigns.Create(c.t.Context(), dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Limit: &limit, Shards: &shards,
	}, ""); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.admin(0).Campaigns.Publish(c.t.Context(), id); err != nil {
		c.t.Fatal(err)
	}
}

// TestRehearseFewUsers lets 100 users buy all of 600 units over six shards of a Cluster of
// three masters, through two nodes, while a master is killed. Each may have six, and buys
// them one or two at a time, in claims that they repeat until the answer is final. No
// shard has as many units as its users want, and not one unit may be left over.
func TestRehearseFewUsers(t *testing.T) {
	redis, err := servers.StartCluster(t.Context(), t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Stop)
	c := clusterAt(t, redis.URL(), "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"), 2, "--durability", dibs.LevelLedgered)
	const users = 100
	const units, limit = 600, 6
	api := c.admin(0)
	c.publishShards("sale", units, limit)
	_, master, err := redis.Owner(t.Context(), fmt.Sprintf("dibs:{%d:%d}:meta", 1, 3))
	if err != nil {
		t.Fatal(err)
	}
	var granted atomic.Int64
	var kill sync.Once
	var all sync.WaitGroup
	told := make([]map[string]int64, users)
	for i := range users {
		all.Go(func() {
			told[i] = c.buyAll(i, "sale", limit, func(quantity int64) {
				// The others wait until it is dead: there is much to sell afterwards.
				if granted.Add(quantity) >= 100 {
					kill.Do(master.Kill)
				}
			})
		})
	}
	all.Wait()
	// All may be sold before the master is dead: then its shards answer once they are on another one.
	stats, err := api.Campaigns.Stats(t.Context(), "sale")
	away := func() bool { return errors.Is(err, dibs.ErrUnavailable) || err == nil && stats.ShardsAway > 0 }
	for patience := time.Now().Add(time.Minute); away() && time.Now().Before(patience); {
		<-time.After(100 * time.Millisecond)
		stats, err = api.Campaigns.Stats(t.Context(), "sale")
	}
	if err != nil || granted.Load() != units || stats.Granted != units || stats.Remaining != 0 {
		t.Errorf("%d of %d granted, %+v, %v", granted.Load(), units, stats, err)
	}
	for i, want := range told {
		if kept := c.heldBy("sale", fewUser(i)); !maps.Equal(kept, want) {
			t.Errorf("%s was granted %v, and has %v", fewUser(i), want, kept)
		}
	}
	for i := range c.nodes {
		if id, reason := c.insist(i, "sale", "late", "", 1); reason != dibs.SoldOut.String() {
			t.Errorf("after the last unit node %d answers %q%q", i, id, reason)
		}
	}
	c.verify()
	c.drain()
}

// fewUser names one of few users.
func fewUser(i int) string { return fmt.Sprint("few-", i) }

// buyAll has a user buy as much as they may have, one or two units at a time, and returns
// their claims with how much is in each.
func (c *cluster) buyAll(i int, campaign string, limit int64, granted func(quantity int64)) map[string]int64 {
	claims := map[string]int64{}
	for held := int64(0); held < limit; {
		quantity := min(1+(held+int64(i))%2, limit-held)
		id, reason := c.insist(i, campaign, fewUser(i), fmt.Sprint("key-", held), quantity)
		if id == "" {
			c.t.Errorf("%s, who has %d of %d, is told %s", fewUser(i), held, limit, reason)
			break
		}
		claims[id] = quantity
		held += quantity
		granted(quantity)
	}
	return claims
}

// heldBy is what a user has by the ledger: how much is in each claim.
func (c *cluster) heldBy(campaign, user string) map[string]int64 {
	c.t.Helper()
	claims := map[string]int64{}
	l, err := c.admin(0).Campaigns.Claims(c.t.Context(), campaign, client.ClaimFilter{UserID: user}, dibs.Page{})
	if err != nil {
		c.t.Error(err)
	}
	for i := range l.Items {
		claims[l.Items[i].ID] = l.Items[i].Quantity
	}
	return claims
}

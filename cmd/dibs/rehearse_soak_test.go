//go:build soak

package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// TestRehearseMoreShards lets 6,000 users press for 2,000 units of a campaign of two
// shards, which gets more, to five and to eight, through both nodes, in the middle of the
// rush: exactly 2,000 are granted, and every promise holds by what the users were told.
func TestRehearseMoreShards(t *testing.T) {
	redis, err := servers.StartCluster(t.Context(), t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Stop)
	c := clusterAt(t, redis.URL(), "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"), 2, "--durability", dibs.LevelLedgered)
	units, shards := int64(2_000), 2
	if _, err := c.admin(0).Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "sale", Kind: dibs.Sale, Title: "sale", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Shards: &shards,
	}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.admin(0).Campaigns.Publish(t.Context(), "sale"); err != nil {
		t.Fatal(err)
	}
	p := start(t, clitest.Secrets, "rehearse", "--url", c.url, "--campaign", "sale", "--users", "6000", "--requests", "7000", "--concurrency", "200", "--output", "json")
	p.await(t, p.err, `pressing`)
	for node, more := range []int{5, 8} {
		eventually(t, clitest.Patience, "some claims are granted", func(ctx context.Context) bool { return c.grantedAt(ctx, c.nodes[0]) > int64(200+400*node) })
		// On a busy machine a shard may not be seen in time: the change is sent again, as its answer asks.
		eventually(t, clitest.Patience, "more shards", func(ctx context.Context) bool {
			v, err := c.admin(node).Campaigns.Patch(ctx, "sale", dibs.CampaignPatch{Shards: &more})
			var refusal *client.Error
			if err != nil && !(errors.As(err, &refusal) && refusal.Reason == "unavailable") {
				t.Fatalf("%d shards: %v", more, err)
			}
			return err == nil && v.Shards == more
		})
	}
	if code := p.code(t); code != cli.ExitOK {
		t.Fatalf("the rehearsal ends with %d:\n%s%s", code, p.out, p.err)
	}
	var report rehearsal.Report
	if err := json.Unmarshal([]byte(p.out.String()), &report); err != nil {
		t.Fatal(err)
	}
	if report.Stats.Granted != units || report.Stats.Remaining != 0 {
		t.Errorf("%d of %d granted, and %d left", report.Stats.Granted, units, report.Stats.Remaining)
	}
	c.verify()
	c.drain()
}

// TestRehearseNodesPostgres is TestRehearseNodes with a red packet: its shares are
// credited once, whichever node is at it.
func TestRehearseNodesPostgres(t *testing.T) { rehearseNodes(t, servers.Postgres, "redpacket", 1) }

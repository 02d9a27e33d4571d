package redisengine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/live"
)

// promote begins a server that has followed the fleet's until now, and is a master itself. Nodes that
// join later use it; the other one lives on.
func (f *fleet) promote() {
	f.Helper()
	r := startRedis(f.T, servers.RedisAlways...)
	// Nodes end before their server, since they settle at their end.
	f.Cleanup(func() {
		for _, n := range f.nodes {
			n.close(f.T)
		}
	})
	host, port, _ := strings.Cut(f.redis.Addr(), ":")
	_, err := r.Do(f.Context(), "REPLICAOF", host, port)
	must(f.T, err)
	f.until("the replica follows", func() bool {
		info, err := r.Info(f.Context(), "replication")
		return err == nil && info["master_link_status"] == "up"
	})
	_, err = r.Do(f.Context(), "REPLICAOF", "NO", "ONE")
	must(f.T, err)
	f.redis = r
}

// A master that was left behind is found although nobody claims anything there: its
// node is not ready, and grants nothing.
func TestALeftBehindMasterIsFound(t *testing.T) {
	f := newFleet(t, 1)
	f.publish("phone", 10)
	f.wants(f.nodes[0], dibs.Granted, "phone", "early", "k")
	f.verify()
	f.promote()
	second := f.join()
	f.wants(second, dibs.Granted, "phone", "late", "k")
	left := f.nodes[0]
	f.until("the node that was left behind says so", func() bool { return !left.Health(t.Context()).Ready })
	_, err := left.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "lost", Key: "k"})
	if err == nil {
		t.Error("the node that was left behind answers a claim")
	}
	if said := left.Health(t.Context()).Dependencies["campaigns"].Error; !strings.Contains(said, "another server") {
		t.Errorf("the node that was left behind says %q", said)
	}
	f.wants(second, dibs.Granted, "phone", "later", "k")
	report, err := second.Audit.Verify(t.Context())
	if err != nil || !report.OK {
		t.Errorf("the other node sees %+v, %v", report, err)
	}
}

// Two masters live on after a failover, and each has opened one of two campaigns: the old one
// took one back while the new one was not seen. Neither node would be ready for as long as both
// live, so of two servers with as many shards the one with the first gets the other one too.
func TestMastersThatWaitForEachOther(t *testing.T) {
	for _, back := range []int{0, 1} {
		t.Run(fmt.Sprint("campaign ", back+1, " goes back"), func(t *testing.T) {
			t.Parallel()
			ids := []string{"phone", "case"}
			f := newFleet(t, 1)
			for _, id := range ids {
				f.publish(id, 10)
			}
			old := f.nodes[0]
			f.verify()
			f.promote()
			promoted := f.join()
			for _, id := range ids {
				f.wants(promoted, dibs.Granted, id, "early", "k")
			}
			c, err := old.ledger.Campaign(t.Context(), ids[back])
			must(t, err)
			shard := dibs.ShardID{Campaign: c.Number}
			server, err := old.engine.Server(t.Context(), shard)
			must(t, err)
			totals, err := old.ledger.Totals(t.Context(), shard)
			must(t, err)
			_, err = old.ledger.LoadShard(t.Context(), c, shard, live.Opener{Server: server, Epoch: totals.Epoch})
			must(t, err)

			winner, loser := old, promoted
			if back == 1 {
				winner, loser = promoted, old
			}
			sells := func(n *member, id string) (granted, unavailable bool) {
				res, err := n.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: id, UserID: fmt.Sprint("late-", n == old), Key: "k"})
				return err == nil && res.Outcome == dibs.Granted, errors.Is(err, dibs.ErrUnavailable)
			}
			f.within(2*time.Minute, "one node to sell all, and the other one nothing", func() bool {
				for _, id := range ids {
					granted, _ := sells(winner, id)
					_, unavailable := sells(loser, id)
					if !granted || !unavailable {
						return false
					}
				}
				// A node that is just losing a shard is ready for a moment, and answers repeats from the ledger.
				report, err := winner.Audit.Verify(t.Context())
				return err == nil && report.OK && winner.Health(t.Context()).Ready && !loser.Health(t.Context()).Ready
			})
		})
	}
}

package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// twoMasters is the time in which everything is whole again after the old master's
// death.
const twoMasters = 30 * time.Second

// TestTwoMasters: a replica is promoted while the old master lives on, each with a
// node of its own, behind one ledger. The promoted one goes on with the campaign; of
// its yeses none is lost, and the old one's node stops selling by itself.
func TestTwoMasters(t *testing.T) {
	for _, level := range []string{"durable", "ledgered"} {
		t.Run(level, func(t *testing.T) { forkUnderLoad(t, level) })
	}
}

func forkUnderLoad(t *testing.T, level string) {
	c := newCluster(t, servers.MariaDB, 1, "--durability", level)
	const stock = 100_000
	clitest.Publish(t, c.admin(0), "sale", stock)
	for i := range 20 {
		c.granted(0, "sale", fmt.Sprint("before", i))
	}
	replica := promotedReplica(t, c.redis)
	// Before anyone claims in the background: claims read the list of nodes.
	second := &member{address: "127.0.0.1:0"}
	c.nodes = append(c.nodes, second)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var old sync.WaitGroup
	answers := map[string]string{} // user by claim
	old.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			user := fmt.Sprint("old", i)
			if id, _ := c.claim(0, "sale", user); id != "" {
				answers[id] = user
			}
		}
	})
	env := c.env
	c.env = append([]string{"DIBS_ENGINE=" + replica.URL(), "DIBS_LEDGER=" + c.ledger}, clitest.Secrets...)
	c.start(second, "--durability", level)
	c.env = env

	kept := map[string]string{}
	for i := range 50 {
		user := fmt.Sprint("new", i)
		kept[c.granted(1, "sale", user)] = user
	}
	eventually(t, twoMasters, "the node of the old master stops selling", func(context.Context) bool {
		_, reason := c.claim(0, "sale", "late")
		return reason == "unavailable"
	})
	health, err := c.admin(0).Health(t.Context())
	if said := health.Dependencies["campaigns"].Error; err != nil || health.Ready || !strings.Contains(said, "another server") {
		t.Errorf("the node of the old master says %q, %+v, %v", said, health, err)
	}
	stop()
	old.Wait()

	c.redis.Kill()
	c.nodes[0].kill()
	c.nodes, c.redis = c.nodes[1:], replica
	for i := range 50 {
		user := fmt.Sprint("after", i)
		kept[c.granted(0, "sale", user)] = user
	}
	if level == "ledgered" {
		maps.Copy(kept, answers)
	}
	eventually(t, twoMasters, "everything is settled", func(ctx context.Context) bool {
		stats, err := c.admin(0).Campaigns.Stats(ctx, "sale")
		return err == nil && stats.JournalBacklog == 0
	})
	found := claimsOf(t, c.admin(0), "sale")
	for id, user := range kept {
		if found[id] != user {
			t.Errorf("claim %s of user %s was answered with yes and is lost", id, user)
		}
	}
	c.verify()
	c.drain()
}

// promotedReplica starts a server that has followed a master until now, and is a
// master itself.
func promotedReplica(t *testing.T, of *servers.Redis) *servers.Redis {
	t.Helper()
	r, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	host, port, _ := strings.Cut(of.Addr(), ":")
	for _, command := range [][]string{{"REPLICAOF", host, port}, {"REPLICAOF", "NO", "ONE"}} {
		if _, err := r.Do(t.Context(), command...); err != nil {
			t.Fatal(err)
		}
		if command[1] == "NO" {
			break
		}
		eventually(t, clitest.Patience, "the replica follows", func(ctx context.Context) bool {
			info, err := r.Info(ctx, "replication")
			return err == nil && info["master_link_status"] == "up"
		})
	}
	return r
}

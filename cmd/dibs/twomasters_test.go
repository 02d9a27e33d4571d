package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/wait"
)

// twoMasters is the time in which everything is whole again after the old master's death:
// claims are granted, also by the old master's node, which has joined the other one, all
// yeses are in the ledger, and every promise holds. It takes 20 seconds where nothing else runs.
const twoMasters = 90 * time.Second

// TestTwoMasters: a replica is promoted while the old master lives on, each with a
// node of its own, behind one ledger. The promoted one goes on with the campaign; of
// its yeses none is lost, and the old one's node stops selling by itself. When the old
// master has died, its node goes on at the one that survived. With every change this is at
// one level, in long campaigns at each.
func TestTwoMasters(t *testing.T) {
	levels := []string{dibs.LevelLedgered}
	if os.Getenv("SOAK") != "" {
		levels = dibs.Levels()
	}
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			forkUnderLoad(t, level)
		})
	}
}

func forkUnderLoad(t *testing.T, level string) {
	c := forked(t, level)
	const stock = 100_000
	clitest.Publish(t, c.admin(0), "sale", stock)
	for i := range 20 {
		c.granted(0, "sale", fmt.Sprint("before", i))
	}
	replica := follower(t, c.redis)
	promote(t, replica)
	if level == "replicated" {
		follower(t, replica)
	}
	// Before anyone claims in the background: claims read the list of nodes.
	second := &member{address: "127.0.0.1:0"}
	c.nodes = append(c.nodes, second)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var old sync.WaitGroup
	answers := map[string]string{} // user by claim
	old.Go(func() {
		for i := 0; wait.Sleep(ctx, breath); i++ {
			user := fmt.Sprint("old", i)
			if id, _ := c.claim(0, "sale", user); id != "" {
				answers[id] = user
			}
		}
	})
	c.env = append([]string{"DIBS_ENGINE=" + replica.URL(), "DIBS_LEDGER=" + c.ledger}, clitest.Secrets...)
	c.start(second, "--durability", level)

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
	if level == "ledgered" {
		maps.Copy(kept, answers)
	}
	c.outlives(replica, level, kept)
	c.drain()
}

// outlives ends the old master and its node: the other one makes everything whole in time,
// and the old one's node is part of that.
func (c *cluster) outlives(survivor *servers.Redis, level string, kept map[string]string) {
	c.t.Helper()
	died, fenced := time.Now(), c.nodes[0]
	c.redis.Kill()
	fenced.kill()
	c.nodes, c.redis = c.nodes[1:], survivor
	for i := range 50 {
		user := fmt.Sprint("after", i)
		kept[c.granted(0, "sale", user)] = user
	}
	eventually(c.t, twoMasters-time.Since(died), "everything is settled", func(ctx context.Context) bool {
		stats, err := c.admin(0).Campaigns.Stats(ctx, "sale")
		return err == nil && stats.JournalBacklog == 0
	})
	c.rejoins(fenced, level, kept)
	took := time.Since(died)
	c.t.Logf("everything is whole %s after the old master's death", took.Round(time.Millisecond))
	if took > twoMasters {
		c.t.Errorf("everything is whole %s after the old master's death, not within %s", took, twoMasters)
	}
	found := claimsOf(c.t, c.admin(0), "sale")
	for id, user := range kept {
		if found[id] != user {
			c.t.Errorf("claim %s of user %s was answered with yes and is lost", id, user)
		}
	}
}

// rejoins starts the node of the old master again, on the one that survived: it grants, and
// repeats what the other node has granted. Every promise holds then.
func (c *cluster) rejoins(fenced *member, level string, kept map[string]string) {
	c.t.Helper()
	c.start(fenced, "--durability", level)
	c.nodes = append(c.nodes, fenced)
	for i := range 20 {
		joined, user := fmt.Sprint("rejoined", i), fmt.Sprint("after", i)
		kept[c.granted(1, "sale", joined)] = joined
		if id := c.granted(1, "sale", user); kept[id] != user {
			c.t.Errorf("the node that has rejoined answers the repeat of %s with %s", user, id)
		}
	}
	c.verify()
}

// forked starts a node at a level, on a master that has as many replicas as the level needs.
func forked(t *testing.T, level string) *cluster {
	t.Helper()
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	if level == "replicated" {
		follower(t, redis)
	}
	_, ledger, _ := servers.Database(t, servers.MariaDB)
	c := clusterAt(t, redis.URL(), ledger, 1, "--durability", level)
	c.redis = redis
	return c
}

// follower starts a replica, which has all that its master had when it returns.
func follower(t *testing.T, of *servers.Redis) *servers.Redis {
	t.Helper()
	r, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	host, port, _ := strings.Cut(of.Addr(), ":")
	if _, err := r.Do(t.Context(), "REPLICAOF", host, port); err != nil {
		t.Fatal(err)
	}
	_, own, _ := strings.Cut(r.Addr(), ":")
	// As nodes see it, by what its master says: that comes later than what it says itself.
	eventually(t, clitest.Patience, "the replica follows", func(ctx context.Context) bool {
		info, err := of.Info(ctx, "replication")
		return err == nil && slices.ContainsFunc(slices.Collect(maps.Values(info)), func(line string) bool {
			return strings.Contains(line, ",port="+own+",state=online,")
		})
	})
	return r
}

// promote makes a replica a master, while its master lives on.
func promote(t *testing.T, r *servers.Redis) {
	t.Helper()
	if _, err := r.Do(t.Context(), "REPLICAOF", "NO", "ONE"); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestOlderDump restores a dump of the database that lacks a part of what was
// granted, while users press. What the dump lacks is settled again from the
// journal in Redis: nothing is lost, nothing is sold twice.
func TestOlderDump(t *testing.T) {
	c := newCluster(t, servers.MariaDB, 2)
	const stock = 1500
	clitest.Publish(t, c.admin(0), "sale", stock)
	var users atomic.Int64
	all := map[string]string{}
	c.load(&users, 400, all)
	dump := c.dump()
	c.load(&users, 400, all)

	// Users press on while the nodes are away: the proxy tells them nothing.
	l := newLoader(c.url, &users, stock, "sale")
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		l.runOn(ctx)
	}()
	c.drain()
	c.restore(dump)
	for _, n := range c.nodes {
		c.start(n)
	}
	c.await()
	eventually(t, clitest.Patience, "everything is granted", func(ctx context.Context) bool {
		stats, err := c.admin(0).Campaigns.Stats(ctx, "sale")
		return err == nil && stats.Granted == stock
	})
	stop()
	<-stopped
	c.collect(l.presses, all)
	if len(all) != stock {
		t.Errorf("%d of %d were granted and answered", len(all), stock)
	}
	c.keeps(all)
	c.verify()
	c.drain()
}

// TestDumpBeyondTheJournal restores a dump that is older than the journal's
// tail: no record tells what was granted in between, so that the nodes grant nothing
// from the campaign, and say so.
func TestDumpBeyondTheJournal(t *testing.T) {
	c := newCluster(t, servers.MariaDB, 2)
	clitest.Publish(t, c.admin(0), "sale", 1000)
	clitest.Publish(t, c.admin(0), "other", 10)
	var users atomic.Int64
	c.load(&users, 100, map[string]string{})
	dump := c.dump()
	c.load(&users, 100, map[string]string{})
	c.drain()
	c.restore(dump)
	if out := c.redisCLI("XTRIM", "dibs:{1:0}:journal", "MAXLEN", "1"); out == "0" {
		t.Fatal("nothing was trimmed")
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	for i, n := range c.nodes {
		c.refused(i, "sale", fmt.Sprint("late", i), "unavailable")
		c.granted(i, "other", fmt.Sprint("late", i))
		health, err := c.admin(i).Health(t.Context())
		if err == nil && health.Ready {
			t.Errorf("node %d is ready: %+v", i, health)
		}
		n.await(t, n.err, `campaign=sale.*does not (continue|follow)`)
	}
	broken := execute(t, clitest.Secrets, "verify", "--url", c.url)
	broken.Want(t, cli.ExitFailure, "sale", "from an older backup", "a promise is broken in ")
	repair := []string{"verify", "--url", c.url, "--repair"}
	execute(t, clitest.Secrets, repair...).Want(t, cli.ExitFailure, "NOT REPAIRED, sale", "--older-ledger continue", "--older-ledger end")
	execute(t, clitest.Secrets, append(repair, "--older-ledger", "newest")...).Want(t, cli.ExitUsage, `--older-ledger must be continue or end, not "newest"`)
	c.refused(0, "sale", "still", "unavailable")
	repair = append(repair, "--older-ledger", "continue")
	execute(t, clitest.Secrets, repair...).Want(t, cli.ExitOK, "repaired, sale: gave up what shard", "every promise holds")
	execute(t, clitest.Secrets, repair...).Want(t, cli.ExitOK, "there was nothing to repair", "every promise holds")
	for i := range c.nodes {
		eventually(t, clitest.Patience, "the campaign is sold again", func(context.Context) bool {
			id, _ := c.claim(i, "sale", fmt.Sprint("again", i))
			return id != ""
		})
	}
	c.verify()
	c.drain()
}

// TestDumpAfterTheJournal restores an older dump when the journal was trimmed to
// nothing, and Redis was started again: only the journal's end tells. The
// administrator ends the campaign.
func TestDumpAfterTheJournal(t *testing.T) {
	c := newCluster(t, servers.MariaDB, 1)
	clitest.Publish(t, c.admin(0), "sale", 10)
	dump := c.dump()
	for i := range 5 {
		c.granted(0, "sale", fmt.Sprint("lost", i))
	}
	c.drain()
	c.redisCLI("XTRIM", "dibs:{1:0}:journal", "MAXLEN", "0")
	c.redis.Kill()
	if err := c.redis.Start(); err != nil {
		t.Fatal(err)
	}
	c.restore(dump)
	c.start(c.nodes[0])
	c.refused(0, "sale", "late", "unavailable")
	health, err := c.admin(0).Health(t.Context())
	if said := health.Dependencies["campaigns"].Error; err != nil || health.Ready || !strings.Contains(said, "older than its journal") {
		t.Errorf("the node says %q, %+v, %v", said, health, err)
	}
	execute(t, clitest.Secrets, "verify", "--url", c.url, "sale").Want(t, cli.ExitFailure, "from an older backup")
	execute(t, clitest.Secrets, "verify", "--url", c.url, "--older-ledger", "end").Want(t, cli.ExitUsage, "--older-ledger goes with --repair")
	execute(t, clitest.Secrets, "verify", "--url", c.url, "--repair", "--older-ledger", "end", "sale").Want(t, cli.ExitOK,
		"repaired, sale: ended the campaign", "every promise holds")
	c.refused(0, "sale", "late", "ended")
	c.drain()
}

// TestDumpUnderRunningNodes restores such a dump while nodes run, which the
// manual forbids: they notice with the next claims, halt, and say so.
func TestDumpUnderRunningNodes(t *testing.T) {
	c := newCluster(t, servers.MariaDB, 2)
	clitest.Publish(t, c.admin(0), "sale", 1000)
	var users atomic.Int64
	dump := c.dump()
	c.load(&users, 50, map[string]string{})
	eventually(t, clitest.Patience, "everything is settled", func(ctx context.Context) bool {
		stats, err := c.admin(0).Campaigns.Stats(ctx, "sale")
		return err == nil && stats.JournalBacklog == 0
	})
	c.restore(dump)
	c.redisCLI("XTRIM", "dibs:{1:0}:journal", "MAXLEN", "1")
	for i := range c.nodes {
		late := 0
		eventually(t, clitest.Patience, "the campaign is halted", func(context.Context) bool {
			late++
			_, reason := c.claim(i, "sale", fmt.Sprintf("late%d-%d", i, late))
			return reason == "unavailable"
		})
		eventually(t, clitest.Patience, "the node says why", func(ctx context.Context) bool {
			health, err := c.admin(i).Health(ctx)
			return err == nil && !health.Ready && strings.Contains(health.Dependencies["campaigns"].Error, "older than its journal")
		})
	}
	execute(t, clitest.Secrets, "verify", "--url", c.url).Want(t, cli.ExitFailure, "sale", "from an older backup", "a promise is broken in ")
	for i := range c.nodes {
		for n := range 5 {
			c.refused(i, "sale", fmt.Sprintf("halted%d-%d", i, n), "unavailable")
		}
	}
	c.drain()
}

// TestDumpWithoutACampaign restores a dump that does not know a campaign: its
// number must not be given to another one, so that no node starts until the
// campaign is taken out of Redis.
func TestDumpWithoutACampaign(t *testing.T) {
	c := newCluster(t, servers.MariaDB, 1)
	clitest.Publish(t, c.admin(0), "sale", 10)
	dump := c.dump()
	clitest.Publish(t, c.admin(0), "forgotten", 10)
	c.granted(0, "forgotten", "a")
	c.drain()
	c.restore(dump)
	execute(t, c.env, "serve", "--listen", "127.0.0.1:0").Want(t, cli.ExitFailure, "the journal has shard 2/0")
	c.acceptLoss("2:0")
	c.start(c.nodes[0])
	clitest.Publish(t, c.admin(0), "next", 10)
	c.granted(0, "next", "b")
	c.granted(0, "sale", "b")
	c.verify()
	c.drain()
}

// TestDumpWithoutARestock restores a dump that lacks a restock of which units
// were granted: the ledger's constraint refuses the last of them, which is set
// aside, and the node and verify say so.
func TestDumpWithoutARestock(t *testing.T) {
	c := newCluster(t, servers.MariaDB, 1)
	clitest.Publish(t, c.admin(0), "sale", 3)
	dump := c.dump()
	c.changeStock(0, "sale", 2)
	for i := range 4 {
		c.granted(0, "sale", fmt.Sprint("u", i))
	}
	c.drain()
	c.restore(dump)
	c.start(c.nodes[0])
	n := c.nodes[0]
	n.await(t, n.err, `in quarantine.*a constraint of the database refused it`)
	eventually(t, clitest.Patience, "the node warns", func(ctx context.Context) bool {
		health, err := c.admin(0).Health(ctx)
		return err == nil && health.Dependencies["settling"].Warning != ""
	})
	if r := execute(t, clitest.Secrets, "verify", "--url", c.url); r.Code == cli.ExitOK {
		t.Errorf("verify finds nothing:\n%s", r.Out)
	}
	// With the restock made again, there is room for it.
	c.changeStock(0, "sale", 2)
	if r := execute(t, clitest.Secrets, "verify", "--repair", "--url", c.url); r.Code != cli.ExitOK {
		t.Errorf("the repair ended with %d:\n%s%s", r.Code, r.Out, r.Err)
	}
	c.verify()
	c.drain()
}

// acceptLoss takes a shard out of Redis, as the manual says.
func (c *cluster) acceptLoss(shard string) {
	c.t.Helper()
	c.redisCLI("HDEL", "dibs:shards", shard)
	number, of, _ := strings.Cut(shard, ":")
	product := "{product/*:" + of + "}:"
	for _, pattern := range []string{
		"dibs:{" + shard + "}:*", "dibs:state:{" + shard + "}", "dibs:{" + number + ":room}:*",
		"dibs:" + product + number + ":*", "dibs:state:" + product + shard, "dibs:" + product + "counted", "dibs:" + product + "units",
	} {
		for _, key := range strings.Fields(c.redisCLI("--scan", "--pattern", pattern)) {
			c.redisCLI("DEL", key)
		}
	}
}

// load presses until a quota is granted, and adds what was.
func (c *cluster) load(users *atomic.Int64, quota int64, all map[string]string) {
	c.t.Helper()
	l := newLoader(c.url, users, quota, "sale")
	ctx, stop := context.WithTimeout(c.t.Context(), clitest.Patience)
	defer stop()
	go func() {
		select {
		case <-l.enough:
			stop()
		case <-ctx.Done():
		}
	}()
	l.run(ctx)
	for _, err := range l.failures {
		c.t.Error(err)
	}
	c.collect(l.presses, all)
	if int64(len(l.presses)) < quota {
		c.t.Fatalf("%d presses in %s", len(l.presses), clitest.Patience)
	}
}

// dump and restore use the database's own tools.
func (c *cluster) dump() []byte {
	c.t.Helper()
	return c.tool(nil, "mariadb-dump", "--single-transaction", "--skip-ssl")
}

func (c *cluster) restore(dump []byte) {
	c.t.Helper()
	c.tool(dump, "mariadb", "--skip-ssl")
}

func (c *cluster) tool(in []byte, name string, args ...string) []byte {
	c.t.Helper()
	u, err := url.Parse(c.ledger)
	if err != nil {
		c.t.Fatal(err)
	}
	password, _ := u.User.Password()
	cmd := exec.CommandContext(c.t.Context(), name, append([]string{"--no-defaults"}, append(args,
		"--host="+u.Hostname(), "--port="+u.Port(), "--user="+u.User.Username(), "--password="+password, strings.TrimPrefix(u.Path, "/"))...)...)
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &problems
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%s: %v: %s", name, err, &problems)
	}
	return out.Bytes()
}

// redisCLI runs one command of Redis.
func (c *cluster) redisCLI(args ...string) string {
	c.t.Helper()
	_, port, _ := strings.Cut(c.redis.Addr(), ":")
	out, err := exec.CommandContext(c.t.Context(), "redis-cli", append([]string{"-p", port}, args...)...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("redis-cli %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

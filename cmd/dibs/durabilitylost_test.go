package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/api"
)

// lostLevel is a setting that is changed under running nodes, so that they do not give
// their level any more.
type lostLevel struct {
	level, setting string
	// text is what all that tells of the setting must name: what it is, and what to set it
	// to. log is how the log begins to tell.
	text, log string
	// fine is another setting of the level, which stays as it is.
	fine         string
	wrong, right func()
}

// TestDurabilityLost changes a setting of Redis under running nodes: within a second
// claims are refused, with an effect of none, and readiness, metrics and log name the
// setting. A node that was told to go on goes on, and warns. When it is put right, all
// is as before, by itself.
func TestDurabilityLost(t *testing.T) {
	c := clusterOn(t, "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"), 2)
	c.startWarned()
	c.losesLevel(&lostLevel{
		level: "durable", setting: "appendfsync", text: "appendfsync is everysec, want always: set appendfsync always", log: "Redis does not give its level",
		fine:  "appendonly",
		wrong: func() { c.redisCLI("CONFIG", "SET", "appendfsync", "everysec") }, right: func() { c.redisCLI("CONFIG", "SET", "appendfsync", "always") },
	})
}

// TestDurabilityLostInTheDatabase is TestDurabilityLost for a setting of the database that
// has the memory engine's journal, or whose commit a yes waits for.
func TestDurabilityLostInTheDatabase(t *testing.T) {
	for _, of := range []struct {
		name, level, fine string
		get               func() (*servers.Server, error)
		nodes             func(t *testing.T, ledger string) *cluster
	}{
		{"journal in MariaDB", "durable", "journal", servers.MariaDB, func(t *testing.T, ledger string) *cluster { return clusterAt(t, "memory", ledger, 1) }},
		{"journal in PostgreSQL, warned", "durable", "full_page_writes", servers.Postgres, func(t *testing.T, ledger string) *cluster {
			c := clusterAt(t, "memory", ledger, 0)
			c.startWarned()
			return c
		}},
		{"ledgered in PostgreSQL", "ledgered", "maxmemory-policy", servers.Postgres, func(t *testing.T, ledger string) *cluster {
			c := clusterOn(t, ledger, 1, "--durability", "ledgered")
			c.startWarned("--durability", "ledgered")
			return c
		}},
	} {
		t.Run(of.name, func(t *testing.T) {
			db, ledger, _ := servers.Database(t, of.get)
			c := of.nodes(t, ledger)
			var right func()
			l := &lostLevel{level: of.level, fine: of.fine, log: "the database does not keep what it commits", right: func() { right() }}
			l.wrong = func() {
				var is, wanted string
				l.setting, is, wanted, right = db.LoseCommits(t)
				l.text = fmt.Sprintf("%s is %s, want %s: set %s = %s", l.setting, is, wanted, l.setting, wanted)
			}
			c.losesLevel(l)
		})
	}
}

// startWarned adds a node that grants all the same.
func (c *cluster) startWarned(args ...string) {
	c.t.Helper()
	n := &member{address: "127.0.0.1:0", warned: true}
	c.start(n, append(args, "--durability-lost", "warn")...)
	c.nodes = append(c.nodes, n)
}

// losesLevel has nodes lose their level, and get it back.
func (c *cluster) losesLevel(l *lostLevel) {
	t := c.t
	t.Helper()
	clitest.Publish(t, c.admin(0), "sale", 1000)
	for i := range c.nodes {
		c.granted(i, "sale", "early"+string(rune('a'+i)))
	}

	changed := time.Now()
	l.wrong()
	for i, n := range c.nodes {
		if n.warned {
			continue
		}
		for _, key := range []string{"", "key"} {
			c.refusedSoon(i, key)
		}
		c.granted(i, "sale", "earlya")
	}
	if took := time.Since(changed); took > 20*time.Second {
		t.Errorf("claims are refused %s after the change", took)
	}
	for i, n := range c.nodes {
		n.await(t, n.err, l.log+`.*`+l.text)
		c.tellsOfLoss(i, l)
		if n.warned {
			c.granted(i, "sale", "meanwhile")
		}
	}

	l.right()
	for i := range c.nodes {
		eventually(t, clitest.Patience, "a grant", func(ctx context.Context) bool {
			_, _, err := c.user(i, "late"+string(rune('a'+i))).Claim(ctx, "sale", 1, "key")
			h, healthErr := c.admin(i).Health(ctx)
			return err == nil && healthErr == nil && h.Ready && h.Dependencies["engine"] == api.DependencyView{OK: true}
		})
	}
	c.verify()
	c.drain()
}

// tellsOfLoss checks what readiness and metrics of a node say.
func (c *cluster) tellsOfLoss(i int, l *lostLevel) {
	c.t.Helper()
	n := c.nodes[i]
	h, err := c.admin(i).Health(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	engine := h.Dependencies["engine"]
	if h.Ready != n.warned || engine.OK != n.warned || (engine.Error == "") != n.warned || !strings.Contains(engine.Error+engine.Warning, l.text) {
		c.t.Errorf("node %d says %+v", i, h)
	}
	metrics, err := get(c.t.Context(), n.url()+"/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	for setting, lost := range map[string]int{l.setting: 1, l.fine: 0} {
		if want := fmt.Sprintf(`dibs_durability_lost{level="%s",setting="%s"} %d`, l.level, setting, lost); !strings.Contains(metrics, want) {
			c.t.Errorf("the metrics of node %d have no %s", i, want)
		}
	}
}

// TestDurabilityLostNonsense names the words that there are.
func TestDurabilityLostNonsense(t *testing.T) {
	r := execute(t, clitest.Secrets, "serve", "--engine", "redis://127.0.0.1:1", "--durability-lost", "ignore")
	if r.Code == cli.ExitOK || !strings.Contains(r.Err, `durability_lost (flag --durability-lost): must be refuse or warn, not "ignore"`) {
		t.Errorf("serve ends with %d and says %s", r.Code, r.Err)
	}
}

// refusedSoon waits until new users are refused at a node, as they have to be.
func (c *cluster) refusedSoon(i int, key string) {
	c.t.Helper()
	n := 0
	eventually(c.t, clitest.Patience, "a refusal", func(ctx context.Context) bool {
		n++
		_, _, err := c.user(i, "new"+key+string(rune('a'+i))+strings.Repeat("x", n)).Claim(ctx, "sale", 1, key)
		var refusal *client.Error
		if err == nil {
			return false
		}
		if !errors.As(err, &refusal) || refusal.Reason != "unavailable" || refusal.Status != 503 || refusal.Effect != dibs.EffectNone || !refusal.Retryable {
			c.t.Fatalf("a claim with the key %q is %v: %+v", key, err, refusal)
		}
		return true
	})
}

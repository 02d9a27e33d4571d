package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"

	"github.com/dibs-dev/dibs/api"
)

// lostText is what all that tells of a setting must name: what it is, and what to
// set it to.
const lostText = "appendfsync is everysec, want always: set appendfsync always"

// TestDurabilityLost changes a setting of Redis under running nodes: within a second
// claims are refused, with an effect of none, and readiness, metrics and log name the
// setting. A node that was told to go on goes on, and warns. When it is put right, all
// is as before, by itself.
func TestDurabilityLost(t *testing.T) {
	c := clusterOn(t, "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"), 2)
	warned := &member{address: "127.0.0.1:0"}
	c.start(warned, "--durability-lost", "warn")
	c.nodes = append(c.nodes, warned)
	clitest.Publish(t, c.admin(0), "sale", 1000)
	for i := range c.nodes {
		c.granted(i, "sale", "early"+string(rune('a'+i)))
	}

	changed := time.Now()
	c.redisCLI("CONFIG", "SET", "appendfsync", "everysec")
	for i := range 2 {
		for _, key := range []string{"", "key"} {
			c.refusedSoon(i, key)
		}
		c.granted(i, "sale", "earlya")
	}
	if took := time.Since(changed); took > 20*time.Second {
		t.Errorf("claims are refused %s after the change", took)
	}
	for i, n := range c.nodes {
		refuses := n != warned
		h, err := c.admin(i).Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		engine := h.Dependencies["engine"]
		said := engine.Error + engine.Warning
		if h.Ready == refuses || engine.OK == refuses || (engine.Error != "") != refuses || !strings.Contains(said, lostText) {
			t.Errorf("node %d says %+v", i, h)
		}
		metrics, err := get(t.Context(), n.url()+"/metrics")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`dibs_durability_lost{level="durable",setting="appendfsync"} 1`, `dibs_durability_lost{level="durable",setting="appendonly"} 0`,
		} {
			if !strings.Contains(metrics, want) {
				t.Errorf("the metrics of node %d have no %s", i, want)
			}
		}
		n.await(t, n.err, `Redis does not give its level.*`+lostText)
	}
	c.granted(2, "sale", "meanwhile")

	c.redisCLI("CONFIG", "SET", "appendfsync", "always")
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

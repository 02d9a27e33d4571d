package servers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

// do runs a command and returns its answer as a text.
func do(t *testing.T, r *servers.Redis, args ...string) string {
	t.Helper()
	m, err := r.Do(t.Context(), args...)
	must(t, err)
	return m.String()
}

// TestPowerLossTakesWhatWasNotSynced writes to a server that never syncs and to
// one that always does: the first loses it, the second does not.
func TestPowerLossTakesWhatWasNotSynced(t *testing.T) {
	for policy, kept := range map[string]string{"no": "0", "always": "1"} {
		r, disk, err := servers.StartRedisOnDisk(t.TempDir(), "--appendonly", "yes", "--appendfsync", policy)
		must(t, err)
		t.Cleanup(r.Kill)
		do(t, r, "SET", "told", "1")
		cut, err := disk.PowerLoss()
		must(t, err)
		if kept == "0" && cut == 0 {
			t.Error("nothing was cut of what was not synced")
		}
		must(t, r.Start())
		if got := ask(t, r, "EXISTS told", 1); got != ":"+kept {
			t.Errorf("with appendfsync %s, after the power loss EXISTS answers %s, want %s", policy, got, kept)
		}
	}
}

func TestSlowDisk(t *testing.T) {
	r, disk, err := servers.StartRedisOnDisk(t.TempDir(), servers.RedisAlways...)
	must(t, err)
	t.Cleanup(r.Kill)
	must(t, disk.Slow(300*time.Millisecond))
	begun := time.Now()
	do(t, r, "SET", "slow", "1")
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("an answer took %v", took)
	}
}

func TestFreeze(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir())
	must(t, err)
	t.Cleanup(r.Kill)
	must(t, r.Freeze())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Do(ctx, "PING"); err == nil {
		t.Error("a frozen server answers")
	}
	must(t, r.Thaw())
	do(t, r, "PING")
}

// TestSentinelFailsOver kills the master and finds what was replicated with
// the preferred replica.
func TestSentinelFailsOver(t *testing.T) {
	s, err := servers.StartSentinel(t.Context(), t.TempDir(), servers.RedisAlways...)
	must(t, err)
	t.Cleanup(s.Stop)
	if !strings.Contains(s.URL(), "master_set=dibs") {
		t.Errorf("the URL is %s", s.URL())
	}
	master, err := s.Master(t.Context())
	must(t, err)
	if master != s.Members[0] {
		t.Errorf("the master is %s", master.Addr())
	}
	do(t, master, "SET", "kept", "1")
	do(t, master, "WAIT", "2", "5000")
	must(t, s.Prefer(t.Context(), s.Members[2]))
	master.Kill()
	must(t, s.Promoted(t.Context(), s.Members[2]))
	if got := ask(t, s.Members[2], "EXISTS kept", 1); got != ":1" {
		t.Errorf("EXISTS answers %s", got)
	}
	must(t, master.Start())
	must(t, s.Ready(t.Context()))
}

// TestClusterMigratesAndFailsOver moves a slot, then kills its new owner.
func TestClusterMigratesAndFailsOver(t *testing.T) {
	c, err := servers.StartCluster(t.Context(), t.TempDir())
	must(t, err)
	t.Cleanup(c.Stop)
	slot, from, err := c.Owner(t.Context(), "{a}1")
	must(t, err)
	to := c.Members[0]
	if from == to {
		to = c.Members[1]
	}
	for i := range 5 {
		do(t, from, "SET", fmt.Sprintf("{a}%d", i), "1")
	}
	steps := 0
	must(t, c.Migrate(t.Context(), slot, from, to, func() { steps++ }))
	if steps != 6 {
		t.Errorf("%d steps", steps)
	}
	_, owner, err := c.Owner(t.Context(), "{a}1")
	must(t, err)
	if owner != to {
		t.Errorf("%s serves the slot", owner.Addr())
	}
	do(t, to, "WAIT", "1", "5000")
	to.Kill()
	for {
		_, owner, err = c.Owner(t.Context(), "{a}1")
		if err == nil {
			break
		}
	}
	if got := ask(t, owner, "EXISTS {a}4", 1); got != ":1" {
		t.Errorf("EXISTS answers %s", got)
	}
}

func TestProxy(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir())
	must(t, err)
	t.Cleanup(r.Kill)
	p, err := servers.StartProxy(r.Addr())
	must(t, err)
	defer p.Stop()
	ping := func() time.Duration {
		begun := time.Now()
		if got := askAt(t, p.Addr(), "PING", 1); got != "+PONG" {
			t.Errorf("PING answers %q", got)
		}
		return time.Since(begun)
	}
	ping()
	must(t, p.Poison("slow", "latency", "downstream", map[string]int64{"latency": 200}))
	if took := ping(); took < 200*time.Millisecond {
		t.Errorf("a slow answer took %v", took)
	}
	p.Heal(t.Context())
	// On a busy machine one may take long; a slow proxy would make all of them.
	for begun := time.Now(); ping() > 200*time.Millisecond; {
		if time.Since(begun) > time.Minute {
			t.Fatal("healed, it is as slow as before")
		}
	}
	if err := p.Poison("odd", "sour", "downstream", nil); err == nil {
		t.Error("there is a toxic that nobody knows")
	}
	if _, err := os.Stat(filepath.Join(r.Dir(), "server.log")); err != nil {
		t.Error(err)
	}
}

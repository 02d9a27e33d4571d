package servers_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

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

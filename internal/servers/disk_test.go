package servers_test

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

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

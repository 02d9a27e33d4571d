//go:build soak

package servers_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

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

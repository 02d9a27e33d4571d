package servers_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestZooKeeper starts a server, kills it and starts it again.
func TestZooKeeper(t *testing.T) {
	z, err := servers.StartZooKeeper(t.TempDir())
	must(t, err)
	t.Cleanup(z.Kill)
	for range 2 {
		text, err := z.Ask(t.Context(), "wchs")
		must(t, err)
		if !strings.Contains(text, "Total watches:0") {
			t.Errorf("it answers %q", text)
		}
		z.Kill()
		if _, err := z.Ask(t.Context(), "wchs"); err == nil {
			t.Error("the killed server answers")
		}
		must(t, z.Start())
	}
}

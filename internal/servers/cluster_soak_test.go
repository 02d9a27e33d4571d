//go:build soak

package servers_test

import (
	"fmt"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

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

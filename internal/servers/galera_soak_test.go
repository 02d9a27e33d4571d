//go:build soak

package servers_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestGalera writes to a server of a cluster, and reads at another, which is
// killed and joins again.
func TestGalera(t *testing.T) {
	t.Parallel()
	g, err := servers.StartGalera(3)
	must(t, err)
	defer func() { must(t, g.Stop()) }()
	must(t, g.Node(0).Exec("", "CREATE DATABASE d"))
	must(t, g.Node(0).Exec("d", "CREATE TABLE kept (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO kept VALUES (1, 7)"))
	g.Node(2).Kill()
	must(t, g.Node(1).Exec("d", "INSERT INTO kept VALUES (2, 8)"))
	must(t, g.Node(2).Start())
	for i := range 3 {
		if sum := sumOf(t, g.Node(i), "d"); sum != 15 {
			t.Errorf("on server %d the rows add up to %d", i, sum)
		}
	}
}

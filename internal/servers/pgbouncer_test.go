package servers_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestPgBouncer asks a server through a pooler.
func TestPgBouncer(t *testing.T) {
	s, err := servers.Postgres()
	must(t, err)
	for _, mode := range []string{"session", "transaction"} {
		b, stop, err := servers.PgBouncer(s, mode)
		must(t, err)
		must(t, b.Exec("", "SELECT 1"))
		must(t, stop())
	}
}

package servers_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestPostgresPair has a standby lack what was written while it was cut off, and
// take writes once it is promoted.
func TestPostgresPair(t *testing.T) {
	t.Parallel()
	p, err := servers.StartPostgresPair(false)
	must(t, err)
	defer func() { must(t, p.Stop()) }()
	must(t, p.Primary.Exec("", "CREATE TABLE kept (n INTEGER)", "INSERT INTO kept VALUES (7)"))
	must(t, p.CaughtUp())
	if err := p.Standby.Exec("", "INSERT INTO kept VALUES (1)"); err == nil {
		t.Error("the standby takes writes")
	}
	must(t, p.Cut())
	must(t, p.Primary.Exec("", "INSERT INTO kept VALUES (8)"))
	p.Primary.Kill()
	must(t, p.Promote())
	must(t, p.Standby.Exec("", "INSERT INTO kept VALUES (1)"))
	if sum := sumOf(t, p.Standby, ""); sum != 8 {
		t.Errorf("the rows add up to %d", sum)
	}
	must(t, p.Demote())
	if sum := sumOf(t, p.Primary, ""); sum != 8 {
		t.Errorf("on the old primary the rows add up to %d", sum)
	}
}

// sumOf adds up the test's rows.
func sumOf(t *testing.T, s *servers.Server, database string) (sum int) {
	t.Helper()
	db, err := s.Open(database)
	must(t, err)
	must(t, db.QueryRow("SELECT SUM(n) FROM kept").Scan(&sum))
	must(t, db.Close())
	return sum
}

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

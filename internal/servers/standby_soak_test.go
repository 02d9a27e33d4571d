//go:build soak

package servers_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/badnet"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestPostgresPair has a standby lack what was written while it was cut off, and
// take writes once it is promoted.
func TestPostgresPair(t *testing.T) {
	t.Parallel()
	p, err := servers.StartPostgresPair(false, badnet.Link)
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

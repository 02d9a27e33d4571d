//go:build soak

package main

import (
	"database/sql"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestKillErasureMySQL and TestKillErasurePostgres are TestKillErasure with ledger and
// journal in a server.
func TestKillErasureMySQL(t *testing.T)    { killErasuresOnServer(t, servers.MariaDB) }
func TestKillErasurePostgres(t *testing.T) { killErasuresOnServer(t, servers.Postgres) }

func killErasuresOnServer(t *testing.T, get func() (*servers.Server, error)) {
	s, ledger, name := servers.Database(t, get)
	killErasures(t, t.TempDir(), ledger, (rounds(t)+5)/6, func() []*sql.DB {
		db, err := s.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		return []*sql.DB{db}
	})
}

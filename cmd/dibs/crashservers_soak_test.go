//go:build soak

package main

import (
	"database/sql"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// The kills of the files crash*_test.go once more, with ledger and journal in a server that
// lives on. With every change, TestKillMySQL alone is one of these.
func TestKillPostgres(t *testing.T)  { killOnServer(t, servers.Postgres) }
func TestKillLifeMySQL(t *testing.T) { killLife(t, on(t, servers.MariaDB), (rounds(t)+4)/5) }
func TestRedPacketKilledMySQL(t *testing.T) {
	killPackets(t, on(t, servers.MariaDB), (rounds(t)+18)/19)
}
func TestKillEventsMySQL(t *testing.T)     { killEvents(t, on(t, servers.MariaDB), (rounds(t)+4)/5) }
func TestKillEventsPostgres(t *testing.T)  { killEvents(t, on(t, servers.Postgres), (rounds(t)+4)/5) }
func TestKillErasureMySQL(t *testing.T)    { killErasuresOnServer(t, servers.MariaDB) }
func TestKillErasurePostgres(t *testing.T) { killErasuresOnServer(t, servers.Postgres) }

// on returns the address of an empty database of a server.
func on(t *testing.T, get func() (*servers.Server, error)) string {
	t.Helper()
	_, ledger, _ := servers.Database(t, get)
	return ledger
}

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

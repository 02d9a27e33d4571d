//go:build soak

package main

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestKillEventsMySQL and TestKillEventsPostgres are TestKillEvents with ledger
// and journal in a server.
func TestKillEventsMySQL(t *testing.T)    { killEventsOnServer(t, servers.MariaDB) }
func TestKillEventsPostgres(t *testing.T) { killEventsOnServer(t, servers.Postgres) }

func killEventsOnServer(t *testing.T, get func() (*servers.Server, error)) {
	_, ledger, _ := servers.Database(t, get)
	killEvents(t, ledger, (rounds(t)+4)/5)
}

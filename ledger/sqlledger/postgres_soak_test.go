//go:build soak

package sqlledger_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/ledgertest"
)

// TestPostgresLedger checks at the server itself what depends on connections. With every change all
// of the contract is checked behind a pooler, by TestPooledLedger: PostgreSQL starts a process for
// each connection, and most of the time would go into that. TestPostgresJournal is the same of a journal.
func TestPostgresLedger(t *testing.T) { runLedger(t, servers.Postgres, ledgertest.RunConnections) }

func TestPostgresJournal(t *testing.T) { runJournal(t, servers.Postgres) }

package sqlledger_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/ledgertest"
)

// TestPooledLedger: behind a pooler that gives each connection a whole session, a ledger
// does all that the contract asks for. TestPooledJournal is the same of a journal.
func TestPooledLedger(t *testing.T) { runLedger(t, pooler(t), ledgertest.Run) }

func TestPooledJournal(t *testing.T) { runJournal(t, pooler(t)) }

// pooler starts a pooler of sessions before the PostgreSQL server, which ends with the test.
func pooler(t *testing.T) func() (*servers.Server, error) {
	return func() (*servers.Server, error) {
		s, err := servers.Postgres()
		if err != nil {
			return nil, err
		}
		b, stop, err := servers.PgBouncer(s, "session")
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
		return b, nil
	}
}

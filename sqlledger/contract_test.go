package sqlledger_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/ledgertest"
	"github.com/dibs-dev/dibs/sqlledger"
)

func TestMain(m *testing.M) {
	if helper() {
		return
	}
	goleak.VerifyTestMain(m)
}

func TestSQLiteLedger(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) func() dibs.Ledger {
		path := filepath.Join(t.TempDir(), "ledger.db")
		return func() dibs.Ledger { return openLedger(t, path) }
	})
}

func TestSQLiteJournal(t *testing.T) {
	ledgertest.RunJournal(t, func(t *testing.T) func() dibs.JournalStore {
		path := filepath.Join(t.TempDir(), "journal.db")
		return func() dibs.JournalStore { return openJournal(t, path) }
	})
}

// openLedger opens a ledger that the caller closes.
func openLedger(t testing.TB, path string) *sqlledger.Ledger {
	t.Helper()
	l, err := sqlledger.OpenSQLite(t.Context(), path, sqlledger.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openJournal opens a journal that the caller closes.
func openJournal(t testing.TB, path string) *sqlledger.JournalTable {
	t.Helper()
	j, err := sqlledger.OpenSQLiteJournal(t.Context(), path, sqlledger.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

package sqlledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/fresh"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/ledgertest"
	"github.com/dibs-dev/dibs/sqlledger"
)

func TestMain(m *testing.M) {
	if helper() {
		return
	}
	code := m.Run()
	if err := errors.Join(servers.StopAll(), goleak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// inServers starts the servers that the tests of this file need, by the name
// of their database.
var inServers = map[string]func() (*servers.Server, error){"mysql": servers.MariaDB, "postgres": servers.Postgres}

// eachServer runs a test on each kind of server.
func eachServer(t *testing.T, f func(t *testing.T, s *servers.Server)) {
	for name, get := range inServers {
		t.Run(name, func(t *testing.T) {
			s, err := get()
			if err != nil {
				t.Fatal(err)
			}
			f(t, s)
		})
	}
}

func TestMySQLLedger(t *testing.T)     { runLedger(t, servers.MariaDB) }
func TestPostgresLedger(t *testing.T)  { runLedger(t, servers.Postgres) }
func TestMySQLJournal(t *testing.T)    { runJournal(t, servers.MariaDB) }
func TestPostgresJournal(t *testing.T) { runJournal(t, servers.Postgres) }

// The suites wait for the servers' disks most of the time: they run beside one
// another, after the tests that kill the servers.
func runLedger(t *testing.T, get func() (*servers.Server, error)) {
	t.Parallel()
	s, err := get()
	if err != nil {
		t.Fatal(err)
	}
	ready := tables{t: t, s: s, make: func(url string) { closeAll(t, openAt(t, url)) }}
	ledgertest.Run(t, func(t *testing.T) func() ledger.Ledger {
		url := ready.take(t)
		return func() ledger.Ledger { return openAt(t, url).Parts() }
	})
}

func runJournal(t *testing.T, get func() (*servers.Server, error)) {
	t.Parallel()
	s, err := get()
	if err != nil {
		t.Fatal(err)
	}
	ready := tables{t: t, s: s, make: func(url string) { closeAll(t, openJournalAt(t, url)) }}
	ledgertest.RunJournal(t, func(t *testing.T) func() dibs.JournalStore {
		url := ready.take(t)
		return func() dibs.JournalStore { return openJournalAt(t, url) }
	})
}

// openAt opens the ledger at an address; the caller closes it.
func openAt(t testing.TB, address string) *sqlledger.Ledger {
	t.Helper()
	l, err := sqlledger.Open(t.Context(), address, sqlledger.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openJournalAt opens the journal at an address; the caller closes it.
func openJournalAt(t testing.TB, address string) *sqlledger.JournalTable {
	t.Helper()
	j, err := sqlledger.OpenJournal(t.Context(), address, sqlledger.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestSQLiteLedger(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) func() ledger.Ledger {
		path := filepath.Join(freshLedger(t), "ledger.db")
		return func() ledger.Ledger { return openLedger(t, path).Parts() }
	})
}

// freshLedger is a folder with an empty ledger.
func freshLedger(t testing.TB) string {
	return fresh.Folder(t, "ledger", func(dir string) error {
		l, err := sqlledger.OpenSQLite(context.Background(), filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
		if err != nil {
			return err
		}
		return l.Close()
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

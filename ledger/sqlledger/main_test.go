package sqlledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/fresh"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

func escaped(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// breakCommit makes every commit that adds a row to a table fail, at the commit
// itself: a reference that is checked only then points nowhere.
func breakCommit(t *testing.T, path, table string) (mend func()) {
	t.Helper()
	raw(t, path,
		`CREATE TABLE nowhere (id INTEGER PRIMARY KEY)`,
		`CREATE TABLE orphans (id INTEGER REFERENCES nowhere (id) DEFERRABLE INITIALLY DEFERRED)`,
		`CREATE TRIGGER break_commit AFTER INSERT ON `+table+` BEGIN INSERT INTO orphans VALUES (1); END`)
	return func() { raw(t, path, `DROP TRIGGER break_commit`) }
}

// unknownEffect checks that an error says that the effect is not known.
func unknownEffect(t *testing.T, what string, err error) {
	t.Helper()
	var said *dibs.Error
	if !errors.As(err, &said) || said.Reason != dibs.Unavailable || said.Effect != dibs.EffectUnknown {
		t.Errorf("%s: got error %v, want unavailable with an unknown effect", what, err)
	}
}

func closeAll(t *testing.T, all ...interface{ Close() error }) {
	t.Helper()
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// raw changes a file behind the ledger's back.
func raw(t *testing.T, path string, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := tryRaw(t, path, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// tryRaw runs a statement with the constraints on, unless it begins by turning
// them off.
func tryRaw(t *testing.T, path, statement string) error {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+escaped(path)+"?_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statement)
	return errors.Join(err, db.Close())
}

func TestMain(m *testing.M) {
	if helper() {
		return
	}
	code := m.Run()
	if err := errors.Join(servers.StopAll(), leaks.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// inServers starts the servers that the tests of this file need, by the name of
// their database.
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

// unhurried is the longest that a call may take in tests that are not about that: a server
// that others use too may be slow.
const unhurried = sqlledger.MaxTimeout

// openAt opens the ledger at an address; the caller closes it.
func openAt(t testing.TB, address string) *sqlledger.Ledger {
	t.Helper()
	l, err := sqlledger.Open(t.Context(), address, sqlledger.Options{Migrate: true, Timeout: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openJournalAt opens the journal at an address; the caller closes it.
func openJournalAt(t testing.TB, address string) *sqlledger.JournalTable {
	t.Helper()
	j, err := sqlledger.OpenJournal(t.Context(), address, sqlledger.Options{Migrate: true, Timeout: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	return j
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

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package sqlledger_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/ledger/ledgertest"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// migrator is what the ledger and the journal have in common.
type migrator interface {
	Migrate(ctx context.Context) (int, error)
	SchemaVersion(ctx context.Context) (current, want int64, err error)
	Close() error
}

// kinds opens both kinds of files.
var kinds = map[string]func(context.Context, string, sqlledger.Options) (migrator, error){
	"ledger": func(ctx context.Context, path string, o sqlledger.Options) (migrator, error) {
		l, err := sqlledger.OpenSQLite(ctx, path, o)
		if err != nil {
			return nil, err
		}
		return l, nil
	},
	"journal": func(ctx context.Context, path string, o sqlledger.Options) (migrator, error) {
		j, err := sqlledger.OpenSQLiteJournal(ctx, path, o)
		if err != nil {
			return nil, err
		}
		return j, nil
	},
}

func TestSchema(t *testing.T) {
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			ctx, path := t.Context(), filepath.Join(t.TempDir(), "new folder", "a?b#c%20d.db")
			if _, err := open(ctx, path, sqlledger.Options{}); !errors.Is(err, sqlledger.ErrSchema) {
				t.Errorf("open an empty file without migrating: %v", err)
			}
			m, err := open(ctx, path, sqlledger.Options{AnySchema: true})
			if err != nil {
				t.Fatal(err)
			}
			current, want, err := m.SchemaVersion(ctx)
			if err != nil || current != 0 || want < 1 {
				t.Errorf("the version of an empty file is %d of %d: %v", current, want, err)
			}
			files, err := filepath.Glob(map[string]string{"ledger": "migrations/sqlite/*", "journal": "migrations/journal_sqlite/*"}[kind])
			if n, migrateErr := m.Migrate(ctx); errors.Join(err, migrateErr) != nil || n != len(files) {
				t.Errorf("%d migrations, want %d: %v", n, len(files), errors.Join(err, migrateErr))
			}
			if n, err := m.Migrate(ctx); err != nil || n != 0 {
				t.Errorf("%d migrations the second time: %v", n, err)
			}
			if current, want, err = m.SchemaVersion(ctx); err != nil || current != want {
				t.Errorf("the version is %d of %d: %v", current, want, err)
			}
			closeAll(t, m)
			for _, migrate := range []bool{false, true} {
				if m, err = open(ctx, path, sqlledger.Options{Migrate: migrate}); err != nil {
					t.Fatal(err)
				}
				closeAll(t, m)
			}
			modes(t, path)
			laidOut(t, path, map[string]uint16{"ledger": 4096, "journal": 8192}[kind])

			raw(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
			for _, migrate := range []bool{false, true} {
				if _, err := open(ctx, path, sqlledger.Options{Migrate: migrate}); !errors.Is(err, sqlledger.ErrSchema) {
					t.Errorf("open a newer file, migrate %v: %v", migrate, err)
				}
			}
		})
	}
}

// laidOut checks the size of the file's pages and its mark, by the file's
// header.
func laidOut(t *testing.T, path string, page uint16) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil || len(file) < 100 {
		t.Fatalf("a file of %d bytes: %v", len(file), err)
	}
	if got := binary.BigEndian.Uint16(file[16:]); got != page {
		t.Errorf("pages of %d bytes, want %d", got, page)
	}
	if got := string(file[68:72]); got != "dibs" {
		t.Errorf("the file's mark is %q", got)
	}
}

// modes checks that only their owner can read the files.
func modes(t *testing.T, path string) {
	t.Helper()
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil || folder.Mode().Perm() != 0o700 {
		t.Errorf("the folder's mode is %v: %v", folder.Mode(), err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the mode of %s is %v: %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestMySQLLedger(t *testing.T) { runLedger(t, servers.MariaDB, ledgertest.Run) }

// The suites wait for the servers' disks most of the time: they run beside one
// another, after the tests that kill the servers.
func runLedger(t *testing.T, get func() (*servers.Server, error), run func(*testing.T, ledgertest.Factory)) {
	t.Parallel()
	s, err := get()
	if err != nil {
		t.Fatal(err)
	}
	ready := tables{t: t, s: s, make: func(url string) { closeAll(t, openAt(t, url)) }}
	run(t, func(t *testing.T) func() ledger.Ledger {
		url := ready.take(t)
		return func() ledger.Ledger { return openAt(t, url).Parts() }
	})
}

func TestSQLiteLedger(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) func() ledger.Ledger {
		path := filepath.Join(freshLedger(t), "ledger.db")
		return func() ledger.Ledger { return openLedger(t, path).Parts() }
	})
}

// TestProcessesMigrateTogether: processes that start at the same time on a
// ledger that does not exist yet all find it ready.
func TestProcessesMigrateTogether(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { migratesOnce(t, filepath.Join(t.TempDir(), "new", "ledger.db")) })
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, _ := s.DatabaseFor(t)
		migratesOnce(t, url)
	})
}

func migratesOnce(t *testing.T, path string) {
	var started []*process
	for range 3 {
		p, line := startHelper(t, "open and write", path)
		if line != "ready" {
			t.Fatalf("the helper said %q", line)
		}
		started = append(started, p)
	}
	for _, p := range started {
		closeAll(t, p.in)
	}
	for _, p := range started {
		said, err := io.ReadAll(p.out)
		if err := errors.Join(err, p.Wait()); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
}

// TestServerReadOnly: a server that does not write, as a replica, says so and
// what to do, whether the schema is there or not.
func TestServerReadOnly(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		ctx := t.Context()
		url, name := s.DatabaseFor(t)
		other, otherName := s.DatabaseFor(t)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		j := openJournalAt(t, url)
		must(errors.Join(j.Close(), openAt(t, url).Close()))
		on, off := []string{"ALTER DATABASE %s SET default_transaction_read_only = on"}, []string{"ALTER DATABASE %s RESET default_transaction_read_only"}
		if strings.HasPrefix(url, "mysql") {
			// A user with every right writes all the same.
			must(s.Exec("", "CREATE USER IF NOT EXISTS plain IDENTIFIED BY 'plain-pw'"))
			defer func() { must(s.Exec("", "DROP USER plain")) }()
			asPlain := strings.NewReplacer(servers.User+":"+servers.Password, "plain:plain-pw")
			url, other = asPlain.Replace(url), asPlain.Replace(other)
			on, off = []string{"GRANT ALL ON %s.* TO plain", "SET GLOBAL read_only = 1"}, []string{"SET GLOBAL read_only = 0"}
		}
		each := func(statements []string) {
			for _, statement := range statements {
				for _, n := range []string{name, otherName} {
					must(s.Exec("", strings.ReplaceAll(statement, "%s", n)))
				}
			}
		}
		defer each(off)
		each(on)
		refusal := func(what string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "use the address of the one that is written to") {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := sqlledger.Open(ctx, other, sqlledger.Options{Migrate: true})
		refusal("an empty database", err)
		_, err = sqlledger.OpenJournal(ctx, other, sqlledger.Options{Migrate: true})
		refusal("an empty database for the journal", err)
		j = openJournalAt(t, url)
		defer closeAll(t, j)
		_, err = j.Acquire(ctx, "the test")
		refusal("acquiring", err)
		l := openAt(t, url)
		defer closeAll(t, l)
		if _, err := l.Keys(ctx); err != nil {
			t.Errorf("reading: %v", err)
		}
		err = l.InsertProduct(ctx, &dibs.Product{ID: "p"})
		refusal("writing", err)
		var said *dibs.Error
		if !errors.As(err, &said) || said.Effect != dibs.EffectNone {
			t.Errorf("writing: %v", err)
		}
	})
}

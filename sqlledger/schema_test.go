package sqlledger_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/sqlledger"
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

// TestMigrateOwnedJournal: nobody migrates under the owner's feet.
func TestMigrateOwnedJournal(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "journal.db"))
	if _, err := j.Acquire(t.Context(), "the owner"); err != nil {
		t.Fatal(err)
	}
	other, err := sqlledger.OpenSQLiteJournal(t.Context(), journalPath(j), sqlledger.Options{Migrate: true})
	if err != nil {
		t.Fatalf("open a journal that is up to date: %v", err)
	}
	if _, err := other.Migrate(t.Context()); !errors.Is(err, dibs.ErrOwned) {
		t.Errorf("migrate a journal that is owned: %v", err)
	}
	closeAll(t, other, j)
}

// laidOut checks the size of the file's pages and its mark, by the file's header.
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

func closeAll(t *testing.T, all ...interface{ Close() error }) {
	t.Helper()
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// modes checks that nobody but the owner can read the files.
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

// raw changes a file behind the ledger's back.
func raw(t *testing.T, path string, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := tryRaw(t, path, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// tryRaw runs a statement with the constraints on, unless it begins by
// turning them off.
func tryRaw(t *testing.T, path, statement string) error {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+escaped(path)+"?_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statement)
	return errors.Join(err, db.Close())
}

package sqldb

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersions: an empty database is older, a migrated one fits, a newer one is
// left alone.
func TestVersions(t *testing.T) {
	eachKind(t, func(t *testing.T, url string) {
		db, err := Open(t.Context(), url, testSchema, Config{})
		noError(t, err)
		closeLater(t, db)
		if err := db.CheckSchema(t.Context()); !errors.Is(err, ErrOldSchema) || !errors.Is(err, ErrSchema) {
			t.Errorf("an empty database: %v", err)
		}
		for n, want := range []int{1, 0} {
			if applied, err := db.Migrate(t.Context()); err != nil || applied != want {
				t.Errorf("migration %d applied %d: %v", n, applied, err)
			}
		}
		noError(t, db.CheckSchema(t.Context()))
		noError(t, db.Write(t.Context(), "raise the version", func(s *Session) error {
			_, err := s.Exec(t.Context(), `INSERT INTO `+db.versionTable()+` (version_id, is_applied) VALUES (99, `+map[Kind]string{Postgres: "true"}[db.Kind]+
				map[Kind]string{SQLite: "1", MySQL: "1"}[db.Kind]+`)`)
			return err
		}))
		if err := db.CheckSchema(t.Context()); !errors.Is(err, ErrSchema) || errors.Is(err, ErrOldSchema) {
			t.Errorf("a newer database: %v", err)
		}
		if _, err := db.Migrate(t.Context()); !errors.Is(err, ErrSchema) {
			t.Errorf("migrating a newer database: %v", err)
		}
	})
}

// TestOpenedTogether: processes that start on an empty database at the same
// time all find it ready.
func TestOpenedTogether(t *testing.T) {
	eachKind(t, func(t *testing.T, url string) {
		errs := make(chan error)
		for range 4 {
			go func() {
				db, err := Open(context.Background(), url, testSchema, Config{})
				if err == nil {
					_, err = db.Migrate(context.Background())
					err = errors.Join(err, db.CheckSchema(context.Background()), db.Close())
				}
				errs <- err
			}()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestMigrationWaits: a migration waits while another process migrates a file in
// the folder, and no longer than its caller does.
func TestMigrationWaits(t *testing.T) {
	address := fileAddress(t)
	// The file is laid out before.
	before, err := Open(t.Context(), address, testSchema, Config{})
	noError(t, err)
	noError(t, before.Close())
	folder, err := openToLock(filepath.Dir(strings.TrimPrefix(address, "sqlite:")))
	noError(t, err)
	noError(t, lockNow(folder))
	db, err := Open(t.Context(), address, testSchema, Config{})
	noError(t, err)
	closeLater(t, db)
	short, cancel := context.WithTimeout(t.Context(), 3*tryPause)
	defer cancel()
	if _, err := db.Migrate(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside another migration: %v", err)
	}
	noError(t, folder.Close())
	if applied, err := db.Migrate(t.Context()); err != nil || applied != 1 {
		t.Errorf("after the other migration, %d were applied: %v", applied, err)
	}
}

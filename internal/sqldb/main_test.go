package sqldb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(servers.StopAll(), leaks.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// things is the migration of the tests' schema: one table.
var things = &fstest.MapFile{Data: []byte(`-- +goose Up
CREATE TABLE things (id VARCHAR(64) NOT NULL PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0));
`)}

// testSchema is a schema of one table; ownedSchema is the same, for one process
// at a time.
var (
	testSchema = &Schema{
		Name: "test", Files: fstest.MapFS{"sqlite/1_things.sql": things, "mysql/1_things.sql": things, "postgres/1_things.sql": things},
		File: FileTuning{PageBytes: 4096, CacheKiB: 1024, LogPages: 1000},
	}
	ownedSchema = func() *Schema {
		s := *testSchema
		s.Name, s.Owned, s.ClusterAdvice = "owned", true, "use another database"
		return &s
	}()
)

// databases start the servers, by the names of their kinds.
var databases = map[string]func() (*servers.Server, error){"mysql": servers.MariaDB, "postgres": servers.Postgres}

// eachServer runs a test on each kind of server, with the address of an empty
// database.
func eachServer(t *testing.T, f func(t *testing.T, s *servers.Server, url string)) {
	for name, get := range databases {
		t.Run(name, func(t *testing.T) {
			s, url, _ := servers.Database(t, get)
			f(t, s, url)
		})
	}
}

// eachKind is eachServer and a file.
func eachKind(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, fileAddress(t)) })
	eachServer(t, func(t *testing.T, _ *servers.Server, url string) { f(t, url) })
}

func fileAddress(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") }

// openTest opens the tests' schema at an address until the test ends.
func openTest(t *testing.T, address string, c Config) *DB {
	t.Helper()
	return openSchema(t, address, testSchema, c)
}

func openSchema(t *testing.T, address string, schema *Schema, c Config) *DB {
	t.Helper()
	db, err := Open(t.Context(), address, schema, c)
	noError(t, err)
	closeLater(t, db)
	_, err = db.Migrate(t.Context())
	noError(t, err)
	return db
}

func closeLater(t *testing.T, c interface{ Close() error }) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// insert stores a thing.
func insert(t *testing.T, db *DB, id string, n int) error {
	return db.Write(t.Context(), "insert", func(s *Session) error {
		_, err := s.Exec(t.Context(), `INSERT INTO things (id, n) VALUES (?,?)`, id, n)
		return err
	})
}

// count counts the things.
func count(t *testing.T, db *DB) (n int, err error) {
	err = db.Read(t.Context(), "count", func(s *Session) error {
		return s.Row(t.Context(), `SELECT COUNT(*) FROM things`, nil, &n)
	})
	return n, err
}

// faulty is the tests' Explain: it keeps the class of an error.
func faulty(op string, fault Fault, err error) error {
	return &faultError{fault, fmt.Errorf("%s: %w", op, err)}
}

// faultError is an error with its class.
type faultError struct {
	fault Fault
	error
}

func (e *faultError) Unwrap() error { return e.error }

// faultOf is the class of an error of a DB that was opened with faulty; -1 for
// nil.
func faultOf(err error) Fault {
	var e *faultError
	if errors.As(err, &e) {
		return e.fault
	}
	return -1
}

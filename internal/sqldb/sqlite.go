package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// FileTuning is how a SQLite file is laid out and cached.
type FileTuning struct {
	// PageBytes is the size of a page. It is fixed when the file is created.
	PageBytes int
	// CacheKiB bounds the page cache of the writer. Each reader has a fourth of
	// it.
	CacheKiB int
	// LogPages is the length at which the write-ahead log is copied back into
	// the file and begun anew.
	LogPages int
}

// sqliteDialect speaks to SQLite through the driver without cgo. A lock of
// another process is waited for as long as patience.
func sqliteDialect(path string, t FileTuning, patience time.Duration) *Dialect {
	return &Dialect{
		Kind: SQLite, KeepExisting: " ON CONFLICT DO NOTHING",
		goose: goose.DialectSQLite3,
		// A writer takes its lock at the start: a transaction that reads first
		// and locks later can be refused halfway.
		begin: "BEGIN IMMEDIATE", beginRead: "BEGIN",
		rebind:   hideLimits,
		classify: sqliteClassify,
		open:     func(use usage) (*sql.DB, error) { return sqliteOpen(path, use, t, patience) },
	}
}

// hideLimits puts a plus before limits that are bound, so that SQLite does not plan
// by their values: it would compile a statement again each time that it is run,
// which takes several times as long as most of these statements themselves.
func hideLimits(statement string) string { return strings.ReplaceAll(statement, "LIMIT ?", "LIMIT +?") }

// sqliteOpen prepares connections to a file. Nothing is opened before their
// first use.
func sqliteOpen(path string, use usage, t FileTuning, patience time.Duration) (*sql.DB, error) {
	pragmas := []string{
		"busy_timeout(" + strconv.FormatInt(patience.Milliseconds(), 10) + ")",
		"journal_mode(WAL)",
		// An answer is given after the commit: the commit must be on the disk.
		"synchronous(FULL)",
		"foreign_keys(1)",
		"wal_autocheckpoint(" + strconv.Itoa(t.LogPages) + ")",
		"journal_size_limit(" + strconv.Itoa(t.LogPages*t.PageBytes) + ")",
	}
	if use == forReading {
		pragmas = append(pragmas, "cache_size(-"+strconv.Itoa(t.CacheKiB/4)+")", "query_only(1)")
	} else {
		// The undo of a statement belongs in memory: a file for it costs more
		// than the statement.
		pragmas = append(pragmas, "cache_size(-"+strconv.Itoa(t.CacheKiB)+")", "temp_store(MEMORY)")
	}
	return sqlitePool(path, pragmas)
}

// sqlitePool prepares connections that begin with the pragmas. Double-quoted
// texts are errors, as on servers (_dqs).
func sqlitePool(path string, pragmas []string) (*sql.DB, error) {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + url.Values{"_pragma": pragmas, "_dqs": {"0"}}.Encode()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

// prepareFile makes the folder and the file, readable by their owner alone,
// when they are missing: SQLite gives the files beside it the same mode. Of
// processes that find the file empty together, one lays it out.
func prepareFile(ctx context.Context, path string, t FileTuning) error {
	empty, err := touchFile(path)
	if err != nil || !empty {
		return err
	}
	return aloneIn(ctx, filepath.Dir(path), func() error {
		if empty, err := touchFile(path); err != nil || !empty {
			return err
		}
		return layOut(ctx, path, t)
	})
}

// touchFile makes a file and its folder when they are missing, and reports
// whether the file is empty.
func touchFile(path string) (empty bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	return info.Size() == 0, nil
}

// applicationID marks the files of dibs for tools such as file(1): "dibs" in
// ASCII.
const applicationID = 0x64696273

// layOut writes the first page of an empty file, which fixes the size of pages,
// and then gives the file its write-ahead log. SQLite refuses that change at once,
// without waiting, while another connection has the file.
func layOut(ctx context.Context, path string, t FileTuning) error {
	db, err := sqlitePool(path, []string{"busy_timeout(10000)", "page_size(" + strconv.Itoa(t.PageBytes) + ")"})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA application_id = "+strconv.Itoa(applicationID)+"; PRAGMA journal_mode = WAL")
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("lay out %s: %w", path, err)
	}
	return nil
}

// sqliteFaults are the classes of the driver's errors by their result codes.
var sqliteFaults = map[int]Fault{
	sqlite3.SQLITE_CONSTRAINT_UNIQUE: FaultUnique, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: FaultUnique,
	sqlite3.SQLITE_CONSTRAINT_ROWID: FaultUnique, sqlite3.SQLITE_CONSTRAINT: FaultConstraint,
	sqlite3.SQLITE_BUSY: FaultBusy, sqlite3.SQLITE_LOCKED: FaultBusy, sqlite3.SQLITE_PROTOCOL: FaultBusy,
	sqlite3.SQLITE_INTERRUPT: FaultBusy, sqlite3.SQLITE_FULL: FaultFull,
	sqlite3.SQLITE_IOERR: FaultIO, sqlite3.SQLITE_CANTOPEN: FaultIO, sqlite3.SQLITE_NOMEM: FaultIO,
	sqlite3.SQLITE_READONLY: FaultIO, sqlite3.SQLITE_PERM: FaultIO,
	sqlite3.SQLITE_CORRUPT: FaultCorrupt, sqlite3.SQLITE_NOTADB: FaultCorrupt,
}

// sqliteClassify reads the result code of the driver's error.
func sqliteClassify(err error) Fault {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return FaultOther
	}
	if fault, known := sqliteFaults[e.Code()]; known {
		return fault
	}
	// The low byte is the class, the rest says more about it.
	return sqliteFaults[e.Code()&0xff]
}

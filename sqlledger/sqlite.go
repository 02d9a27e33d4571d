package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// tuning is how a SQLite file is laid out and cached.
type tuning struct {
	// pageBytes is fixed when the file is created.
	pageBytes int
	// cacheKiB bounds the page cache of the writer; readers have a fourth.
	cacheKiB int
	// walPages is the length at which the write-ahead log is copied back into
	// the file and begun anew.
	walPages int
}

var (
	// The index by user is written in random order, a page for almost every
	// claim. A long log lets changes of one page meet before they are copied
	// back: 128 MiB take an eighth less processor time than 64. Pages of 1, 2
	// and 8 KiB cost an eighth more than 4. Measure with BenchmarkSettle.
	ledgerTuning = tuning{pageBytes: 4096, cacheKiB: 64 << 10, walPages: 32768}
	// A group commit is a blob of some hundred bytes to some hundred kilobytes:
	// small pages suit the first, large pages the last. The append that fills
	// the log copies it back while claims wait, hence a short log. Measure with
	// BenchmarkJournalAppend.
	journalTuning = tuning{pageBytes: 8192, cacheKiB: 8 << 10, walPages: 1024}
)

// sqliteDialect speaks to SQLite through the driver without cgo.
func sqliteDialect(folder string, t tuning) *dialect {
	d := &dialect{
		goose: goose.DialectSQLite3, folder: "migrations/" + folder,
		// A writer takes its lock at the start: a transaction that reads first
		// and locks later can be refused halfway.
		begin: "BEGIN IMMEDIATE", beginRead: "BEGIN",
		keepExisting: " ON CONFLICT DO NOTHING", addBalance: addToExcluded,
		dueAt: partlyDue, byDue: "pay_by",
		claims:   manyRows{most: 128, text: sqliteInsertClaims, arguments: headThenRows},
		items:    manyRows{most: 1, text: func(int) string { return sqliteAssignItem }, arguments: headThenRows},
		itemRows: 128,
		among:    inValues,
		classify: sqliteClassify,
	}
	d.open = func(place string, use usage) (*sql.DB, error) { return sqliteOpen(place, use, t, d.patience()) }
	return d
}

// sqliteInsertClaims binds the columns that all claims of a run share once: a
// question mark after numbered parameters takes the next number. OR FAIL spares
// SQLite the undoing of a half-done statement: a failure undoes the whole
// transaction in any case.
func sqliteInsertClaims(n int) string {
	return `INSERT OR FAIL INTO claims (campaign, shard, epoch, status, order_type, currency, restocked,
		seq, user_id, quantity, amount, request_key, pay_by, created_at) VALUES ` +
		repeat("(?1,?2,?3,?4,?5,?6,0,?,?,?,?,?,?,?)", n)
}

// sqliteAssignItem gives one item to a claim, found by its key: given a list of
// items, SQLite reads all items of the campaign once for each of them.
const sqliteAssignItem = `UPDATE OR FAIL items SET claim_epoch = ?3, claim_seq = ?5
	WHERE campaign = ?1 AND shard = ?2 AND n = ?4 AND claim_epoch IS NULL AND withdrawn = 0`

// sqliteOpen prepares a pool for the file. Nothing is opened before its first
// use. A lock of another process is waited for as long as said.
func sqliteOpen(path string, use usage, t tuning, locked time.Duration) (*sql.DB, error) {
	pragmas := []string{
		"busy_timeout(" + strconv.FormatInt(locked.Milliseconds(), 10) + ")",
		"journal_mode(WAL)",
		// An answer is given after the commit: the commit must be on the disk.
		"synchronous(FULL)",
		"foreign_keys(1)",
		"wal_autocheckpoint(" + strconv.Itoa(t.walPages) + ")",
		"journal_size_limit(" + strconv.Itoa(t.walPages*t.pageBytes) + ")",
	}
	if use == forReading {
		pragmas = append(pragmas, "cache_size(-"+strconv.Itoa(t.cacheKiB/4)+")", "query_only(1)")
	} else {
		// The undo of a statement belongs in memory: the file for it costs more
		// than the statement.
		pragmas = append(pragmas, "cache_size(-"+strconv.Itoa(t.cacheKiB)+")", "temp_store(MEMORY)")
	}
	return sqlitePool(path, pragmas)
}

func sqlitePool(path string, pragmas []string) (*sql.DB, error) {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + url.Values{"_pragma": pragmas, "_dqs": {"0"}}.Encode()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("sqlledger: open %s: %w", path, err)
	}
	return db, nil
}

// prepareFile makes the folder, readable by the owner alone, and the file, so
// that SQLite gives its companions the same mode. It returns the absolute path.
func prepareFile(ctx context.Context, path string, t tuning) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sqlledger: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("sqlledger: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("sqlledger: %w", err)
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("sqlledger: %w", err)
	}
	if info.Size() == 0 {
		err = layOut(ctx, path, t)
	}
	return path, err
}

// applicationID marks the files of dibs, for tools that look: "dibs" in ASCII.
const applicationID = 0x64696273

// layOut writes the first page of an empty file. Its size is fixed with it,
// and must be before the file gets a write-ahead log.
func layOut(ctx context.Context, path string, t tuning) error {
	db, err := sqlitePool(path, []string{"busy_timeout(10000)", "page_size(" + strconv.Itoa(t.pageBytes) + ")"})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA application_id = "+strconv.Itoa(applicationID))
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("sqlledger: lay out %s: %w", path, err)
	}
	return nil
}

// sqliteClassify reads the result code of the driver's error.
func sqliteClassify(err error) fault {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return faultOther
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return faultUnique
	}
	// The low byte is the class, the rest says more about it.
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT:
		return faultConstraint
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT:
		return faultBusy
	case sqlite3.SQLITE_FULL:
		return faultFull
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return faultIO
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return faultCorrupt
	}
	return faultOther
}

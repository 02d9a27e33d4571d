package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"github.com/dibs-dev/dibs/internal/keyring"
)

// Schema is a set of tables that is migrated as one.
type Schema struct {
	// Name tells schemas apart that share a database on a server: the table of
	// the applied migrations is dibs_NAME_versions there.
	Name string
	// Files are goose's migrations, and Folder their folder but for its last
	// word, the Kind's name: "migrations/journal_" with
	// migrations/journal_sqlite and so on.
	Files  fs.FS
	Folder string
	// File is how a SQLite file of the schema is laid out.
	File FileTuning
	// Owned says that at most one process at a time uses the tables; see
	// DB.Lock. ClusterAdvice says what to do where that cannot be kept: in a
	// Galera cluster, whose locks are each server's own.
	Owned         bool
	ClusterAdvice string
}

// Config is how a database is opened.
type Config struct {
	// Timeout bounds each call, from MinTimeout to MaxTimeout; 0 means
	// DefaultTimeout. See Long for calls that may take longer.
	Timeout time.Duration
	// Readers is how many connections read at the same time, Writers how many
	// write; 0 means 1. A file has one writer whatever Writers says: a queue in
	// this process is fair, and the file's own lock is not.
	Readers, Writers int
	// Login returns the user and the password of the address at each new connection to
	// a server; nil, also as an answer, for those in the address.
	Login func(address string) *url.Userinfo
	// Now is the clock of this machine; nil means time.Now.
	Now func() time.Time
	// Trace begins the span of a transaction and returns the function that ends
	// it; nil for none.
	Trace func(ctx context.Context, op string) (context.Context, func(error))
	// Codes encrypts what callers store by it: sessions hand it on, and this package uses it
	// for nothing. nil stores everything as it is.
	Codes *keyring.Equals
	// Explain turns an error that leaves the DB into its user's. op says what
	// was being done; err may begin with advice for people. Nil adds op alone.
	Explain func(op string, fault Fault, err error) error
	// Fenced returns an error when another process has owned the schema since
	// this one locked it. It is called before the lock is taken again on a new
	// connection; for Owned schemas alone.
	Fenced func(ctx context.Context, s *Session) error
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	*Dialect
	place            string
	schema           *Schema
	config           Config
	writers, readers *pool
	// watch has one connection to a server, to ask for its settings while all others are
	// in use; nil for a file.
	watch *pool
	// lock is that of an Owned schema, nil for others.
	lock lock
}

// Place returns the address as it can be shown: without user, password and
// options. Of a file it is the path.
func (db *DB) Place() string { return db.place }

// Codes is that of the Config.
func (db *DB) Codes() *keyring.Equals { return db.config.Codes }

// Now returns the time by this machine's clock.
func (db *DB) Now() time.Time { return db.config.Now() }

// Write runs f in a transaction, and again when the database ended it in favour
// of another one: f starts afresh each time, and only its last run counts.
func (db *DB) Write(ctx context.Context, op string, f func(*Session) error) error {
	ctx, end := db.trace(ctx, op)
	err := db.explain(op, db.writers.transactRetry(ctx, db.begin, f))
	end(err)
	return err
}

// WriteOnce runs f in one transaction.
func (db *DB) WriteOnce(ctx context.Context, op string, f func(*Session) error) error {
	return db.explain(op, db.writers.transact(ctx, db.begin, f))
}

// Read runs f, which reads by one statement.
func (db *DB) Read(ctx context.Context, op string, f func(*Session) error) error {
	s, err := db.readers.take(ctx)
	if err != nil {
		return db.explain(op, err)
	}
	return db.explain(op, errors.Join(s.call.late(f(s)), db.readers.give(s)))
}

// Snapshot runs f, which reads by several statements, on one state of the
// database.
func (db *DB) Snapshot(ctx context.Context, op string, f func(*Session) error) error {
	ctx, end := db.trace(ctx, op)
	err := db.explain(op, db.readers.transact(ctx, db.beginRead, f))
	end(err)
	return err
}

// trace begins the span of a transaction, where Config.Trace asks for spans.
func (db *DB) trace(ctx context.Context, op string) (context.Context, func(error)) {
	if db.config.Trace == nil {
		return ctx, func(error) {}
	}
	return db.config.Trace(ctx, op)
}

// Ping returns nil when the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	return db.ReadRow(ctx, "ping", "SELECT 1", nil, &one)
}

// Connections returns how many connections are open.
func (db *DB) Connections() (open int) {
	for _, p := range db.pools() {
		open += p.conn.Stats().OpenConnections
	}
	return open
}

// pools are those of the DB. The readers go first: the last connection to a file
// tidies its log away, and only a writer can do that.
func (db *DB) pools() []*pool {
	if db.watch == nil {
		return []*pool{db.readers, db.writers}
	}
	return []*pool{db.readers, db.writers, db.watch}
}

// Reconnect replaces the connection of a DB that has one writer, and returns
// when the old one is closed.
func (db *DB) Reconnect(ctx context.Context, op string) error {
	s, err := db.writers.take(ctx)
	if err == nil {
		err = errors.Join(s.drop(), db.writers.give(s))
	}
	return db.explain(op, err)
}

// Checkpoint copies the log of a SQLite file into the file and begins the log
// anew. It does nothing on a server.
func (db *DB) Checkpoint(ctx context.Context, op string) error {
	if db.server != nil {
		return nil
	}
	s, err := db.writers.take(ctx)
	if err != nil {
		return db.explain(op, err)
	}
	var busy, logged, copied int
	err = s.Row(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &logged, &copied)
	if err == nil && busy != 0 {
		err = errors.New("readers kept the log from being copied back")
	}
	return db.explain(op, errors.Join(err, db.writers.give(s)))
}

// Lock takes the lock of an Owned schema, which ends with the process; taken is
// false when this DB holds it already. The error is ErrHeld when another
// process holds it.
func (db *DB) Lock(ctx context.Context, op string) (taken bool, err error) {
	taken, err = db.lock.take(ctx)
	return taken, db.explain(op, err)
}

// Unlock releases the lock, if this DB holds it.
func (db *DB) Unlock() error { return db.lock.release() }

// Close waits for what is under way and closes all connections. Calling it
// twice is harmless.
func (db *DB) Close() error {
	if db.lock != nil && db.server != nil {
		// Releasing is surer than the server's noticing that a connection is
		// gone. When the server cannot be asked any more, it will notice.
		_ = db.lock.release()
	}
	var errs []error
	for _, p := range db.pools() {
		errs = append(errs, p.close())
	}
	if db.lock != nil {
		errs = append(errs, db.lock.release())
	}
	return errors.Join(errs...)
}

// explain hands an error to the DB's user, with its class and with what people
// can do about it.
func (db *DB) explain(op string, err error) error {
	if err == nil {
		return nil
	}
	fault, err := db.Fault(err), db.advised(err)
	if db.config.Explain == nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return db.config.Explain(op, fault, err)
}

// advised adds to an error of a server what people can do about it.
func (db *DB) advised(err error) error {
	if db.server == nil {
		return err
	}
	secret := db.server.secret
	if now := db.server.login(); now != nil {
		secret, _ = now.Password()
	}
	if secret != "" && strings.Contains(err.Error(), secret) {
		// No driver should put the password into an error; if one does, its
		// text is changed.
		err = &hidden{err, secret}
	}
	advice := db.server.advise(err)
	if advice == "" {
		return err
	}
	return fmt.Errorf("%s: %w", advice, err)
}

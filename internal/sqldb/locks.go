package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// sessionLocks are the statements for a server's locks that end with the
// connection that holds them: a killed process holds none. %s stands for the
// lock's name.
type sessionLocks struct {
	// take asks for a lock and returns 1 when it was had, else 0. wait says
	// that its argument is how long to wait, in seconds; without it the
	// statement does not wait.
	take string
	wait bool
	// release releases a lock.
	release string
	// holder returns the number of the connection that holds a lock, 0 for
	// none. self returns the number of this connection. end, a format with a
	// number, ends a connection.
	holder, self, end string
}

// The locks of MySQL belong to the whole server: their names contain the
// database's.
var mysqlLocks = sessionLocks{
	take: `SELECT COALESCE(GET_LOCK(CONCAT('dibs.%s.', SHA1(DATABASE())), ?), 0)`, wait: true,
	release: `SELECT COALESCE(RELEASE_LOCK(CONCAT('dibs.%s.', SHA1(DATABASE()))), 0)`,
	holder:  `SELECT COALESCE(IS_USED_LOCK(CONCAT('dibs.%s.', SHA1(DATABASE()))), 0)`,
	self:    `SELECT CONNECTION_ID()`,
	end:     `KILL %d`,
}

// The locks of PostgreSQL belong to a database: their numbers contain the
// schema's name.
var postgresLocks = sessionLocks{
	take:    `SELECT pg_try_advisory_lock(hashtextextended('dibs.%s.' || COALESCE(current_schema(), ''), 0))::int`,
	release: `SELECT pg_advisory_unlock(hashtextextended('dibs.%s.' || COALESCE(current_schema(), ''), 0))::int`,
	holder: `SELECT COALESCE((SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (classid::bigint << 32 | objid::bigint) = hashtextextended('dibs.%s.' || COALESCE(current_schema(), ''), 0)), 0)`,
	self: `SELECT pg_backend_pid()`,
	end:  `SELECT pg_terminate_backend(%d)`,
}

const (
	// tryPause is the time between two attempts where the server does not wait.
	tryPause = 20 * time.Millisecond
	// migratePatience is how long to wait for another process's migration.
	migratePatience = time.Minute
	// migrateLock is the name of the lock on migrations. The lock on an Owned
	// schema has the schema's name.
	migrateLock = "migrate"
)

// errMigrating: another process has been migrating for migratePatience.
var errMigrating = errors.New("another process is migrating")

// number runs a statement that returns one number.
func number(ctx context.Context, conn *sql.Conn, statement string, args ...any) (n int64, err error) {
	err = conn.QueryRowContext(ctx, statement, args...).Scan(&n)
	return n, err
}

// tryFor takes a lock, waiting no longer than patience.
func (k *sessionLocks) tryFor(ctx context.Context, conn *sql.Conn, name string, patience time.Duration) (bool, error) {
	statement := fmt.Sprintf(k.take, name)
	if k.wait {
		n, err := number(ctx, conn, statement, patience.Seconds())
		return n == 1, err
	}
	for began := time.Now(); ; {
		n, err := number(ctx, conn, statement)
		if err != nil || n == 1 || time.Since(began) > patience {
			return n == 1, err
		}
		select {
		case <-time.After(tryPause):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// holderOf returns the number of the connection that holds a lock, 0 for none.
func (k *sessionLocks) holderOf(ctx context.Context, conn *sql.Conn, name string) (int64, error) {
	return number(ctx, conn, fmt.Sprintf(k.holder, name))
}

// releaseFrom releases a lock.
func (k *sessionLocks) releaseFrom(ctx context.Context, conn *sql.Conn, name string) error {
	_, err := number(ctx, conn, fmt.Sprintf(k.release, name))
	return err
}

// alone runs f while no other process migrates the same database.
func (k *sessionLocks) alone(ctx context.Context, db *sql.DB, f func(*sql.Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	got, err := k.tryFor(ctx, conn, migrateLock, migratePatience)
	if err == nil && !got {
		err = errMigrating
	}
	if err == nil {
		err = errors.Join(f(conn), k.releaseFrom(context.WithoutCancel(ctx), conn, migrateLock))
	}
	return errors.Join(err, conn.Close())
}

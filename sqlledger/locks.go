package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// sessionLocks are a server's locks that end with the connection that holds
// them: whoever is killed has let go.
type sessionLocks struct {
	// take waits a while for a lock and returns whether it was had. The
	// statement returns 1 or 0; wait says whether its argument is how long to
	// wait, in seconds.
	take string
	wait bool
	// release lets go of a lock.
	release string
	// holder returns the number of the connection that holds a lock, 0 for
	// none; self that of this connection; end ends a connection, by a text
	// with its number.
	holder, self, end string
}

// The locks of MySQL are the whole server's: their names tell the database.
var mysqlLocks = sessionLocks{
	take: `SELECT COALESCE(GET_LOCK(CONCAT('dibs.%s.', SHA1(DATABASE())), ?), 0)`, wait: true,
	release: `SELECT COALESCE(RELEASE_LOCK(CONCAT('dibs.%s.', SHA1(DATABASE()))), 0)`,
	holder:  `SELECT COALESCE(IS_USED_LOCK(CONCAT('dibs.%s.', SHA1(DATABASE()))), 0)`,
	self:    `SELECT CONNECTION_ID()`,
	end:     `KILL %d`,
}

// The locks of PostgreSQL are a database's: their numbers tell the schema.
var postgresLocks = sessionLocks{
	take:    `SELECT pg_try_advisory_lock(hashtextextended('dibs.%s.' || COALESCE(current_schema(), ''), 0))::int`,
	release: `SELECT pg_advisory_unlock(hashtextextended('dibs.%s.' || COALESCE(current_schema(), ''), 0))::int`,
	holder: `SELECT COALESCE((SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (classid::bigint << 32 | objid::bigint) = hashtextextended('dibs.%s.' || COALESCE(current_schema(), ''), 0)), 0)`,
	self: `SELECT pg_backend_pid()`,
	end:  `SELECT pg_terminate_backend(%d)`,
}

// tryPause is the time between two attempts where the server does not wait.
const tryPause = 20 * time.Millisecond

// number runs a statement that returns one number.
func number(ctx context.Context, conn *sql.Conn, statement string, args ...any) (n int64, err error) {
	err = conn.QueryRowContext(ctx, statement, args...).Scan(&n)
	return n, err
}

// tryFor takes a lock, waiting for it no longer than said.
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

// releaseFrom lets go of a lock.
func (k *sessionLocks) releaseFrom(ctx context.Context, conn *sql.Conn, name string) error {
	_, err := number(ctx, conn, fmt.Sprintf(k.release, name))
	return err
}

const (
	// migratePatience is how long to wait for somebody else's migration.
	migratePatience = time.Minute
	// journalLock and migrateLock are the locks' names.
	journalLock = "journal"
	migrateLock = "migrate"
)

// alone runs f while no other process runs it on the same database.
func (k *sessionLocks) alone(ctx context.Context, db *sql.DB, name string, f func(*sql.Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	got, err := k.tryFor(ctx, conn, name, migratePatience)
	if err == nil && !got {
		err = errors.New("another process is migrating")
	}
	if err == nil {
		err = errors.Join(f(conn), k.releaseFrom(context.WithoutCancel(ctx), conn, name))
	}
	return errors.Join(err, conn.Close())
}

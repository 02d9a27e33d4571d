package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// mysqlScreen notes whether the server is one of a Galera cluster.
func mysqlScreen(ctx context.Context, db *sql.DB, r *server) error {
	var name, value string
	err := db.QueryRowContext(ctx, "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'").Scan(&name, &value)
	if errors.Is(err, sql.ErrNoRows) {
		// It is MySQL, or a MariaDB that was built without Galera.
		err = nil
	}
	r.galera.Store(strings.EqualFold(value, "ON"))
	return err
}

// galeraSettings are further settings of a connection to a server of a Galera
// cluster. wsrep_sync_wait makes the server wait, before a transaction or a
// read, until it has applied what any other server has committed: otherwise it
// may show an older state for a moment, and a process that moved to it would go
// on from there. Without autocommit, a statement that follows a transaction
// which the server has ended is not committed by itself; see start.
func galeraSettings(use usage) string {
	if use == forReading {
		return "SET SESSION wsrep_sync_wait = 1"
	}
	return "SET SESSION wsrep_sync_wait = 1, autocommit = 0"
}

// start begins a transaction. A server of a Galera cluster may end it at any
// moment in favour of one that another server has committed. It says so with
// the next statement; but when that is a SELECT, the client may receive
// success, and nothing later (seen with MariaDB 10.11). Later statements would be
// a transaction of its own, and half of the work would be kept. A savepoint
// goes with its transaction, so stillWhole can ask at the end whether it is the
// same one.
func (s *Session) start(ctx context.Context, begin string) error {
	err := s.control(ctx, begin)
	s.guarded = err == nil && s.server != nil && s.server.galera.Load() && begin != s.beginRead
	if s.guarded {
		err = s.control(ctx, "SAVEPOINT whole")
	}
	return err
}

// stillWhole returns an error of the class FaultConflict when the transaction
// is not the one that began.
func (s *Session) stillWhole(ctx context.Context) error {
	if !s.guarded {
		return nil
	}
	return s.control(ctx, "RELEASE SAVEPOINT whole")
}

package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// mysqlScreen notes whether the server is one of a Galera cluster.
func mysqlScreen(ctx context.Context, db *sql.DB, r *server) error {
	var name, value string
	err := db.QueryRowContext(ctx, "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'").Scan(&name, &value)
	if errors.Is(err, sql.ErrNoRows) {
		// It is not MariaDB, or one that was built without.
		err = nil
	}
	r.galera.Store(strings.EqualFold(value, "ON"))
	return err
}

// galeraSettings are what a connection to a server of a Galera cluster begins with
// besides. The server waits, before a transaction or a read, until it has what any
// other has committed: else it may show the past for a moment, and a node that moved
// to it would settle from there. What comes after a transaction that was ended is not
// committed by itself; see start.
func galeraSettings(use usage) string {
	if use == forReading {
		return "SET SESSION wsrep_sync_wait = 1"
	}
	return "SET SESSION wsrep_sync_wait = 1, autocommit = 0"
}

// start begins a transaction. A server of a Galera cluster ends it in favour of
// one that another server has committed, at any moment, and says so with the next
// statement; but with a SELECT the client may be told of success, and then of nothing
// (seen with MariaDB 10.11). What followed would be a transaction of its own: half of
// a settling would be kept. A savepoint goes with its transaction, so that the end can
// ask whether it is still the one that began.
func (s *session) start(ctx context.Context, begin string) error {
	err := s.control(ctx, begin)
	s.guarded = err == nil && s.d.server != nil && s.d.server.galera.Load() && begin != s.d.beginRead
	if s.guarded {
		err = s.control(ctx, "SAVEPOINT whole")
	}
	return err
}

// stillWhole returns an error of the kind faultConflict when the transaction is
// not the one that began.
func (s *session) stillWhole(ctx context.Context) error {
	if !s.guarded {
		return nil
	}
	return s.control(ctx, "RELEASE SAVEPOINT whole")
}

// mayOwn refuses to keep a journal where its owner's lock would be one server's
// alone: by two servers, two processes could both own it.
func (d *dialect) mayOwn() error {
	if d.server.galera.Load() {
		return fmt.Errorf("%w: it is one of a Galera cluster, whose locks (GET_LOCK) are each server's own, so that two processes could "+
			"write the memory engine's journal: use --engine redis://…, or a database that is no cluster", errUnfit)
	}
	return nil
}

package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// errPooler: a pooler at the address gives its server connections to different
// clients in turn.
var errPooler = fmt.Errorf("%w: a pooler stands before it that gives each transaction another connection, as PgBouncer does with "+
	"pool_mode = transaction; settings, prepared statements and locks would be lost or another client's: let dibs have pool_mode = session, "+
	"or the server's own address", errUnfit)

// poolerTries is how often two connections are compared: another client's
// transaction may come in between once.
const poolerTries = 3

// postgresScreen refuses poolers that share connections between transactions. A
// pooler announces process numbers of its own, so a server that is reached
// directly is recognised at once. Behind a pooler of whole sessions, each
// client keeps its server process. Behind the others, a second client's
// transaction gets the first client's process, or the first client gets another
// one afterwards.
func postgresScreen(ctx context.Context, db *sql.DB, _ *server) (err error) {
	first, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	// Nothing may be prepared on a connection that other clients may get.
	at, direct, err := serverProcess(ctx, first)
	if err != nil || direct {
		return err
	}
	second, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.Close()) }()
	for range poolerTries {
		var refused *pgconn.PgError
		if err := unprepared(ctx, second, "BEGIN"); errors.As(err, &refused) {
			// It shares connections even between statements.
			return fmt.Errorf("%w: %w", errPooler, err)
		} else if err != nil {
			return err
		}
		other, _, err := serverProcess(ctx, second)
		if err != nil {
			return err
		}
		if other == at {
			return errPooler
		}
		now, _, err := serverProcess(ctx, first)
		if err != nil {
			return err
		}
		if now != at {
			return errPooler
		}
		if err := unprepared(ctx, second, "ROLLBACK"); err != nil {
			return err
		}
	}
	return nil
}

// serverProcess returns the number of the process that serves a connection, and
// whether it is the one that the server announced when the connection began.
func serverProcess(ctx context.Context, conn *sql.Conn) (pid uint32, direct bool, err error) {
	err = conn.Raw(func(c any) error {
		pg := c.(*stdlib.Conn).Conn().PgConn()
		results, err := pg.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
		if err != nil {
			return err
		}
		if len(results) != 1 || len(results[0].Rows) != 1 {
			return errors.New("the server does not tell its process")
		}
		if _, err := fmt.Sscan(string(results[0].Rows[0][0]), &pid); err != nil {
			return err
		}
		direct = pid == pg.PID()
		return nil
	})
	return pid, direct, err
}

// unprepared runs a statement that returns nothing, without preparing it.
func unprepared(ctx context.Context, conn *sql.Conn, statement string) error {
	return conn.Raw(func(c any) error {
		_, err := c.(*stdlib.Conn).Conn().PgConn().Exec(ctx, statement).ReadAll()
		return err
	})
}

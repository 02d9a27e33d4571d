package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// screen asks what stands at an address, on connections of its own and without
// changing their settings: behind some poolers, these would be other clients'
// connections later. The error is an errUnfit, or why nobody answers.
func (d *dialect) screen(ctx context.Context, place string) error {
	db, err := d.open(place, forReading)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	err = d.server.screen(within, db, d.server)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = fmt.Errorf("%w: %s", errNoAnswer, err.Error())
	}
	return errors.Join(err, db.Close())
}

// errPooler: what stands at the address hands its server connections around.
var errPooler = fmt.Errorf("%w: a pooler stands before it that gives each transaction another connection, as PgBouncer does with "+
	"pool_mode = transaction; settings, prepared statements and locks would be lost or another client's: let dibs have pool_mode = session, "+
	"or the server's own address", errUnfit)

// poolerTries is how often two connections are compared: somebody else's
// transaction may come in between once.
const poolerTries = 3

// postgresScreen refuses poolers that share connections between transactions. A
// pooler has process numbers of its own, so that a server spoken to directly is
// known at once. Of one that pools whole sessions, each client keeps its server
// process; else a second client's transaction takes the first one's, or the first
// one gets another afterwards.
func postgresScreen(ctx context.Context, db *sql.DB, _ *server) (err error) {
	first, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	const process = "SELECT pg_backend_pid()"
	// Nothing may be prepared on a connection that is handed around.
	at, direct, err := simply(ctx, first, process)
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
		if err := plainly(ctx, second, "BEGIN"); errors.As(err, &refused) {
			// It shares connections between statements even.
			return fmt.Errorf("%w: %w", errPooler, err)
		} else if err != nil {
			return err
		}
		other, _, err := simply(ctx, second, process)
		if err != nil {
			return err
		}
		if other == at {
			return errPooler
		}
		now, _, err := simply(ctx, first, process)
		if err != nil {
			return err
		}
		if now != at {
			return errPooler
		}
		if err := plainly(ctx, second, "ROLLBACK"); err != nil {
			return err
		}
	}
	return nil
}

// simply asks for the number of the process that serves a connection, and reports
// whether it is the one that greeted it.
func simply(ctx context.Context, conn *sql.Conn, statement string) (pid uint32, direct bool, err error) {
	err = conn.Raw(func(c any) error {
		pg := c.(*stdlib.Conn).Conn().PgConn()
		results, err := pg.Exec(ctx, statement).ReadAll()
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

// plainly runs a statement that returns nothing, without preparing it.
func plainly(ctx context.Context, conn *sql.Conn, statement string) error {
	return conn.Raw(func(c any) error {
		_, err := c.(*stdlib.Conn).Conn().PgConn().Exec(ctx, statement).ReadAll()
		return err
	})
}

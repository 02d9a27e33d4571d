package simulation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/dibs-dev/dibs/sqlledger"
)

// template is the file of an empty ledger, made once for all runs of a process.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "dibs-sim-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "ledger.db")
	l, err := sqlledger.OpenSQLite(context.Background(), path, sqlledger.Options{Migrate: true})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := l.Close(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	content, err := os.ReadFile(path)
	return content, errors.Join(err, os.RemoveAll(dir))
})

// base is the database of a run: the SQL ledger itself on a file of SQLite.
type base struct {
	dir    string
	ledger *sqlledger.Ledger
	dumps  int
}

func openBase(ctx context.Context, dir string, now func() time.Time) (*base, error) {
	content, err := template()
	if err != nil {
		return nil, fmt.Errorf("simulation: making an empty ledger: %w", err)
	}
	b := &base{dir: dir}
	if err := os.WriteFile(b.path(), content, 0o600); err != nil {
		return nil, err
	}
	b.ledger, err = sqlledger.OpenSQLite(ctx, b.path(), sqlledger.Options{Readers: 1, Now: now})
	return b, err
}

func (b *base) path() string { return filepath.Join(b.dir, "ledger.db") }

// with lends a connection of its own to the database's file.
func (b *base) with(ctx context.Context, f func(*sql.Conn) error) error {
	db, err := sql.Open("sqlite", "file:"+b.path()+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		err = errors.Join(f(conn), conn.Close())
	}
	return errors.Join(err, db.Close())
}

// dump writes the database as it is to a file, which restore takes.
func (b *base) dump(ctx context.Context) (string, error) {
	b.dumps++
	path := filepath.Join(b.dir, fmt.Sprintf("dump%d.db", b.dumps))
	return path, b.with(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "VACUUM INTO ?", path)
		return err
	})
}

// restore makes the database what it was at a dump, in one transaction: nodes go
// on with it as they do with a server that was failed over to an older copy.
func (b *base) restore(ctx context.Context, dump string) error {
	return b.with(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, "ATTACH ? AS dump", dump); err != nil {
			return err
		}
		tables, err := texts(ctx, c, "SELECT name FROM dump.sqlite_master WHERE type = 'table' ORDER BY name LIKE 'sqlite_%'")
		if err != nil {
			return err
		}
		// Triggers keep rows that never go, and are brought back.
		triggers, err := texts(ctx, c, "SELECT name FROM main.sqlite_master WHERE type = 'trigger'")
		if err != nil {
			return err
		}
		again, err := texts(ctx, c, "SELECT sql FROM main.sqlite_master WHERE type = 'trigger'")
		if err != nil {
			return err
		}
		statements := []string{"BEGIN IMMEDIATE"}
		for _, t := range triggers {
			statements = append(statements, `DROP TRIGGER main."`+t+`"`)
		}
		for _, t := range tables {
			statements = append(statements, `DELETE FROM main."`+t+`"`, `INSERT INTO main."`+t+`" SELECT * FROM dump."`+t+`"`)
		}
		for _, s := range slices.Concat(statements, again, []string{"COMMIT", "DETACH dump"}) {
			if _, err := c.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

// texts reads a column.
func texts(ctx context.Context, c *sql.Conn, query string) ([]string, error) {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		all = append(all, s)
	}
	return all, errors.Join(rows.Err(), rows.Close())
}

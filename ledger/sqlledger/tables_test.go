package sqlledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// tables are databases with empty tables on a server. Making the tables takes
// longer than most tests, so that a test's are emptied and given to the next.
type tables struct {
	t  *testing.T
	s  *servers.Server
	mu sync.Mutex
	// make opens what makes the tables at an address, and closes it.
	make func(url string)
	idle []*emptied
}

// emptied is a database whose tables are as they were made.
type emptied struct {
	url, name string
	// all are its tables, began those that had rows when they were made; what
	// they had is kept in tables beside them.
	all, began []string
}

const keptPrefix = "kept_"

// take returns the address of empty tables that are the test's own until it
// ends.
func (p *tables) take(t *testing.T) (url string) {
	t.Helper()
	p.mu.Lock()
	var e *emptied
	if last := len(p.idle) - 1; last >= 0 {
		e, p.idle = p.idle[last], p.idle[:last]
	}
	p.mu.Unlock()
	if e == nil {
		e = p.create(t)
	}
	t.Cleanup(func() {
		if err := p.with(e, e.empty); err != nil {
			t.Error(err)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle = append(p.idle, e)
	})
	return e.url
}

// create makes tables in a database that lives as long as the whole suite.
func (p *tables) create(t *testing.T) *emptied {
	t.Helper()
	e := &emptied{}
	e.url, e.name = p.s.DatabaseFor(p.t)
	p.make(e.url)
	if err := p.with(e, e.keep); err != nil {
		t.Fatal(err)
	}
	return e
}

// with calls f with a connection to a database.
func (p *tables) with(e *emptied, f func(context.Context, *sql.Conn) error) error {
	ctx := context.Background() // A test's own has ended when its cleanup runs.
	db, err := p.s.Open(e.name)
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		err = errors.Join(f(ctx, conn), conn.Close())
	}
	return errors.Join(err, db.Close())
}

// postgres is whether they are in PostgreSQL.
func (e *emptied) postgres() bool { return strings.HasPrefix(e.url, "postgres") }

// keep looks what tables there are, and keeps the rows that they begin with.
func (e *emptied) keep(ctx context.Context, c *sql.Conn) error {
	schema := "DATABASE()"
	if e.postgres() {
		schema = "current_schema()"
	}
	rows, err := c.QueryContext(ctx, "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema = "+schema)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		e.all = append(e.all, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if e.began, err = e.filled(ctx, c); err != nil {
		return err
	}
	for _, table := range e.began {
		if _, err := c.ExecContext(ctx, fmt.Sprintf("CREATE TABLE %s%s AS SELECT * FROM %s", keptPrefix, table, table)); err != nil {
			return err
		}
	}
	return nil
}

// filled are the tables that have rows.
func (e *emptied) filled(ctx context.Context, c *sql.Conn) (list []string, err error) {
	questions := make([]string, len(e.all))
	for i, table := range e.all {
		questions[i] = fmt.Sprintf("SELECT %d FROM %s", i, table)
		questions[i] = fmt.Sprintf("(%s LIMIT 1)", questions[i])
	}
	rows, err := c.QueryContext(ctx, strings.Join(questions, " UNION ALL "))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var i int
		if err := rows.Scan(&i); err != nil {
			return nil, err
		}
		list = append(list, e.all[i])
	}
	return list, rows.Err()
}

// empty makes the tables what they were when they were made. Triggers that keep
// rows from being deleted do not fire.
func (e *emptied) empty(ctx context.Context, c *sql.Conn) error {
	filled, err := e.filled(ctx, c)
	if err != nil {
		return err
	}
	for _, table := range e.began {
		if !slices.Contains(filled, table) {
			filled = append(filled, table)
		}
	}
	var statements []string
	if e.postgres() {
		statements = []string{"TRUNCATE " + strings.Join(filled, ", ") + " RESTART IDENTITY CASCADE", "SET session_replication_role = replica"}
	} else {
		statements = []string{"SET foreign_key_checks = 0"}
		for _, table := range filled {
			statements = append(statements, "TRUNCATE TABLE "+table)
		}
	}
	for _, table := range e.began {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s%s", table, keptPrefix, table))
	}
	for _, statement := range statements {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

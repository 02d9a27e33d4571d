package lock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	// The driver for PostgreSQL.
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/dibs-dev/dibs/internal/sqltable"
)

// SQL gives locks that a database server keeps for a connection: GET_LOCK of
// MySQL and MariaDB, advisory locks of PostgreSQL. There is no
// lifetime: a lock ends with its connection, which the server notices at once
// when the holder's process dies, and only by its own time-outs when the network
// swallows it. Each lock, and each wait for one, has a connection of its own.
// MySQL has no shared locks.
//
// A connection that has a lock is used by its watch, and after the watch has ended by
// Unlock: never by both.
type SQL struct {
	db       *sql.DB
	postgres bool
	// database is MySQL's, whose locks are the whole server's, while the fences
	// are a database's.
	database string
	owners   owners
	open     openLocks
}

var _ Locker = (*SQL)(nil)

// watchEvery is how often a holder asks whether its connection is there.
// A holder whose connection broke learns of it within that time and the wait for one
// answer.
const watchEvery = time.Second

// OpenSQL connects to a database at mysql:// or postgres://, and makes the table
// of the fences, dibs_lock_fences.
func OpenSQL(ctx context.Context, address string) (*SQL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("lock: the address of a database is not a URL")
	}
	l := &SQL{postgres: strings.HasPrefix(u.Scheme, "postgres")}
	name := "VARCHAR(200) COLLATE utf8mb4_bin"
	if l.postgres {
		l.db, err = sql.Open("pgx", address)
		name = "VARCHAR(200)"
	} else {
		l.database = strings.TrimPrefix(u.Path, "/")
		l.db, err = openMySQL(u)
	}
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	fences := "CREATE TABLE IF NOT EXISTS dibs_lock_fences (name " + name + " PRIMARY KEY, fence BIGINT NOT NULL)"
	if err := sqltable.Make(ctx, l.db, fences); err != nil {
		return nil, errors.Join(fmt.Errorf("lock: making the table of fences: %w", err), l.db.Close())
	}
	return l, nil
}

func openMySQL(u *url.URL) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		cfg.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	cfg.InterpolateParams = true
	// A connection that breaks is an error that its holder is told.
	cfg.Logger = &mysql.NopLogger{}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// Close implements Locker.
func (l *SQL) Close() error { return errors.Join(l.open.closeAll(), l.db.Close()) }

// Lock implements Locker.
func (l *SQL) Lock(ctx context.Context, name string, o Options) (Held, error) {
	return l.owners.lock(ctx, name, o, l.take)
}

func (l *SQL) take(ctx context.Context, name string, o Options) (Held, error) {
	if o.Shared && !l.postgres {
		return nil, fmt.Errorf("%w: MySQL has no shared locks by name", ErrUnsupported)
	}
	bounded, cancel, busy := waiting(ctx, &o)
	defer cancel()
	conn, err := l.db.Conn(bounded)
	if err != nil {
		return nil, busy(err)
	}
	got, err := l.ask(bounded, conn, name, &o)
	var fence uint64
	if err == nil && got {
		fence, err = l.fence(bounded, conn, name)
	}
	if err != nil || !got {
		// A connection that may have the lock goes.
		drop(conn)
		if err == nil {
			return nil, ErrBusy
		}
		return nil, busy(err)
	}
	return l.hold(ctx, conn, name, o.Shared, fence), nil
}

// ask takes the lock on a connection; the server wakes who waits.
func (l *SQL) ask(ctx context.Context, conn *sql.Conn, name string, o *Options) (got bool, err error) {
	if !l.postgres {
		// The driver ends the connection when the context ends, and the server
		// ends the wait with it.
		seconds := 31_536_000.0
		if o.Wait == NoWait {
			seconds = 0
		}
		var answer sql.NullInt64
		err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", l.mysqlName(name), seconds).Scan(&answer)
		return answer.Int64 == 1, err
	}
	call := "pg_advisory_lock"
	if o.Wait == NoWait {
		call = "pg_try_advisory_lock"
	}
	if o.Shared {
		call += "_shared"
	}
	if o.Wait == NoWait {
		err := conn.QueryRowContext(ctx, "SELECT "+call+postgresName, name).Scan(&got)
		return got, err
	}
	_, err = conn.ExecContext(ctx, "SELECT "+call+postgresName, name)
	return err == nil, err
}

// mysqlName is a name as MySQL takes it: at most 64 characters, in any case.
func (l *SQL) mysqlName(name string) string { return "dibs:" + digest(l.database+"\x00"+name) }

// postgresName is a name as PostgreSQL takes it, in the schema that has the
// table of fences.
const postgresName = "(hashtextextended(COALESCE(current_schema(), '') || ' ' || $1, 0))"

// fence counts the holders of a name, in a table, since the server does not.
func (l *SQL) fence(ctx context.Context, conn *sql.Conn, name string) (n uint64, err error) {
	if l.postgres {
		err := conn.QueryRowContext(ctx, "INSERT INTO dibs_lock_fences VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET fence = dibs_lock_fences.fence + 1 RETURNING fence", name).Scan(&n)
		return n, err
	}
	r, err := conn.ExecContext(ctx, "INSERT INTO dibs_lock_fences VALUES (?, LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE fence = LAST_INSERT_ID(fence + 1)", name)
	if err != nil {
		return 0, err
	}
	id, err := r.LastInsertId()
	return uint64(id), err
}

func (l *SQL) hold(ctx context.Context, conn *sql.Conn, name string, shared bool, fence uint64) Held {
	h := newHeld(ctx, fence)
	l.open.add(h)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		l.watch(h, conn)
	}()
	h.giveBack = func(ctx context.Context) error {
		l.open.remove(h)
		<-watched
		ctx, cancel := context.WithTimeout(ctx, leaving)
		defer cancel()
		if err := l.unlock(ctx, conn, name, shared); err != nil {
			drop(conn)
			return errors.Join(ErrLost, err)
		}
		return conn.Close()
	}
	return h
}

// watch asks whether the connection is there, and with it the lock.
func (l *SQL) watch(h *held, conn *sql.Conn) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
		}
		// Not the holder's context: its end would end the connection too.
		ctx, cancel := context.WithTimeout(context.Background(), leaving)
		err := conn.PingContext(ctx)
		cancel()
		if err != nil {
			h.lost(err)
			return
		}
	}
}

func (l *SQL) unlock(ctx context.Context, conn *sql.Conn, name string, shared bool) error {
	query := "SELECT pg_advisory_unlock" + postgresName
	switch {
	case !l.postgres:
		query, name = "SELECT RELEASE_LOCK(?)", l.mysqlName(name)
	case shared:
		query = "SELECT pg_advisory_unlock_shared" + postgresName
	}
	var was sql.NullBool
	err := conn.QueryRowContext(ctx, query, name).Scan(&was)
	if err == nil && !was.Bool {
		err = errors.New("lock: the server does not know of it")
	}
	return err
}

// drop ends a connection, instead of giving it back to the pool.
func drop(conn *sql.Conn) {
	// The error is the one that makes the pool drop it.
	_ = conn.Raw(func(any) error { return errDropped })
	_ = conn.Close()
}

// errDropped makes the pool close a connection.
var errDropped = driver.ErrBadConn

// digest is a name in 40 characters.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:20])
}

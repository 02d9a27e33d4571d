package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/dibs-dev/dibs/internal/keyring"
)

// Session is one connection with the statements prepared on it, for the time of
// one call.
//
// A session is in its pool or in the hands of one goroutine, never both:
// nothing in it is locked. call is set from when the pool hands the session out
// until its transaction ends, or until it is returned. A session whose
// connection is in doubt is marked broken; the pool closes that connection
// before its next use.
type Session struct {
	*Dialect
	// Codes is that of the Config.
	Codes *keyring.Equals
	now   func() time.Time
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	// broken: the state of the connection is unknown.
	broken bool
	// guarded: the transaction has a savepoint that tells whether it still is
	// the one that began; see begin.
	guarded bool
	// call is what the session is used for; done ends the call.
	call *call
	done func()
}

// control runs a statement that begins or ends a transaction. Some databases do
// not prepare these.
func (s *Session) control(ctx context.Context, statement string) error {
	if s.server == nil {
		_, err := s.Exec(ctx, statement)
		return err
	}
	_, err := s.conn.ExecContext(ctx, statement)
	return err
}

// stmt returns the prepared statement of a text.
func (s *Session) stmt(ctx context.Context, statement string) (*sql.Stmt, error) {
	if st, ok := s.stmts[statement]; ok {
		return st, nil
	}
	st, err := s.conn.PrepareContext(ctx, s.bound(statement))
	if err != nil {
		return nil, s.doubted(err)
	}
	s.stmts[statement] = st
	return st, nil
}

// doubted returns an error of a statement, and marks the session broken when
// the server is no longer the one to talk to: it ends, another server was
// promoted and this one takes no writes, or it was cut off from its cluster.
func (s *Session) doubted(err error) error {
	if err != nil && s.server != nil && s.classify(err) == FaultIO {
		s.broken = true
	}
	return err
}

// Exec runs a statement and returns how many rows it changed.
func (s *Session) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	ctx = s.within(ctx)
	st, err := s.stmt(ctx, statement)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		s.forget(statement, err)
		return 0, s.doubted(err)
	}
	return res.RowsAffected()
}

// forget closes a prepared statement that a server refused to run. MariaDB
// remembers that an argument was too large, and would refuse the statement's
// next arguments too.
func (s *Session) forget(statement string, err error) {
	if s.server == nil || lost(err) {
		return
	}
	// The statement's own error says more than that of closing it.
	_ = s.stmts[statement].Close()
	delete(s.stmts, statement)
}

// InsertNew runs an INSERT of one row, and returns 0 when a row with its key
// exists, which stays as it is.
func (s *Session) InsertNew(ctx context.Context, statement string, args ...any) (int64, error) {
	n, err := s.Exec(ctx, statement+s.KeepExisting, args...)
	if s.KeepExisting == "" && err != nil && s.classify(err) == FaultUnique {
		return 0, nil
	}
	return n, err
}

// query runs a statement that returns rows. The caller closes them.
func (s *Session) query(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	ctx = s.within(ctx)
	st, err := s.stmt(ctx, statement)
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(ctx, args...)
	return rows, s.doubted(err)
}

// Row runs a statement that returns one row and scans it. The error is
// sql.ErrNoRows when there is none.
func (s *Session) Row(ctx context.Context, statement string, args []any, dest ...any) error {
	ctx = s.within(ctx)
	st, err := s.stmt(ctx, statement)
	if err != nil {
		return err
	}
	return s.doubted(st.QueryRowContext(ctx, args...).Scan(dest...))
}

// Each runs a statement and calls scan for each row, until scan returns an
// error.
func (s *Session) Each(ctx context.Context, statement string, args []any, scan func(*sql.Rows) error) error {
	rows, err := s.query(ctx, statement, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		s.call.progress()
		if err := scan(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// Number runs a statement that returns one number, as it is: not prepared, and
// in ctx instead of the call's time. It is for Config.Fenced, which is called
// while a connection is made.
func (s *Session) Number(ctx context.Context, statement string) (int64, error) {
	return number(ctx, s.conn, statement)
}

// Now returns the time by this machine's clock.
func (s *Session) Now() time.Time { return s.now() }

// SharedNow returns the time in milliseconds since 1970, by the clock that all
// processes of the database share: the server's, or for a file this machine's.
func (s *Session) SharedNow(ctx context.Context) (int64, error) {
	if s.server == nil {
		return s.Now().UnixMilli(), nil
	}
	var seconds float64
	err := s.Row(ctx, s.server.unixTime, nil, &seconds)
	return int64(seconds * 1000), err
}

// drop closes the connection and forgets its statements.
func (s *Session) drop() error {
	conn := s.conn
	stmts := s.stmts
	s.conn, s.stmts, s.broken = nil, nil, false
	if conn == nil {
		return nil
	}
	var errs []error
	if s.server == nil {
		// A server forgets them with the connection, which may be gone.
		for _, st := range stmts {
			errs = append(errs, st.Close())
		}
	}
	return errors.Join(append(errs, closeForGood(conn))...)
}

// closeForGood closes the database's connection itself instead of giving it
// back to database/sql: its state may be unknown.
func closeForGood(conn *sql.Conn) error {
	err := conn.Raw(func(any) error { return errBadState })
	if errors.Is(err, errBadState) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

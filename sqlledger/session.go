package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// errClosed: the ledger or the journal was closed.
var errClosed = errors.New("sqlledger: closed")

// session is one connection with the statements prepared on it. One goroutine
// at a time uses it.
type session struct {
	d     *dialect
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	// broken is set when the state of the connection is unknown: it is replaced
	// before the next use.
	broken bool
	// guarded is set in a transaction that must not be ended in its midst unnoticed.
	guarded bool
	// call is what the session is used for, nil in the pool and once the transaction
	// ends; done ends the call.
	call *call
	done func()
}

// control runs a statement that begins or ends a transaction. Some databases
// do not prepare these.
func (s *session) control(ctx context.Context, statement string) error {
	if s.d.server == nil {
		_, err := s.exec(ctx, statement)
		return err
	}
	_, err := s.conn.ExecContext(ctx, statement)
	return err
}

// errRolledBack: the database answered a COMMIT by undoing the transaction.
var errRolledBack = errors.New("the database rolled the transaction back instead of committing it")

// commit ends the transaction.
func (s *session) commit(ctx context.Context) error {
	if err := s.stillWhole(ctx); err != nil {
		return err
	}
	if s.d.server == nil || s.d.server.commit == nil {
		return s.control(ctx, "COMMIT")
	}
	return s.d.server.commit(ctx, s.conn)
}

// insertNew runs an insert of one row and returns 0 when a row with its key is
// there already, which stays.
func (s *session) insertNew(ctx context.Context, statement string, args ...any) (int64, error) {
	n, err := s.exec(ctx, statement+s.d.keepExisting, args...)
	if s.d.keepExisting == "" && err != nil && s.d.classify(err) == faultUnique {
		return 0, nil
	}
	return n, err
}

// stmt returns the prepared statement of a text.
func (s *session) stmt(ctx context.Context, statement string) (*sql.Stmt, error) {
	if st, ok := s.stmts[statement]; ok {
		return st, nil
	}
	st, err := s.conn.PrepareContext(ctx, s.d.bound(statement))
	if err != nil {
		return nil, s.doubted(err)
	}
	s.stmts[statement] = st
	return st, nil
}

// doubted returns an error of a statement, and has the session connect anew when it
// says that the server is no longer the one to talk to: it ends, takes no writes
// any more since another was promoted, or was cut off from its cluster.
func (s *session) doubted(err error) error {
	if err != nil && s.d.server != nil && s.d.classify(err) == faultIO {
		s.broken = true
	}
	return err
}

// exec runs a statement and returns how many rows it changed.
func (s *session) exec(ctx context.Context, statement string, args ...any) (int64, error) {
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

// forget drops a prepared statement that a server refused to run: MariaDB
// remembers that an argument was too large, and refuses what comes next too.
func (s *session) forget(statement string, err error) {
	if s.d.server == nil || lost(err) {
		return
	}
	// What became of the statement says less than its own error.
	_ = s.stmts[statement].Close()
	delete(s.stmts, statement)
}

// query runs a statement that returns rows. The caller closes them.
func (s *session) query(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	ctx = s.within(ctx)
	st, err := s.stmt(ctx, statement)
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(ctx, args...)
	return rows, s.doubted(err)
}

// row runs a statement that returns one row and scans it; sql.ErrNoRows when
// there is none.
func (s *session) row(ctx context.Context, statement string, args []any, dest ...any) error {
	ctx = s.within(ctx)
	st, err := s.stmt(ctx, statement)
	if err != nil {
		return err
	}
	return s.doubted(st.QueryRowContext(ctx, args...).Scan(dest...))
}

// each runs a statement and calls scan for each row.
func (s *session) each(ctx context.Context, statement string, args []any, scan func(*sql.Rows) error) error {
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

// drop closes the connection and forgets its statements.
func (s *session) drop() error {
	conn := s.conn
	stmts := s.stmts
	s.conn, s.stmts, s.broken = nil, nil, false
	if conn == nil {
		return nil
	}
	var errs []error
	if s.d.server == nil {
		// A server forgets them with the connection, which may be gone.
		for _, st := range stmts {
			errs = append(errs, st.Close())
		}
	}
	return errors.Join(append(errs, closeForGood(conn))...)
}

// closeForGood closes the database's connection itself, and does not give it
// back to the pool: its state may be unknown.
func closeForGood(conn *sql.Conn) error {
	err := conn.Raw(func(any) error { return errBadState })
	if errors.Is(err, errBadState) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// pool hands out sessions, at most its size at a time: always the one that was
// used last, whose statements are prepared and whose server has its tables at
// hand, so that there are only as many connections as are used at once.
type pool struct {
	d   *dialect
	db  *sql.DB
	use usage
	// free has a place for each session that nobody uses; who takes it may take a
	// session from the end of idle.
	free chan struct{}
	mu   sync.Mutex
	idle []*session
	// greet, when it is not nil, is called with each new connection to a server.
	greet func(ctx context.Context, s *session) error
	// closed is closed by the first close, whose result is kept for the others.
	closed chan struct{}
	once   sync.Once
	result error
}

// newPool makes a pool of size sessions, which connect at their first use.
func newPool(d *dialect, place string, use usage, size int) (*pool, error) {
	db, err := d.open(place, use)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	p := &pool{d: d, db: db, use: use, free: make(chan struct{}, size), closed: make(chan struct{})}
	for range size {
		p.put(&session{d: d})
	}
	return p, nil
}

// put lays a session down that nobody uses any more.
func (p *pool) put(s *session) {
	p.mu.Lock()
	p.idle = append(p.idle, s)
	p.mu.Unlock()
	p.free <- struct{}{}
}

// pick takes the session that was used last; only for who had a place of free.
func (p *pool) pick() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	s := p.idle[last]
	p.idle = p.idle[:last]
	return s
}

// take waits for a session and connects it, for the call that ctx belongs to or a
// new one.
func (p *pool) take(ctx context.Context) (*session, error) {
	c, done := p.d.call(ctx)
	c.begins(p.d.server != nil)
	s, err := p.seat(c.ctx)
	if err != nil {
		done()
		return nil, c.late(err)
	}
	s.call, s.done = c, done
	return s, nil
}

// seat waits for a session and connects it.
func (p *pool) seat(ctx context.Context) (*session, error) {
	// With several ways open, select takes any: these two come first.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-p.closed:
		return nil, errClosed
	default:
	}
	select {
	case <-p.free:
	case <-p.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s := p.pick()
	if s.conn != nil && p.d.server != nil && !alive(ctx, s.conn) {
		// A connection that is gone is closed already: nothing can fail.
		_ = s.drop()
	}
	if s.conn == nil {
		if err := p.connect(ctx, s); err != nil {
			p.put(s)
			return nil, err
		}
	}
	return s, nil
}

// connect opens the session's connection.
func (p *pool) connect(ctx context.Context, s *session) error {
	s.stmts = make(map[string]*sql.Stmt)
	if p.d.server != nil {
		return p.d.server.connect(ctx, p, s)
	}
	var err error
	s.conn, err = p.db.Conn(ctx)
	return err
}

// give returns a session; a broken one reconnects at its next use.
func (p *pool) give(s *session) error {
	s.done()
	s.call, s.done = nil, nil
	var err error
	if s.broken {
		err = s.drop()
	}
	p.put(s)
	return err
}

// close waits for the sessions in use and closes all. It may be called again.
func (p *pool) close() error {
	p.once.Do(func() {
		close(p.closed)
		var errs []error
		for range cap(p.free) {
			<-p.free
			errs = append(errs, p.pick().drop())
		}
		p.result = errors.Join(append(errs, p.db.Close())...)
	})
	return p.result
}

// transact runs f in a transaction that begins with the given statement. The
// error of a failed commit is an *unknownEffect, unless the disk was full: it
// may or may not have happened. After any other error, nothing was changed.
func (p *pool) transact(ctx context.Context, begin string, f func(*session) error) error {
	s, err := p.take(ctx)
	if err != nil {
		return err
	}
	c := s.call
	if err = p.begin(c.ctx, s, begin); err == nil {
		err = s.transact(ctx, f)
	}
	return errors.Join(c.late(err), p.give(s))
}

// begin begins a transaction. A connection to a server may have ended while it
// lay idle, and the server may have said why with its last words: nothing has
// happened then, and another one will do.
func (p *pool) begin(ctx context.Context, s *session, begin string) error {
	err := s.start(ctx, begin)
	if err != nil && p.d.server != nil && p.d.classify(err) == faultIO && ctx.Err() == nil {
		// A connection that is gone is closed already: nothing can fail.
		_ = s.drop()
		if err = p.connect(ctx, s); err == nil {
			err = s.start(ctx, begin)
		}
	}
	s.broken = err != nil
	return err
}

// transact runs f in the transaction that has begun, and ends it.
func (s *session) transact(ctx context.Context, f func(*session) error) error {
	err := f(s)
	// Ending the transaction must not be cut short; it has its own time, however
	// long the work took.
	whole, cancel := s.ending(ctx)
	defer cancel()
	if err != nil {
		// What was found after the transaction had ended is not what it would have found.
		if gone := s.stillWhole(whole); gone != nil && s.d.classify(gone) == faultConflict {
			err = gone
		}
		if undo := s.control(whole, "ROLLBACK"); undo != nil {
			// The database may have rolled back by itself; closing the
			// connection does it in any case.
			s.broken = true
		}
		return err
	}
	if err := s.commit(whole); err != nil {
		s.broken = true
		if errors.Is(err, errRolledBack) {
			return err
		}
		switch s.d.classify(err) {
		case faultFull, faultConflict:
			// There was no room for the transaction's last page, without which
			// it does not exist, now or after a crash. Or the database ended it in
			// favour of another: a Galera cluster finds that out at the commit.
			return err
		}
		return &unknownEffect{err}
	}
	return nil
}

// unknownEffect is the error of a commit whose outcome is not known.
type unknownEffect struct{ cause error }

func (e *unknownEffect) Error() string { return fmt.Sprintf("commit: %v", e.cause) }
func (e *unknownEffect) Unwrap() error { return e.cause }

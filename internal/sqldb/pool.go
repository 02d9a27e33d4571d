package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

// pool hands out sessions, at most its size at a time. It hands out the one
// that was used last: its statements are prepared and its server has its tables
// at hand, and there are only as many connections as are used at once.
//
// free has one token for each session in idle. A goroutine that takes a token
// may take the last session of idle, under mu; put gives both back. After
// close, every token has been taken by close and none returns.
type pool struct {
	*Dialect
	conn *sql.DB
	use  usage
	// timeout bounds each call; now is the clock of this machine.
	timeout time.Duration
	now     func() time.Time
	free    chan struct{}
	mu      sync.Mutex
	idle    []*Session
	// greet, when it is not nil, is called with each new connection to a
	// server.
	greet func(ctx context.Context, s *Session) error
	// closed is closed by the first close, whose result is kept for later ones.
	closed chan struct{}
	once   sync.Once
	result error
}

// newPool makes a pool of size sessions, which connect at their first use.
func newPool(d *Dialect, use usage, size int, timeout time.Duration, now func() time.Time) (*pool, error) {
	conn, err := d.open(use)
	if err != nil {
		return nil, err
	}
	conn.SetMaxOpenConns(size)
	conn.SetMaxIdleConns(size)
	p := &pool{
		Dialect: d, conn: conn, use: use, timeout: timeout, now: now,
		free: make(chan struct{}, size), closed: make(chan struct{}),
	}
	for range size {
		p.put(&Session{Dialect: d, now: now})
	}
	return p, nil
}

// put returns a session to the pool.
func (p *pool) put(s *Session) {
	p.mu.Lock()
	p.idle = append(p.idle, s)
	p.mu.Unlock()
	p.free <- struct{}{}
}

// pick returns the session that was used last. The caller has taken a token of
// free.
func (p *pool) pick() *Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	s := p.idle[last]
	p.idle = p.idle[:last]
	return s
}

// take waits for a session and connects it, for the call that ctx belongs to or
// a new one.
func (p *pool) take(ctx context.Context) (*Session, error) {
	c, done := beginCall(ctx, p.timeout)
	c.begins(p.server != nil)
	s, err := p.connected(c.ctx)
	if err != nil {
		done()
		return nil, c.late(err)
	}
	s.call, s.done = c, done
	return s, nil
}

// connected waits for a session and connects it.
func (p *pool) connected(ctx context.Context) (*Session, error) {
	// The select below chooses at random among the cases that are ready; these
	// two must win.
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
	if s.conn != nil && p.server != nil && !alive(ctx, s.conn) {
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
func (p *pool) connect(ctx context.Context, s *Session) error {
	s.stmts = make(map[string]*sql.Stmt)
	if p.server != nil {
		return p.server.connect(ctx, p, s)
	}
	var err error
	s.conn, err = p.conn.Conn(ctx)
	return err
}

// give returns a session. A broken one loses its connection and connects at its
// next use.
func (p *pool) give(s *Session) error {
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
		p.result = errors.Join(append(errs, p.conn.Close())...)
	})
	return p.result
}

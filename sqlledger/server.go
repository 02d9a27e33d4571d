package sqlledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// connectPatience bounds the wait for a connection, so that a server that
	// is not there is known soon.
	connectPatience = 4 * time.Second
	// lockPatience is how long a statement waits for rows of another
	// transaction.
	lockPatience = 10 * time.Second
	// stallPatience is how long a transaction that writes may ask nothing: then the
	// server ends it, so that those who wait for its rows go on before lockPatience
	// is over. Its process may be frozen.
	stallPatience = 8 * time.Second
	// serverWriters is how many connections write: settling, and besides it the
	// few calls of people.
	serverWriters = 4
)

// errNoAnswer: the server took a connection, or may have, and said nothing.
var errNoAnswer = fmt.Errorf("the server did not answer within %s", connectPatience)

// errUnfit: the server is not one that a ledger can be entrusted to.
var errUnfit = errors.New("this server cannot keep a ledger as it is")

// server is what a database in another process has besides its dialect: it may
// be absent, and connections to it are lost.
type server struct {
	// settings are statements that each new connection begins with.
	settings func(use usage) []string
	// screen looks at what stands at the address before anything else is done there,
	// and notes what it is.
	screen func(ctx context.Context, db *sql.DB, r *server) error
	// galera is set when the server is one of a Galera cluster.
	galera atomic.Bool
	// check returns an errUnfit that says why the server is none for a ledger.
	check func(ctx context.Context, conn *sql.Conn) error
	// unixTime asks the server for the seconds since 1970.
	unixTime string
	// advise says what people can do about an error; empty when that is not
	// known.
	advise func(err error) string
	// secret is the password, which no error shows.
	secret string
	// locks are the names of locks that end with the connection.
	locks sessionLocks
	// commit commits; nil where the statement COMMIT is enough.
	commit func(ctx context.Context, conn *sql.Conn) error
}

// connect opens a connection and prepares it.
func (r *server) connect(ctx context.Context, p *pool, s *session) error {
	within, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	err := r.prepare(within, p, s)
	if err == nil {
		return nil
	}
	// The first error says more than what closing may add to it.
	_ = s.drop()
	if ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("%w: %s", errNoAnswer, err.Error())
	}
	return err
}

func (r *server) prepare(ctx context.Context, p *pool, s *session) (err error) {
	if s.conn, err = p.db.Conn(ctx); err != nil {
		return err
	}
	for _, statement := range r.settings(p.use) {
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if p.greet == nil {
		return nil
	}
	return p.greet(ctx, s)
}

// alive reports whether a connection that lay idle still stands, as far as
// this side can tell.
func alive(ctx context.Context, conn *sql.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	return conn.Raw(func(c any) error {
		if r, ok := c.(driver.SessionResetter); ok {
			if err := r.ResetSession(ctx); err != nil {
				return driver.ErrBadConn
			}
		}
		return nil
	}) == nil
}

// reach makes sure that the server is there, lets dibs in, and can be trusted
// with a ledger.
func (d *dialect) reach(ctx context.Context, place string) error {
	if err := d.screen(ctx, place); err != nil {
		return d.explain("connect to "+place, err)
	}
	p, err := newPool(d, place, forReading, 1)
	if err != nil {
		return err
	}
	s, err := p.take(ctx)
	if err == nil {
		err = errors.Join(s.call.late(d.server.check(s.within(ctx), s.conn)), p.give(s))
	}
	return d.explain("connect to "+place, errors.Join(err, p.close()))
}

// advised adds to an error of a server what people can do about it.
func (d *dialect) advised(err error) error {
	if d.server == nil {
		return err
	}
	if d.server.secret != "" && strings.Contains(err.Error(), d.server.secret) {
		// No driver should do this; what it said is not worth the risk.
		err = &hidden{err, d.server.secret}
	}
	advice := d.server.advise(err)
	if advice == "" {
		return err
	}
	return fmt.Errorf("%s: %w", advice, err)
}

// hidden is an error without a secret in its text.
type hidden struct {
	cause  error
	secret string
}

func (h *hidden) Error() string { return strings.ReplaceAll(h.cause.Error(), h.secret, "…") }
func (h *hidden) Unwrap() error { return h.cause }

// noTLS begins the advice when an address asks for more than the server can.
const noTLS = "the server does not encrypt, and the address asks for it: set up TLS on the server, or change the option "

// lost reports whether an error is about the way to the server.
func lost(err error) bool {
	var netErr net.Error
	return errors.Is(err, errNoAnswer) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &netErr) || isEOF(err)
}

// silent says what to do about a way to the server that failed; empty when the
// error is another.
func silent(err error, address, kind string) string {
	var dialed *net.OpError
	var unknown *net.DNSError
	switch {
	case !lost(err):
		return ""
	case errors.Is(err, errNoAnswer), errors.As(err, &unknown), errors.As(err, &dialed) && dialed.Op == "dial":
		return "nothing answers at " + address + " as " + kind + " does: start the server, or correct host and port"
	}
	return "the connection to " + address + " was lost"
}

// readOnly is the advice when the server does not write.
const readOnly = "the server is read-only, as replicas are: use the address of the one that is written to"

// dial connects with probes that notice a dead peer within half a minute.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		Timeout:         connectPatience,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4},
	}
	return d.DialContext(ctx, network, address)
}

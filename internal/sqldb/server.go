package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// connectPatience bounds the wait for a connection, so that a missing
	// server is known soon.
	connectPatience = 4 * time.Second
	// lockPatience is how long a statement waits for rows of another
	// transaction.
	lockPatience = 10 * time.Second
	// stallPatience is how long a transaction that writes may send nothing
	// before the server ends it: its process may be frozen. It is shorter than
	// lockPatience, so that those who wait for its rows go on.
	stallPatience = 8 * time.Second
	// idlePatience is after how much silence a server ends a connection.
	idlePatience = time.Minute
)

var (
	// errNoAnswer: the server accepted a connection, or may have, and did not
	// answer.
	errNoAnswer = fmt.Errorf("the server did not answer within %s", connectPatience)
	// errUnfit: the server would break a promise of the tables that are kept
	// there.
	errUnfit = errors.New("this server cannot keep a ledger as it is")
)

// server is what a database in another process has besides its dialect: it may
// be absent, and connections to it get lost.
type server struct {
	// settings are statements that each new connection begins with.
	settings func(use usage) []string
	// screen looks at what answers at the address before anything else is done
	// there, and notes what it is.
	screen func(ctx context.Context, db *sql.DB, r *server) error
	// galera is set when the server is one of a Galera cluster.
	galera atomic.Bool
	// check returns an errUnfit that says why the server cannot be trusted.
	check func(ctx context.Context, conn *sql.Conn) error
	// durable finds the settings of DB.Durable.
	durable func(ctx context.Context, conn *sql.Conn) ([]Finding, error)
	// unixTime asks the server for the seconds since 1970.
	unixTime string
	// advise says what people can do about an error; empty when that is not
	// known.
	advise func(err error) string
	// secret is the password of the address, which no error shows.
	secret string
	// login returns the user and the password of a new connection; nil for those of the
	// address.
	login func() *url.Userinfo
	// locks are the server's locks that end with the connection.
	locks sessionLocks
	// commit commits; nil where the statement COMMIT is enough.
	commit func(ctx context.Context, conn *sql.Conn) error
}

// connect opens a connection for the session and prepares it.
func (r *server) connect(ctx context.Context, p *pool, s *Session) error {
	within, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	err := r.prepare(within, p, s)
	if err == nil {
		return nil
	}
	// The first error says more than what closing may add to it.
	_ = s.drop()
	return noAnswer(ctx, within, err)
}

// noAnswer returns errNoAnswer in place of an error when connectPatience ended
// within, and ctx goes on.
func noAnswer(ctx, within context.Context, err error) error {
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("%w: %s", errNoAnswer, err.Error())
	}
	return err
}

// prepare opens the connection, applies the settings and calls the greeting.
func (r *server) prepare(ctx context.Context, p *pool, s *Session) (err error) {
	if s.conn, err = p.conn.Conn(ctx); err != nil {
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

// alive reports whether a connection that was idle still stands, as far as this
// side can tell.
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

// hidden is an error without a secret in its text.
type hidden struct {
	cause  error
	secret string
}

func (h *hidden) Error() string { return strings.ReplaceAll(h.cause.Error(), h.secret, "…") }
func (h *hidden) Unwrap() error { return h.cause }

const (
	// noTLS begins the advice when an address asks for encryption that the
	// server does not offer.
	noTLS = "the server does not encrypt, and the address asks for it: set up TLS on the server, or change the option "
	// readOnly is the advice when the server does not write.
	readOnly = "the server is read-only, as replicas are: use the address of the one that is written to"
)

// lost reports whether an error is about the connection to the server.
func lost(err error) bool {
	var netErr net.Error
	return errors.Is(err, errNoAnswer) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &netErr) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// unreachable is the advice about a failed connection to a server; empty when
// the error is another.
func unreachable(err error, address, kind string) string {
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

// dial connects with probes that notice a dead peer within half a minute.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		Timeout:         connectPatience,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4},
	}
	return d.DialContext(ctx, network, address)
}

package sqldb

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The default and the bounds of Config.Timeout.
const (
	DefaultTimeout = 5 * time.Second
	MinTimeout     = 500 * time.Millisecond
	MaxTimeout     = time.Minute
)

// How long one statement of a long call may take, in timeouts (see Long).
const (
	// LongStatement is for a statement that reads or writes many rows.
	LongStatement = 12
	// AuditStatement is for a statement that adds up very many rows before it
	// returns its first one.
	AuditStatement = 120
)

const (
	// fewRows is how many rows a call may read or write without being a long
	// one.
	fewRows = 1000
	// endShare is the part of the timeout, one fifth, that the end of a
	// transaction has at least.
	endShare = 5
)

// errSlow: the database did not answer in time. It wraps
// context.DeadlineExceeded for callers that only ask whether time ran out.
var errSlow = fmt.Errorf("the database did not answer in time: %w", context.DeadlineExceeded)

// call is the time that one call of the DB may take. One goroutine at a time
// uses it.
//
// Every statement of the call runs in ctx. The timer ends ctx, with errSlow as
// the cause: after the timeout, waiting included, or for a long call when one
// statement takes longer than statement. Waiting for a session, connecting and
// beginning the transaction have the timeout in long calls too, so that a
// database that hangs is noticed as soon there.
type call struct {
	ctx     context.Context
	timeout time.Duration
	// statement is what each statement of a long call may take; 0 for other
	// calls.
	statement time.Duration
	until     time.Time
	// timer is nil for a call that is not cut short (see Whole).
	timer *time.Timer
}

type (
	callKey  struct{}
	longKey  struct{}
	wholeKey struct{}
)

// Long marks the calls made with a context as long: the timeout bounds the wait
// for a connection, and each statement, and each row that one returns, may take
// so many timeouts (LongStatement, AuditStatement).
func Long(ctx context.Context, timeouts time.Duration) context.Context {
	return context.WithValue(ctx, longKey{}, timeouts)
}

// Whole marks the calls made with a context as whole: neither the timeout nor the end of
// the context cuts them short. It is for tests that make very many calls of a file,
// since a driver and database/sql start goroutines for each statement that can be cut
// short.
func Whole(ctx context.Context) context.Context {
	return context.WithValue(ctx, wholeKey{}, true)
}

// CheckTimeout returns what is wrong with a Config.Timeout.
func CheckTimeout(d time.Duration) error {
	if d != 0 && (d < MinTimeout || d > MaxTimeout) {
		return fmt.Errorf("must be from %s to %s, not %s", MinTimeout, MaxTimeout, d)
	}
	return nil
}

// beginCall returns the call that ctx belongs to, or begins one, and the
// function that ends it.
func beginCall(ctx context.Context, timeout time.Duration) (c *call, end func()) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c, func() {}
	}
	c = &call{timeout: timeout}
	if ctx.Value(wholeKey{}) != nil {
		c.ctx, c.until = context.WithValue(context.WithoutCancel(ctx), callKey{}, c), time.Now().Add(timeout)
		return c, func() {}
	}
	if n, ok := ctx.Value(longKey{}).(time.Duration); ok {
		c.statement = n * c.timeout
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, callKey{}, c))
	c.ctx, c.until = ctx, time.Now().Add(c.timeout)
	c.timer = time.AfterFunc(c.timeout, func() { cancel(errSlow) })
	return c, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// begins gives a transaction of a long call its time to begin. For the one
// session that writes to a file it waits as long as for a statement: another
// long call of this process may be using it.
func (c *call) begins(onServer bool) {
	switch {
	case c.statement == 0:
	case onServer:
		c.timer.Reset(c.timeout)
	default:
		c.timer.Reset(c.statement)
	}
}

// progress gives the next statement of a long call, or its next row, its time.
func (c *call) progress() {
	if c != nil && c.statement > 0 {
		c.timer.Reset(c.statement)
	}
}

// late returns errSlow in place of a driver's error when the call's time was
// over. It keeps the driver's text and not its error, which is the context's
// and would say "canceled".
func (c *call) late(err error) error {
	var unknown *unknownEffect
	if err == nil || errors.As(err, &unknown) || !errors.Is(context.Cause(c.ctx), errSlow) {
		return err
	}
	return fmt.Errorf("%w (%s)", errSlow, err.Error())
}

// ManyRows makes the session's call a long one from its next statement on, when
// it reads or writes many rows.
func (s *Session) ManyRows(rows int64) {
	if rows > fewRows && s.call.timer != nil {
		s.call.statement = max(s.call.statement, LongStatement*s.call.timeout)
	}
}

// within returns the context of the next statement: the call's, which was made
// from ctx. A session that is in no call uses ctx itself.
func (s *Session) within(ctx context.Context) context.Context {
	if s.call == nil {
		return ctx
	}
	s.call.progress()
	return s.call.ctx
}

// ending returns the context in which a transaction ends. The caller's
// cancellation does not cut it short. A server has until the call's deadline to
// answer, but at least a share of the timeout, and all of the timeout at the
// end of a long call. A file's commit waits for nothing but the disk and has no
// deadline.
func (s *Session) ending(ctx context.Context) (context.Context, context.CancelFunc) {
	c, whole := s.call, context.WithoutCancel(ctx)
	// The statement that ends the transaction is not one of the call.
	s.call = nil
	if s.server == nil || c == nil {
		return whole, func() {}
	}
	left := max(time.Until(c.until), c.timeout/endShare)
	if c.statement > 0 {
		left = c.timeout
	}
	return context.WithTimeout(whole, left)
}

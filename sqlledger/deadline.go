package sqlledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The default and the bounds of Options.Timeout.
const (
	DefaultTimeout = 5 * time.Second
	MinTimeout     = 500 * time.Millisecond
	MaxTimeout     = time.Minute
)

const (
	// longStatement is what a statement of a long call may take, in timeouts: one that
	// reads or writes many rows. It begins anew with each row that is read.
	longStatement = 12
	// auditStatement is the same where a statement adds up a whole campaign before it
	// returns its first row.
	auditStatement = 120
	// fewRows is how many rows a call of people may read or write and not be a long one.
	fewRows = 1000
	// endShare is the part of the timeout that the end of a transaction has at least.
	endShare = 5
)

// errSlow: the database did not answer in time. It is a deadline too, for callers
// that only ask whether time ran out.
var errSlow = fmt.Errorf("the database did not answer in time: %w", context.DeadlineExceeded)

// call is the time that one call of the ledger or the journal may take. Every
// statement of the call runs in ctx. The timer ends ctx with errSlow as the cause:
// after the timeout, everything included, or for a long call when one statement
// takes too long. To wait for a session, to connect and to begin a transaction has
// the timeout in long calls too, so a database that hangs is noticed as soon there.
type call struct {
	ctx     context.Context
	timeout time.Duration
	// statement is what each statement of a long call may take, 0 for other calls.
	statement time.Duration
	until     time.Time
	timer     *time.Timer
}

type (
	callKey struct{}
	longKey struct{}
)

// long marks the calls in a context as long: not the call has the timeout, but each
// of its statements has so many timeouts.
func long(ctx context.Context, timeouts time.Duration) context.Context {
	return context.WithValue(ctx, longKey{}, timeouts)
}

// CheckTimeout says what is wrong with an Options.Timeout.
func CheckTimeout(d time.Duration) error {
	if d != 0 && (d < MinTimeout || d > MaxTimeout) {
		return fmt.Errorf("must be from %s to %s, not %s", MinTimeout, MaxTimeout, d)
	}
	return nil
}

// bounded gives the calls the timeout of the options.
func (d *dialect) bounded(opts Options) error {
	if err := CheckTimeout(opts.Timeout); err != nil {
		return fmt.Errorf("sqlledger: Options.Timeout %w", err)
	}
	d.timeout = opts.Timeout
	return nil
}

// patience is the timeout of calls.
func (d *dialect) patience() time.Duration {
	if d.timeout == 0 {
		return DefaultTimeout
	}
	return d.timeout
}

// call returns the call that ctx belongs to, or begins one, and what ends it.
func (d *dialect) call(ctx context.Context) (c *call, end func()) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c, func() {}
	}
	c = &call{timeout: d.patience()}
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

// begins gives a transaction of a long call its time to begin. For the one session that
// writes to a file it waits longer: another long call of this process may have it.
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

// late returns errSlow in place of what a driver says when the call's time was over.
// The text stays; the driver's error does not, since it is the context's.
func (c *call) late(err error) error {
	var unknown *unknownEffect
	if err == nil || errors.As(err, &unknown) || !errors.Is(context.Cause(c.ctx), errSlow) {
		return err
	}
	return fmt.Errorf("%w (%s)", errSlow, err.Error())
}

// many makes the session's call a long one when it reads or writes so many rows, from
// its next statement on.
func (s *session) many(rows int64) {
	if rows > fewRows {
		s.call.statement = max(s.call.statement, longStatement*s.call.timeout)
	}
}

// within returns the context of a statement: the call's, which was made from ctx. A
// session that is in no call has none of its own.
func (s *session) within(ctx context.Context) context.Context {
	if s.call == nil {
		return ctx
	}
	s.call.progress()
	return s.call.ctx
}

// ending returns the context in which a transaction ends: what the caller does
// cannot cut it short, and a server has until the call's deadline to answer, but at
// least a share of the timeout, and all of it at the end of a long call. A file's
// commit waits for nobody but the disk and has no deadline.
func (s *session) ending(ctx context.Context) (context.Context, context.CancelFunc) {
	c, whole := s.call, context.WithoutCancel(ctx)
	// What ends the transaction is no statement of the call.
	s.call = nil
	if s.d.server == nil || c == nil {
		return whole, func() {}
	}
	left := max(time.Until(c.until), c.timeout/endShare)
	if c.statement > 0 {
		left = c.timeout
	}
	return context.WithTimeout(whole, left)
}

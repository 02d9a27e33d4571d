package sqldb

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// Fault is the class of an error: what a caller can do about it.
type Fault int

const (
	// FaultOther is an error of the program, or one of its callbacks': a wrong
	// statement, a broken file.
	FaultOther Fault = iota
	// FaultUnique: a row with this key exists.
	FaultUnique
	// FaultConstraint: another constraint refused the row.
	FaultConstraint
	// FaultText: a text has characters that the database cannot store.
	FaultText
	// FaultBusy: another process holds a lock. It passes.
	FaultBusy
	// FaultConflict: the database ended the transaction in favour of another
	// one. Nothing was written, and the same transaction is likely to succeed
	// next time.
	FaultConflict
	// FaultFull: no space is left. Nothing was written.
	FaultFull
	// FaultIO: the disk or the connection failed, or the DB is closed.
	FaultIO
	// FaultCorrupt: the stored bytes are damaged.
	FaultCorrupt
	// FaultSlow: the call's time ran out before the commit. Nothing was
	// written.
	FaultSlow
	// FaultUnknownEffect: the commit failed, and may have happened.
	FaultUnknownEffect
)

var (
	// errClosed: the DB was closed.
	errClosed = errors.New("the database is closed here")
	// errBadState makes database/sql close a connection instead of keeping it.
	errBadState = fmt.Errorf("the connection's state is unknown: %w", driver.ErrBadConn)
	// errLockTaken: another connection took the lock of the schema while this
	// process had lost its own. It passes: the new owner fences this process
	// next, and then Config.Fenced knows.
	errLockTaken = errors.New("the lock is held by another connection")
	// errRolledBack: the database answered a COMMIT by undoing the transaction.
	errRolledBack = errors.New("the database rolled the transaction back instead of committing it")
)

// unknownEffect is the error of a commit that may have happened.
type unknownEffect struct{ cause error }

func (e *unknownEffect) Error() string { return fmt.Sprintf("commit: %v", e.cause) }
func (e *unknownEffect) Unwrap() error { return e.cause }

// Fault returns the class of an error that a method of the DB or of one of its
// sessions returned.
func (d *Dialect) Fault(err error) Fault {
	var unknown *unknownEffect
	switch {
	case errors.As(err, &unknown):
		return FaultUnknownEffect
	case errors.Is(err, errSlow):
		return FaultSlow
	case errors.Is(err, errLockTaken):
		return FaultBusy
	case errors.Is(err, errClosed), errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone):
		return FaultIO
	}
	return d.classify(err)
}

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dibs-dev/dibs/internal/settings"
)

// The exit codes of the program.
const (
	ExitOK      = 0
	ExitFailure = 1
	// ExitUsage is for a bad command line or bad settings: the same command fails
	// again until the user changes it.
	ExitUsage = 2
	// ExitUnjudged is for a rehearsal that found no broken promise but could not
	// judge every promise.
	ExitUnjudged = 3
)

// ErrUnjudged makes the program exit with ExitUnjudged.
var ErrUnjudged = errors.New("nothing is broken, and not every promise could be judged")

// usageError is a fault of the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage marks an error as a fault of the command line.
func Usage(err error) error { return &usageError{err} }

// Usagef returns a fault of the command line.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// faultsError lists what is wrong with settings or flags, a line each.
type faultsError struct {
	what   string
	faults []settings.Fault
}

// Faults returns one error that lists all the faults below a line that says what
// they are about; nil without faults.
func Faults(what string, faults []settings.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &faultsError{what, faults}
}

func (e *faultsError) Error() string {
	var b strings.Builder
	b.WriteString(e.what)
	for _, f := range e.faults {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// exitCode returns the exit code of the process after err.
func exitCode(err error) int {
	var usage *usageError
	var faults *faultsError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage), errors.As(err, &faults):
		return ExitUsage
	case errors.Is(err, ErrUnjudged):
		return ExitUnjudged
	}
	return ExitFailure
}

// Message returns the text of an error for people: without the names of packages,
// and on one line unless it is a list of faults.
func Message(err error) string {
	text := err.Error()
	var faults *faultsError
	if !errors.As(err, &faults) {
		text = Plain(strings.Join(strings.Fields(text), " "))
	}
	return packagePrefix.ReplaceAllString(text, "$1")
}

// packagePrefix matches the names of packages that errors begin with. Users know
// one program, so that the names tell them nothing.
var packagePrefix = regexp.MustCompile(`(^|: |\()(?:(?:dibs|embedded|sqlledger|memengine|redisengine|idgen|httpapi|client|consumer|node|settings|lab|strategies|servers|lock): )+`)

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dibs-dev/dibs/internal/settings"
)

// The exit codes.
const (
	ExitOK      = 0
	ExitFailure = 1
	// ExitUsage is for a bad command line or bad settings.
	ExitUsage = 2
	// ExitUnjudged is for a rehearsal that found nothing broken, and could not judge
	// all.
	ExitUnjudged = 3
)

// ErrUnjudged is why a rehearsal ends with exitUnjudged.
var ErrUnjudged = errors.New("nothing is broken, and not every promise could be judged")

// usageError is a fault of the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage makes an error one of the command line.
func Usage(err error) error { return &usageError{err} }

// Usagef makes a usageError.
func Usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// settingsError lists what is wrong with the settings, a line each.
type settingsError struct {
	what   string
	faults []settings.Fault
}

func (e *settingsError) Error() string {
	var b strings.Builder
	b.WriteString(e.what)
	for _, f := range e.faults {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// ExitCode is what the process ends with after err.
func ExitCode(err error) int {
	var usage *usageError
	var wrong *settingsError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage), errors.As(err, &wrong):
		return ExitUsage
	case errors.Is(err, ErrUnjudged):
		return ExitUnjudged
	}
	return ExitFailure
}

// Message is an error as people read it: without the names of packages, and
// one line long unless it is a list of settings.
func Message(err error) string {
	text := err.Error()
	var wrong *settingsError
	if !errors.As(err, &wrong) {
		text = strings.Join(strings.Fields(text), " ")
	}
	return packagePrefix.ReplaceAllString(text, "$1")
}

// packagePrefix is how errors inside name where they come from; people know
// one program.
var packagePrefix = regexp.MustCompile(`(^|: |\()(?:(?:dibs|embedded|sqlledger|memengine|redisengine|idgen|httpapi|client|settings|lab|strategies|servers|lock): )+`)

// Faults makes one error of faults, nil of none.
func Faults(what string, faults []settings.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &settingsError{what, faults}
}

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/redisengine"
	"github.com/dibs-dev/dibs/sqlledger"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	// exitUsage is for a bad command line or bad settings.
	exitUsage = 2
	// exitUnjudged is for a rehearsal that found nothing broken, and could not judge
	// all.
	exitUnjudged = 3
)

// errUnjudged is why a rehearsal ends with exitUnjudged.
var errUnjudged = errors.New("nothing is broken, and not every promise could be judged")

// usageError is a fault of the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes a usageError.
func usagef(format string, args ...any) error {
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

// exitCode is what the process ends with after err.
func exitCode(err error) int {
	var usage *usageError
	var wrong *settingsError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.As(err, &wrong):
		return exitUsage
	case errors.Is(err, errUnjudged):
		return exitUnjudged
	}
	return exitFailure
}

// message is an error as people read it: without the names of packages, and
// one line long unless it is a list of settings.
func message(err error) string {
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

// ownerName is how a node names itself in the journal that it owns.
var ownerName = regexp.MustCompile(`process \d+ on [^\s)]+`)

// ownerOf names the owner that an error is about.
func ownerOf(err error) string {
	if owner := ownerName.FindString(err.Error()); owner != "" {
		return owner
	}
	return "another process"
}

// explainOpen says what to do about a data folder that cannot be opened;
// otherwise names what may be done instead, such as another flag.
func explainOpen(c *config, err error, otherwise string) error {
	switch {
	case errors.Is(err, dibs.ErrOwned):
		return fmt.Errorf("%s is in use by %s: %s", c.store(), ownerOf(err), otherwise)
	case errors.Is(err, sqlledger.ErrSchema):
		if sqlledger.InServer(c.Ledger) {
			return fmt.Errorf("%w (dibs migrate brings an older schema up to date)", err)
		}
		return fmt.Errorf("%w (dibs migrate --data %s brings older files up to date)", err, c.Data)
	}
	return explainEngine(c, err)
}

// explainEngine says what to do about an engine that cannot be used.
func explainEngine(c *config, err error) error {
	switch {
	case errors.Is(err, embedded.ErrDurability):
		return fmt.Errorf("%s: set Redis up for it (appendonly yes, appendfsync always; dibs doctor tells more), or ask for less with --durability: %w",
			enginePlace(c.Engine), err)
	case errors.Is(err, redisengine.ErrForeign):
		return fmt.Errorf("%s holds the campaigns of another ledger than %s: correct --engine or --ledger, or name another database of this Redis, such as redis://HOST:6379/1",
			enginePlace(c.Engine), sqlledger.Place(c.ledger()))
	}
	if advice := redisAdvice(err); advice != "" {
		return fmt.Errorf("%s: %s: %w", enginePlace(c.Engine), advice, err)
	}
	return fmt.Errorf("opening %s: %w", c.store(), err)
}

// redisAdvice says what to do about a Redis that does not let dibs in; empty
// for other errors, and where the error itself says it.
func redisAdvice(err error) string {
	text := err.Error()
	switch has := func(part string) bool { return strings.Contains(text, part) }; {
	case !has("redisengine: connecting"):
		return ""
	case has("WRONGPASS"), has("NOAUTH"), has("AUTH "):
		return "Redis does not let dibs in: correct user and password of --engine"
	case has("cluster support disabled"):
		return "it is one server and no cluster: leave one address in --engine"
	case has("unknown command") && has("SENTINEL"):
		return "it is no sentinel: leave master_set out of --engine, or name the sentinels (port 26379 as a rule)"
	}
	return "nothing answers there as Redis does: start it, or correct host, port and TLS (redis:// or rediss://) of --engine"
}

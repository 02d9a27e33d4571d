package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// AnsweredError is an error that Redis itself answered.
type AnsweredError struct{ Message string }

// Error is what Redis said.
func (e *AnsweredError) Error() string { return "redis: " + e.Message }

// refused begins the errors with which Redis refuses a script before its first
// write. All else may have come after one.
var refused = []string{
	"NOSCRIPT", "LOADING", "OOM", "READONLY", "MISCONF", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "MOVED", "ASK",
	"NOREPLICAS", "NOAUTH", "NOPERM", "WRONGTYPE",
}

// ChangedNothing reports whether an error says for sure that Redis has changed
// nothing.
func ChangedNothing(err error) bool {
	var answered *AnsweredError
	if errors.As(err, &answered) {
		for _, code := range refused {
			if strings.HasPrefix(answered.Message, code) {
				return true
			}
		}
		return false
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// passing begins the refusals of a server that will soon do better: it loads
// its files or runs a script, or the shard is on its way to another server.
var passing = []string{"LOADING", "BUSY", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "MOVED", "ASK"}

// WillPass reports whether an error says that Redis has changed nothing, and
// that it is worth asking again a little later.
func WillPass(err error) bool {
	var answered *AnsweredError
	return errors.As(err, &answered) &&
		slices.ContainsFunc(passing, func(code string) bool { return strings.HasPrefix(answered.Message, code+" ") })
}

// errNoMaster says that no server was found that decides.
var errNoMaster = errors.New("redisengine: no master is known")

// CannotReach reports whether an error says that no Redis has answered, or only one that
// is about to do better, such as one that reads its files. Any other error is that of a
// Redis, or of something else, that answers what no waiting changes: it does not let
// dibs in, or is not what the address says.
func CannotReach(err error) bool {
	var answered *AnsweredError
	var plain *rueidis.RedisError
	if errors.As(err, &plain) {
		err = &AnsweredError{Message: plain.Error()}
	}
	if errors.As(err, &answered) {
		return WillPass(err)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		// TLS tells with other words that the two do not fit.
		return op.Op == "dial" || op.Op == "read" || op.Op == "write"
	}
	for _, gone := range []error{io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, rueidis.ErrClosing, rueidis.ErrNoSlot, errNoMaster} {
		if errors.Is(err, gone) {
			return true
		}
	}
	// The driver has no name for it: the server is a replica, until the next master is chosen.
	return strings.Contains(err.Error(), "the redis role is not master")
}

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
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	return Says(err, refused...)
}

// Says reports whether Redis has answered with an error that begins in one of these ways.
func Says(err error, begins ...string) bool {
	answered, ok := errors.AsType[*AnsweredError](err)
	return ok && slices.ContainsFunc(begins, func(code string) bool { return strings.HasPrefix(answered.Message, code) })
}

// passing begins the refusals of a server that will soon do better: it loads
// its files or runs a script, or the shard is on its way to another server.
var passing = []string{"LOADING ", "BUSY ", "READONLY ", "MASTERDOWN ", "TRYAGAIN ", "CLUSTERDOWN ", "MOVED ", "ASK "}

// WillPass reports whether an error says that Redis has changed nothing, and
// that it is worth asking again a little later.
func WillPass(err error) bool { return Says(err, passing...) }

// errNoMaster says that no server was found that decides.
var errNoMaster = errors.New("redisengine: no master is known")

// CannotReach reports whether an error says that no Redis has answered, or only one that
// is about to do better, such as one that reads its files. Any other error is that of a
// Redis, or of something else, that answers what no waiting changes: it does not let
// dibs in, or is not what the address says.
func CannotReach(err error) bool {
	if plain, ok := errors.AsType[*rueidis.RedisError](err); ok {
		err = &AnsweredError{Message: plain.Error()}
	}
	if _, answered := errors.AsType[*AnsweredError](err); answered {
		return WillPass(err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		// TLS tells with other words that the two do not fit.
		return op.Op == "dial" || op.Op == "read" || op.Op == "write"
	}
	gone := []error{io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, rueidis.ErrClosing, rueidis.ErrNoSlot, errNoMaster}
	// The driver has no name for it: the server is a replica, until the next master is chosen.
	return slices.ContainsFunc(gone, func(is error) bool { return errors.Is(err, is) }) ||
		strings.Contains(err.Error(), "the redis role is not master")
}

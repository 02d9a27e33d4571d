package conn

import (
	"errors"
	"net"
	"slices"
	"strings"
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

package dibs

import "time"

// Guard bounds the claims that the engine decides at a time. It is asked by all
// claims at once, after the gates and before the engine: what it takes is of the
// claim path.
type Guard interface {
	// Enter takes a place for a claim; false means that there is none, and that
	// the claim is to be refused. mark is for Leave.
	Enter() (mark int64, ok bool)
	// Leave gives the place back once the claim is answered.
	Leave(mark int64)
}

// The answers of a claim for which the guard has no place, without a key and with
// one.
var shedPlain, shedKeyed = shed(false), shed(true)

func shed(keyed bool) *Error {
	return &Error{
		Reason: Overloaded, Effect: unlookedEffect(keyed), RetryAfter: time.Second,
		Detail: Text{"more people claim than can be answered in time", "当前领取人数过多，请稍后重试"},
	}
}

// Shed is the error of a claim that is refused because too many are under way.
// It can be told before anything else is known of the claim than whether it has
// a key. With one it may be the repeat of a claim that was granted, which nobody
// has looked up: its effect is unknown then.
func Shed(keyed bool) *Error {
	if keyed {
		return shedKeyed
	}
	return shedPlain
}

// OverloadView is how much a node has to do, and whether that is too much.
type OverloadView struct {
	// Overloaded says that the node should get no more for a while, and Why.
	Overloaded bool   `json:"overloaded"`
	Why        string `json:"why,omitempty"`
	// MemoryFull says that memory is among the reasons.
	MemoryFull bool `json:"-"`
	// InFlight claims are with the engine now; Limit is how many may be.
	InFlight int64 `json:"in_flight"`
	Limit    int64 `json:"limit"`
	// ShedPerSecond is how many claims were refused for that lately.
	ShedPerSecond int64 `json:"shed_per_second"`
	// LatencyMS is how long claims that wait for the engine take, TargetMS how long
	// they may.
	LatencyMS int64 `json:"latency_ms"`
	TargetMS  int64 `json:"target_ms"`
	// MemoryBytes is what the process has of the system, MemoryLimitBytes what it
	// may have; 0 when there is no limit.
	MemoryBytes      int64 `json:"memory_bytes"`
	MemoryLimitBytes int64 `json:"memory_limit_bytes,omitempty"`
}

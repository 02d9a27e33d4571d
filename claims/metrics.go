package claims

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/histogram"
)

// counts is what Claims counts and times since it was made. All of it is atomic.
type counts struct {
	granted, replayed atomic.Int64
	// gateTimes are what stands before the engine. engineTimes are from there to an
	// answer that lasts, of grants, since most refusals are made from memory.
	// ledgerTimes are what grants wait for at the level ledgered, all of them.
	gateTimes, engineTimes, ledgerTimes *histogram.Histogram
}

// sampleOf is of how many claims one is timed: two looks at the clock would be
// a good part of what a refusal costs.
const sampleOf = 64

// sampled picks one of sampleOf by the random source of each thread, so that
// claims write nothing that others read.
func sampled() bool { return rand.Uint64()%sampleOf == 0 }

// ClaimMetrics is a snapshot of the claims of a node since it started.
type ClaimMetrics struct {
	// Granted counts claims granted by this node, repeats not counted, Replayed the
	// repeats.
	Granted, Replayed int64
	// Gates, Engine and Ledger are how long claims spent there, in nanoseconds, of
	// those that are timed.
	Gates, Engine, Ledger dibs.Tally
}

// Metrics returns a snapshot.
func (s *Claims) Metrics() ClaimMetrics {
	return ClaimMetrics{
		Granted: s.granted.Load(), Replayed: s.replayed.Load(),
		Gates: s.gateTimes.Tally(), Engine: s.engineTimes.Tally(), Ledger: s.ledgerTimes.Tally(),
	}
}

// CountGranted counts a claim that was granted outside of Claim: a regular order.
func (s *Claims) CountGranted() { s.granted.Add(1) }

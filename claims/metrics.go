package claims

import (
	"github.com/dibs-dev/dibs"
)

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

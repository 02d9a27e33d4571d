package orders

import (
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// maxMoves is the most groups in one transaction.
	maxMoves = 256
)

const (
	// sweepMost is the most claims that expire in one transaction.
	sweepMost = 2000
	// sweepRest is the pause after a sweep that failed.
	sweepRest = time.Second
)

// LateKey is the key under which a payment takes stock again for a claim that
// was released, as the engine has it. No user's key has a space in it.
func LateKey(claimID string) uint64 { return dibs.KeyHash("late payment of " + claimID) }

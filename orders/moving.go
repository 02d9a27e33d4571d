package orders

import (
	"time"
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

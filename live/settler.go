package live

import (
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs/internal/histogram"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Settler moves journal entries into the ledger, in batches of all shards that this
// node settles. alone is held while a batch is settled, or a shard loaded on an
// engine inside of the process, and guards turn. So one batch is under way at
// a time on a node; among nodes the ledger's compare-and-set decides.
type Settler struct {
	shared
	loader     *Loader
	quarantine *Quarantine
	batch      int
	every      time.Duration

	settleKick chan struct{}
	// outboxKick has the outbox sent: what was settled has written commands.
	outboxKick chan struct{}
	alone      wait.Lock
	turn       int // how often shards took turns; guarded by alone

	// trouble is what settling fails with.
	trouble *trouble.Log

	settled          atomic.Int64
	settleBatchCount atomic.Int64
	settleErrors     atomic.Int64
	settleNanos      atomic.Int64
	// settleSizes are the entries of each transaction, settleTimes what it took.
	settleSizes, settleTimes *histogram.Histogram
}

package histogram

import (
	"sync/atomic"

	"github.com/dibs-dev/dibs"
)

// EngineCounts count what an engine does; use NewEngineCounts. They take no lock.
type EngineCounts struct {
	Batches, Queued, Durable *Histogram
	Lost                     atomic.Int64
}

// NewEngineCounts returns counts of nothing.
func NewEngineCounts() *EngineCounts {
	return &EngineCounts{Batches: NewSizeHistogram(), Queued: NewTimeHistogram(), Durable: NewTimeHistogram()}
}

// Stats returns what was counted so far.
func (w *EngineCounts) Stats() dibs.EngineStats {
	return dibs.EngineStats{Batches: w.Batches.Tally(), Queued: w.Queued.Tally(), Durable: w.Durable.Tally(), Lost: w.Lost.Load()}
}

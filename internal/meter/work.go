package meter

import (
	"sync/atomic"

	"github.com/dibs-dev/dibs"
)

// WorkCounts count an engine's work; use NewWorkCounts. They take no lock.
type WorkCounts struct {
	Batches, Queued, Durable *Histogram
	Lost                     atomic.Int64
}

// NewWorkCounts returns counts of nothing.
func NewWorkCounts() *WorkCounts {
	return &WorkCounts{Batches: NewSizeHistogram(), Queued: NewTimeHistogram(), Durable: NewTimeHistogram()}
}

// Work returns what was counted so far.
func (w *WorkCounts) Work() dibs.EngineWork {
	return dibs.EngineWork{Batches: w.Batches.Tally(), Queued: w.Queued.Tally(), Durable: w.Durable.Tally(), Lost: w.Lost.Load()}
}

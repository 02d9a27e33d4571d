package dibs

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// EngineWork is what an engine has done in this process since it was opened.
// Times are nanoseconds.
type EngineWork struct {
	// Batches are the claims that were decided together, or whose decisions became
	// durable together.
	Batches Tally
	// Queued is how long the oldest claim of each batch waited for it, and Durable
	// how long the batch took from there to an answer that lasts.
	Queued, Durable Tally
	// Lost counts batches of which nobody knew at once what became of them: an
	// answer was lost, or a commit failed.
	Lost int64
}

// Worker is an Engine that counts its work.
type Worker interface {
	// Work returns what was counted so far. It asks nobody.
	Work() EngineWork
}

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
func (w *WorkCounts) Work() EngineWork {
	return EngineWork{Batches: w.Batches.Tally(), Queued: w.Queued.Tally(), Durable: w.Durable.Tally(), Lost: w.Lost.Load()}
}

// sampleOf is of how many claims one is timed: two looks at the clock would be
// a good part of what a refusal costs.
const sampleOf = 64

// sampled picks one of sampleOf, by what each thread has of chance, so that
// claims write nothing that others read.
func sampled() bool { return rand.Uint64()%sampleOf == 0 }

// stages are how long claims spend where, of those that are timed.
type stages struct {
	// gates is what stands before the engine; engine is from there to an answer that
	// lasts, of grants, since most refusals are made from memory; ledger is what
	// grants wait for at the level ledgered, all of them.
	gates, engine, ledger *Histogram
}

func newStages() stages {
	return stages{gates: NewTimeHistogram(), engine: NewTimeHistogram(), ledger: NewTimeHistogram()}
}

// decide asks the engine, and times some of the grants.
func (s *Service) decide(ctx context.Context, req EngineClaim) (Decision, error) {
	if !sampled() {
		return s.engine.Claim(ctx, req)
	}
	began := time.Now()
	d, err := s.engine.Claim(ctx, req)
	if err == nil && d.Outcome == Granted {
		s.stages.engine.Since(began)
	}
	return d, err
}

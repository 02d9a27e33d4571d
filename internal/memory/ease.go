package memory

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// eased is how much the heap may grow, in percent of what lives in it, before
	// garbage is collected, and usual what Go does by itself.
	eased, usual = 400, 100
	// spare is how much garbage may lie about for that, in bytes, and spareParts how
	// many times as much memory there has to be.
	spare, spareParts = 256 << 20, 8
)

// Ease has the garbage collector run less often while little lives in the heap,
// until ctx ends. The live heap of a node is small, and each claim leaves a few
// hundred bytes behind: by Go's own measure a rush has the collector look through
// the stacks of all waiting callers many times a second. At most a quarter of a
// gigabyte, or an eighth of the process's bound when that is less, is spent on it.
// Where GOGC is set, nothing is done.
func Ease(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	ease(ctx, Limit())
}

func ease(ctx context.Context, bound int64) {
	collected := make(chan struct{}, 1)
	afterEach(ctx, collected)
	for last := 0; ; {
		if percent := percentFor(living(), bound); percent != last {
			debug.SetGCPercent(percent)
			last = percent
		}
		select {
		case <-ctx.Done():
			debug.SetGCPercent(usual)
			return
		case <-collected:
		}
	}
}

// afterEach tells of each collection that has ended, until ctx ends: what lives may
// have grown by as much as was allowed, and by as many times that in the next one.
func afterEach(ctx context.Context, collected chan<- struct{}) {
	var again func(*[64]byte)
	again = func(unused *[64]byte) {
		select {
		case collected <- struct{}{}:
		default:
		}
		if ctx.Err() == nil {
			runtime.SetFinalizer(unused, again)
		}
	}
	runtime.SetFinalizer(new([64]byte), again)
}

// percentFor is by how many percent a heap may grow in which so many bytes live, of
// a process that may take bound bytes, 0 for no bound.
func percentFor(living, bound int64) int {
	most := int64(spare)
	if bound > 0 {
		most = min(most, bound/spareParts)
	}
	return int(min(max(most*100/max(living, 1), usual), eased))
}

// living is how many bytes were in use when garbage was collected last.
func living() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(min(sample[0].Value.Uint64(), math.MaxInt64/100))
}

// Package histogram counts what an engine or a service does: values in buckets, without a
// lock.
package histogram

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// Histogram counts values in buckets. Observe takes no lock and allocates
// nothing. Use NewHistogram; all methods are safe for concurrent use.
type Histogram struct {
	bounds []int64
	counts []atomic.Int64
	sum    atomic.Int64
}

// NewHistogram returns a histogram whose buckets hold what is up to each of the
// bounds, which rise; one more holds what is above the last.
func NewHistogram(bounds ...int64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
}

// NewTimeHistogram returns a histogram of nanoseconds, from what memory answers
// to what a stuck database does.
func NewTimeHistogram() *Histogram { return NewHistogram(timeBounds...) }

// NewSizeHistogram returns a histogram of how many were dealt with together.
func NewSizeHistogram() *Histogram { return NewHistogram(sizeBounds...) }

func bounds(unit time.Duration, of ...int64) []int64 {
	for i := range of {
		of[i] *= int64(unit)
	}
	return of
}

// Observe counts a value.
func (h *Histogram) Observe(v int64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i].Add(1)
	h.sum.Add(v)
}

// Since counts the nanoseconds since a time.
func (h *Histogram) Since(t time.Time) { h.Observe(int64(time.Since(t))) }

// Tally returns what was counted. While others count, it may have one's value
// without its sum.
func (h *Histogram) Tally() dibs.Tally {
	t := dibs.Tally{Bounds: h.bounds, Counts: make([]int64, len(h.counts)), Sum: h.sum.Load()}
	for i := range h.counts {
		t.Counts[i] = h.counts[i].Load()
	}
	return t
}

var (
	timeBounds = bounds(time.Microsecond, 10, 25, 50, 100, 250, 500, 1e3, 2_500, 5e3, 1e4, 25e3, 5e4, 1e5, 25e4, 5e5, 1e6, 2_500_000, 5e6, 1e7)
	sizeBounds = []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 1 << 12, 1 << 14, 1 << 16}
)

package plan

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// record counts what happens in a run, in equal parts of time.
type record struct {
	width float64
	// asked, given and refused are requests by part: sent, answered with a grant,
	// and answered with a refusal. waits is the sum of the longest waits.
	asked, given, refused []float64
	longest               []float64
	// backlog is the most grants that waited for the ledger in a part.
	backlog []float64

	all, grants *hdrhistogram.Histogram
	// waiting is how many grants wait now, most how many ever did; lag is how long
	// a grant waited at most, and lastGrant, lastAnswer and lastSettled are times.
	waiting, most, lag                 float64
	lastGrant, lastAnswer, lastSettled float64

	node, engine, ledger *usage
}

// The range of waits in microseconds, and their precision in figures.
const (
	leastWait = 1
	mostWait  = int64(24 * 3600 * 1e6)
	precision = 3
)

// parts is into about how many parts the time of the arrivals is divided.
const parts = 60

// leastWidth is the shortest part in seconds.
const leastWidth = 0.005

func newRecord(q *Question) *record {
	width := max(niceStep(q.Over.Seconds()/parts), leastWidth)
	used := func() *usage { return &usage{width: width} }
	return &record{
		width: width, all: hdrhistogram.New(leastWait, mostWait, precision), grants: hdrhistogram.New(leastWait, mostWait, precision),
		node: used(), engine: used(), ledger: used(),
	}
}

// niceStep is the next of 1, 2 and 5 times a power of ten.
func niceStep(v float64) float64 {
	if v <= 0 {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// in returns the place of a time in a series, which grows as far as it must.
func (r *record) in(series *[]float64, t float64) *float64 {
	i := int(t / r.width)
	for len(*series) <= i {
		*series = append(*series, 0)
	}
	return &(*series)[i]
}

func (r *record) offered(t, n float64) { *r.in(&r.asked, t) += n }

// answer counts the answers of a parcel.
func (r *record) answer(t float64, p *parcel) {
	wait := t - p.born
	us := min(max(int64(wait*1e6), leastWait), mostWait)
	// A value within the range of the histogram is always recorded.
	_ = r.all.RecordValues(us, int64(math.Round(p.requests)))
	if p.granted > 0 {
		_ = r.grants.RecordValues(us, int64(math.Ceil(p.granted)))
		r.lastGrant = max(r.lastGrant, t)
	}
	*r.in(&r.given, t) += p.granted
	*r.in(&r.refused, t) += p.refused
	longest := r.in(&r.longest, t)
	*longest = max(*longest, wait)
	r.lastAnswer = max(r.lastAnswer, t)
}

func (r *record) written(t, grants float64) {
	r.waiting += grants
	r.most = max(r.most, r.waiting)
	at := r.in(&r.backlog, t)
	*at = max(*at, r.waiting)
}

func (r *record) settled(t, since, grants float64) {
	at := r.in(&r.backlog, t)
	*at = max(*at, r.waiting)
	r.waiting -= grants
	r.lag, r.lastSettled = max(r.lag, t-since), max(r.lastSettled, t)
}

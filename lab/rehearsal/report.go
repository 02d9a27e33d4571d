package rehearsal

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/dibs-dev/dibs/api"
)

// Report is what a rehearsal found.
type Report struct {
	// OK is set when every promise was judged and held.
	OK bool `json:"ok"`
	// Interrupted says that the load was stopped before its end; Why says by what.
	Interrupted bool   `json:"interrupted"`
	Why         string `json:"why,omitempty"`

	Scenario Scenario `json:"scenario"`
	// Seed makes the same order of presses again. Run is part of the names of
	// this rehearsal's users, keys and campaign.
	Seed       uint64 `json:"seed"`
	Run        string `json:"run"`
	Server     string `json:"server"`
	CampaignID string `json:"campaign_id"`

	Users       int `json:"users"`
	Requests    int `json:"requests"`
	Concurrency int `json:"concurrency"`
	// Connections is on how many TCP connections the requests went.
	Connections int `json:"connections"`
	// Through is how the requests went: http or ws.
	Through Through `json:"through"`
	// Rate is the intended arrivals per second; 0 means all at once.
	Rate     float64 `json:"rate"`
	Stock    int64   `json:"stock"`
	Limit    int64   `json:"limit_per_user"`
	Quantity int64   `json:"quantity"`

	// LoadMS is how long the load took.
	LoadMS float64 `json:"load_ms"`
	// PerSecond is answers per second of the load.
	PerSecond float64   `json:"per_second"`
	Outcomes  []Outcome `json:"outcomes"`
	Latencies []Latency `json:"latencies"`
	Transport Transport `json:"transport"`
	// Notes are what the reader should know besides.
	Notes    []string      `json:"notes"`
	Promises []Verdict     `json:"promises"`
	Stats    api.StatsView `json:"stats"`
}

// Outcome is how many presses had one outcome.
type Outcome struct {
	Outcome string `json:"outcome"`
	Count   int64  `json:"count"`
	// Share is of all presses that were sent, from 0 to 1.
	Share     float64 `json:"share"`
	PerSecond float64 `json:"per_second"`
}

// Latency is the distribution of one kind of answer, in milliseconds from the
// moment at which the presses were meant to happen.
type Latency struct {
	Of    string  `json:"of"`
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p99_9_ms"`
	Max   float64 `json:"max_ms"`
}

// Transport counts attempts whose effect stayed unknown: broken connections,
// answers that did not come in time, and answers that say so.
type Transport struct {
	Lost int64 `json:"lost"`
	// Resolved are the presses that were answered when sent again with the same
	// key; Unresolved are those that never were.
	Resolved   int64  `json:"resolved"`
	Unresolved int64  `json:"unresolved"`
	Example    string `json:"example,omitempty"`
}

// In returns the report with the details of its promises in one language, Chinese when
// zh is set, else English.
func (r *Report) In(zh bool) *Report {
	said := *r
	if zh {
		said.Promises = slices.Clone(r.Promises)
		for i := range said.Promises {
			v := &said.Promises[i]
			v.Detail = cmp.Or(v.DetailZH, v.Detail)
		}
	}
	return &said
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// fill adds what the tally counted in a load that took so long.
func (r *Report) fill(t *tally, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	total := int64(0)
	for _, n := range t.outcomes {
		total += n
	}
	seconds := max(took.Seconds(), 1e-9)
	r.LoadMS, r.PerSecond = seconds*1000, float64(total)/seconds
	r.Outcomes = []Outcome{}
	for _, name := range slices.Sorted(maps.Keys(t.outcomes)) {
		n := t.outcomes[name]
		r.Outcomes = append(r.Outcomes, Outcome{name, n, float64(n) / float64(total), float64(n) / seconds})
	}
	slices.SortStableFunc(r.Outcomes, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(rank(a.Outcome), rank(b.Outcome)), cmp.Compare(b.Count, a.Count))
	})
	r.Latencies = t.latencies()
	r.Transport = Transport{Lost: t.lost.Load(), Resolved: t.saved.Load()}
	for _, f := range t.fates {
		if f == unanswered {
			r.Transport.Unresolved++
		}
	}
	if t.lastError != nil {
		r.Transport.Example = t.lastError.Error()
	}
}

// rank puts the yeses first.
func rank(outcome string) int {
	switch outcome {
	case granted:
		return 0
	case repeated:
		return 1
	}
	return 2
}

// latencies are the distributions: of the yeses, of the refusals, and of all,
// those that failed or got no answer included, so that no slow one is left out.
func (t *tally) latencies() []Latency {
	refusals := hdrhistogram.Import(t.latency[no].Export())
	refusals.Merge(t.latency[putOff])
	failed := hdrhistogram.Import(t.latency[unexplained].Export())
	failed.Merge(t.latency[unanswered])
	all := hdrhistogram.Import(t.latency[yes].Export())
	all.Merge(refusals)
	all.Merge(failed)
	list := []Latency{}
	for _, row := range []struct {
		of string
		h  *hdrhistogram.Histogram
	}{{"granted", t.latency[yes]}, {"refused", refusals}, {"failed", failed}, {"all", all}} {
		if row.h.TotalCount() == 0 {
			continue
		}
		at := func(percentile float64) float64 { return float64(row.h.ValueAtQuantile(percentile)) / 1000 }
		list = append(list, Latency{
			Of: row.of, Count: row.h.TotalCount(),
			P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(row.h.Max()) / 1000,
		})
	}
	return list
}

// conclude judges the promises and sums them up.
func (r *Report) conclude(e *evidence) {
	r.Promises = e.verdicts()
	r.Stats = e.after
	r.OK = !r.Interrupted
	for _, v := range r.Promises {
		r.OK = r.OK && v.Judgement == Held
	}
}

package plan

import (
	"context"
	"encoding/json"
	"io"
	"math"
)

// Answer is what a rush needs, and how it will go.
type Answer struct {
	// Question is the question with its defaults, and with the numbers of nodes and
	// shards that were found.
	Question Question `json:"question"`
	// Keeps is set when the deployment keeps the target. Otherwise the answer is
	// about the largest one that was tried, and Breaks says what is in the way.
	Keeps bool `json:"keeps_target"`
	// Source, Machine and MeasuredAt are the calibration's.
	Source     string `json:"calibration"`
	Machine    string `json:"machine"`
	MeasuredAt string `json:"measured_at"`

	Requests float64 `json:"requests"`
	// Granted and Refused count answers. PerSecond is answers a second from the
	// first arrival to the last answer, Peak the most arrivals in a second.
	Granted   float64 `json:"granted"`
	Refused   float64 `json:"refused"`
	PerSecond float64 `json:"per_second"`
	Peak      float64 `json:"peak_per_second"`
	// SoldOut is when the last unit was granted, and Took when the last answer was
	// given, in seconds from the first arrival. SoldOut is nil when units are left.
	SoldOut *float64 `json:"sold_out_s"`
	Took    float64  `json:"took_s"`
	// SettledAt is when the ledger had every grant.
	SettledAt float64 `json:"settled_s"`
	// All and Grants are the waits of all answers and of those with a grant.
	All    Waits `json:"waits"`
	Grants Waits `json:"waits_of_grants"`

	// NodeUS is the processor time of the nodes for each request, settling included,
	// and of the clients where they are on the node.
	NodeUS float64 `json:"node_us_per_request"`

	Lag    Lag   `json:"lag"`
	Memory Room  `json:"memory"`
	Links  Links `json:"links"`
	Limit  Limit `json:"limit"`
	// Parts are nodes, engine and ledger.
	Parts []Part `json:"parts"`
	// ParcelRequests is how many requests were simulated together.
	ParcelRequests float64  `json:"parcel_requests"`
	Notes          []string `json:"notes"`

	Series Series `json:"series"`
}

// Waits are percentiles in milliseconds.
type Waits struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// Lag says how far the ledger falls behind.
type Lag struct {
	// Most is the most grants that wait for the ledger, and Worst how long one of
	// them waits, in seconds. Zero is when none waits any more, in seconds after
	// the last grant was answered.
	Most  float64 `json:"most_grants"`
	Worst float64 `json:"worst_s"`
	Zero  float64 `json:"zero_after_s"`
}

// Room is memory, and disk, in bytes.
type Room struct {
	// Node is what each node needs for connections, and the engine in it; beside
	// that a node has some 100 MiB of its own.
	Node float64 `json:"node"`
	// Redis is what each shard needs; 0 without Redis.
	Redis float64 `json:"redis"`
	// Ledger is what the grants take on the disk of the ledger.
	Ledger float64 `json:"ledger_disk"`
}

// Links are connections and bytes a second at the peak.
type Links struct {
	// Users is connections for each node, when each user keeps one open.
	Users float64 `json:"user_connections"`
	// Redis and Ledger are connections for each node, at most.
	Redis  int `json:"redis_connections"`
	Ledger int `json:"ledger_connections"`
	// In and Out are bytes a second of each node, to and from users.
	In  float64 `json:"in"`
	Out float64 `json:"out"`
}

// Part is a resource.
type Part struct {
	Name string `json:"name"`
	// Busy is the busy share while requests were answered, from 0 to 1, Busiest the
	// largest share of any moment, and AtLimit is Busy at the crowd that the deployment
	// does not take any more; 0 when no such crowd was found.
	Busy    float64 `json:"busy"`
	Busiest float64 `json:"busiest"`
	AtLimit float64 `json:"busy_at_limit"`
	What    string  `json:"what"`
}

// Limit is what the deployment takes. It was found by simulating larger crowds, or
// smaller ones when the crowd of the question is too large, with a stock in
// proportion.
type Limit struct {
	// Requests is the most requests a second at the peak of the arrivals, or at once,
	// at which the target is kept. Times is how many times the crowd of the question
	// that is.
	Requests float64 `json:"requests"`
	Times    float64 `json:"times"`
	// First names the part that users wait for longest beyond; empty when no limit was found up
	// to MostTimes.
	First string `json:"breaks_first,omitempty"`
}

// MostTimes is how many times the crowd of a question is looked at for the limit.
const MostTimes = 64

// Series are the rush over time, in parts of Width seconds.
type Series struct {
	Width   float64   `json:"width_s"`
	Asked   []float64 `json:"asked_per_second"`
	Granted []float64 `json:"granted_per_second"`
	Refused []float64 `json:"refused_per_second"`
	Longest []float64 `json:"longest_wait_ms"`
	Backlog []float64 `json:"backlog"`
	Node    []float64 `json:"node_busy"`
	Engine  []float64 `json:"engine_busy"`
	Ledger  []float64 `json:"ledger_busy"`
}

// JSON writes the answer as JSON.
func (a *Answer) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(a)
}

// Ask answers a question. It returns a *dibs.Error that lists the faults of the
// question, ErrCalibration when the calibration lacks what the question needs, and
// the error of ctx.
func Ask(ctx context.Context, cal *Calibration, q Question) (*Answer, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	s := &search{ctx: ctx, cal: cal, q: q.WithDefaults()}
	r, keeps, err := s.find()
	if err != nil {
		return nil, err
	}
	a := r.answer(keeps)
	beyond, err := s.limit(a)
	if err != nil {
		return nil, err
	}
	a.beyond(beyond)
	return a, nil
}

// answer reads the answer from a run that is over.
func (r *run) answer(keeps bool) *Answer {
	rec := r.record
	a := &Answer{
		Question: r.q, Keeps: keeps, Source: r.cal.Source, Machine: r.cal.Machine, MeasuredAt: r.cal.MeasuredAt.UTC().Format("2006-01-02 15:04"),
		Requests: r.q.requests(), Took: rec.lastAnswer, SettledAt: rec.lastSettled, Peak: r.peak(), ParcelRequests: r.crowd.each,
		All: waitsOf(rec.all), Grants: waitsOf(rec.grants), Notes: []string{},
		Lag: Lag{Most: rec.most, Worst: rec.lag, Zero: max(0, rec.lastSettled-rec.lastGrant)},
	}
	for i := range max(len(rec.given), len(rec.refused)) {
		a.Granted += at(rec.given, i)
		a.Refused += at(rec.refused, i)
	}
	a.NodeUS = rec.node.between(0, math.Inf(1)) * r.q.Cores / a.Requests / micro
	a.PerSecond = a.Requests / max(a.Took, leastWidth)
	if r.stock.soldOut >= 0 {
		a.SoldOut = &r.stock.soldOut
	}
	a.Memory, a.Links = r.memory(), r.links(a)
	a.Parts = r.parts()
	a.Series = r.series()
	return a
}

// beyond fills in what a run with a larger crowd showed, nil when there is none, and
// the notes.
func (a *Answer) beyond(r *run) {
	if r != nil {
		for i, p := range r.parts() {
			a.Parts[i].AtLimit = p.Busy
		}
		a.Limit.First = r.slowest()
	}
	a.note()
}

func waitsOf(h interface {
	ValueAtQuantile(q float64) int64
	Max() int64
}) Waits {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Waits{P50: ms(h.ValueAtQuantile(50)), P99: ms(h.ValueAtQuantile(99)), Max: ms(h.Max())}
}

func at(series []float64, i int) float64 {
	if i < len(series) {
		return series[i]
	}
	return 0
}

// peak is the most arrivals in a second. Users that come at once come in one moment:
// then it is all of them.
func (r *run) peak() float64 {
	window := max(1, int(math.Round(1/r.record.width)))
	most, sum := 0.0, 0.0
	for i := range r.record.asked {
		sum += r.record.asked[i]
		if i >= window {
			sum -= r.record.asked[i-window]
		}
		most = max(most, sum)
	}
	if over := r.q.Over.Seconds(); over > 0 && over < 1 {
		return most / over
	}
	// The parts of a long rush are longer than a second.
	return most / max(1, float64(window)*r.record.width)
}

// memory is what the deployment keeps when the rush is over.
func (r *run) memory() Room {
	grants := float64(r.q.Stock) - r.stock.total()
	kept := grants * (r.cal.Sizes.Held[r.q.Engine] + r.cal.Sizes.Journal[r.q.Engine])
	m := Room{Ledger: grants * r.cal.Sizes.Row, Node: float64(r.q.Users) / float64(r.q.Nodes) * r.cal.Sizes.Connection}
	if r.q.Engine == Memory {
		// The journal of the memory engine is on the disk.
		m.Node += grants * r.cal.Sizes.Held[Memory]
		return m
	}
	m.Redis = kept / float64(r.q.Shards)
	return m
}

// The connections that a node opens at most: the pools of sqlledger, and for each shard's
// server those of redisengine.
const (
	ledgerPool  = 9
	redisOpened = 4
)

func (r *run) links(a *Answer) Links {
	nodes := float64(r.q.Nodes)
	l := Links{Users: float64(r.q.Users) / nodes, In: a.Peak / nodes * r.cal.Sizes.Request, Out: a.Peak / nodes * r.cal.Sizes.Answer}
	if r.q.Engine == Redis {
		l.Redis = redisOpened * r.q.Shards
	}
	if r.q.Ledger != SQLite {
		l.Ledger = ledgerPool
	}
	return l
}

func (r *run) series() Series {
	rec := r.record
	n := max(len(rec.asked), len(rec.given), len(rec.refused), len(rec.backlog))
	s := Series{Width: rec.width}
	for i := range n {
		s.Asked = append(s.Asked, at(rec.asked, i)/rec.width)
		s.Granted = append(s.Granted, at(rec.given, i)/rec.width)
		s.Refused = append(s.Refused, at(rec.refused, i)/rec.width)
		s.Longest = append(s.Longest, at(rec.longest, i)*1000)
		s.Backlog = append(s.Backlog, at(rec.backlog, i))
		s.Node = append(s.Node, rec.node.share(i))
		s.Engine = append(s.Engine, rec.engine.share(i))
		s.Ledger = append(s.Ledger, rec.ledger.share(i))
	}
	return s
}

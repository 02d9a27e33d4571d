// Package livestats measures campaigns while they run: how much was granted and refused each second, and whether engine,
// journal and ledger say the same.
//
// # Basics
//
// Follow tells a campaign's measures, once a second, to any number of followers; all of one campaign share one reading.
// A campaign that is not followed costs nothing.
//
// # Caveats
//
// Grants and sums are those of all nodes at one moment. Refusals and latencies are counted by each node alone and exchanged
// about once a second, so those of other nodes are up to two seconds old. Without a shared store they are this node's.
package livestats

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/live"
)

// Campaigns finds campaigns; *live.Registry does. Now has the latest changes of other nodes, too.
type Campaigns interface {
	Get(ctx context.Context, id string) (*dibs.Campaign, error)
	Now(ctx context.Context, id string) (*dibs.Campaign, error)
}

// Stats tells a campaign's numbers; *node.Service does.
type Stats interface {
	Stats(ctx context.Context, id string) (api.StatsView, error)
}

// Engine is what Meters asks of the engine and its journal.
type Engine interface {
	Stats(ctx context.Context, shard dibs.ShardID) (dibs.ShardStats, error)
	ReadJournal(ctx context.Context, shard dibs.ShardID, after dibs.Cursor, max int) ([]dibs.Entry, error)
}

// Ledger is what Meters asks of the ledger.
type Ledger interface {
	Totals(ctx context.Context, shard dibs.ShardID) (live.ShardTotals, error)
}

// Config configures Meters; all but Every, Store and Logger are required.
type Config struct {
	Campaigns Campaigns
	Stats     Stats
	Engine    Engine
	Ledger    Ledger
	// EngineTimes are how long claims of this node spent in the engine, in nanoseconds.
	EngineTimes func() dibs.Tally
	// Refused are the refusals of this node since it started, by reason.
	Refused func(campaign string) map[string]int64
	// Store is where nodes exchange what each of them counts; nil where there is one node.
	Store Store
	// Logger is for what goes wrong with the exchange; default slog.Default.
	Logger *slog.Logger
	// Every is how often a campaign is measured; default once a second.
	Every time.Duration
}

// Measure is how a campaign stands at a moment.
type Measure struct {
	CampaignID string     `json:"campaign_id"`
	At         time.Time  `json:"at"`
	State      dibs.State `json:"state"`
	// Version is the campaign's: it rises with each change of the definition.
	Version int64         `json:"version"`
	Stats   api.StatsView `json:"stats"`
	// PerSecond are the rates since the measure before.
	PerSecond Rates `json:"per_second"`
	Sums      Sums  `json:"sums"`
	// Latency is how long claims spent in the engine since the measure before: those of
	// all campaigns, since an engine times no campaign alone.
	Latency Latency `json:"latency"`
}

// Rates are changes per second.
type Rates struct {
	Granted float64 `json:"granted"`
	// Refused are by reason.
	Refused map[string]float64 `json:"refused"`
}

// Latency is a distribution in milliseconds; all are 0 when nothing was timed.
type Latency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
}

// Meters measures campaigns. Use New; its methods are safe for concurrent use.
//
// mu guards watched, and is held for no reading. A campaign is in watched while it has
// followers, and one goroutine measures it for all of them. Only under mu a measure is put
// into a follower's channel, which has room for one, so that this never waits.
type Meters struct {
	cfg Config
	// board is nil where there is one node.
	board *board

	mu      sync.Mutex
	watched map[string]*watch
}

// watch is a campaign that is followed. mu of Meters guards it, but for what its own goroutine has.
type watch struct {
	followers map[chan Measure]struct{}
	latest    *Measure
	stop      context.CancelFunc
}

// New returns meters.
func New(cfg Config) *Meters {
	cfg.Every = cmp.Or(cfg.Every, time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	m := &Meters{cfg: cfg, watched: map[string]*watch{}}
	if cfg.Store != nil {
		m.board = newBoard(cfg.Store, m.own)
	}
	return m
}

// own returns this node's counts of a campaign.
func (m *Meters) own(campaign string) counts {
	return counts{Refused: m.cfg.Refused(campaign), Engine: m.cfg.EngineTimes()}
}

// Run exchanges counts with the other nodes until ctx ends. Without it, and without a Store, measures have this node's
// counts alone.
func (m *Meters) Run(ctx context.Context) {
	if m.board != nil {
		m.board.run(ctx, m.cfg.Every, m.cfg.Logger)
	}
}

// Follow calls take with the campaign's measures until ctx ends or take returns an error, which it returns. A follower
// that is slow misses measures. An *Error of NotFound when there is no such campaign.
func (m *Meters) Follow(ctx context.Context, id string, take func(Measure) error) error {
	if _, err := m.cfg.Campaigns.Get(ctx, id); err != nil {
		return err
	}
	ch := m.join(id)
	defer m.leave(id, ch)
	for {
		select {
		case v := <-ch:
			if err := take(v); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// join adds a follower, and begins to measure for the first one.
func (m *Meters) join(id string) chan Measure {
	// There is room for the newest measure; older ones give way to it.
	ch := make(chan Measure, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.watched[id]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &watch{followers: map[chan Measure]struct{}{}, stop: stop}
		m.watched[id] = w
		m.board.watch(id, 1)
		go m.measure(ctx, id, w)
	}
	if w.latest != nil {
		ch <- *w.latest
	}
	w.followers[ch] = struct{}{}
	return ch
}

// leave takes a follower off, and stops measuring after the last one.
func (m *Meters) leave(id string, ch chan Measure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.watched[id]
	delete(w.followers, ch)
	if len(w.followers) == 0 {
		w.stop()
		delete(m.watched, id)
		m.board.watch(id, -1)
	}
}

// measure reads a campaign until nobody follows it.
func (m *Meters) measure(ctx context.Context, id string, w *watch) {
	ticker := time.NewTicker(m.cfg.Every)
	defer ticker.Stop()
	var before *reading
	for {
		if r, err := m.read(ctx, id); err == nil {
			v := r.since(before)
			before = r
			m.tell(w, v)
		}
		// A reading that failed is made up for by the next one: followers see that time stands still.
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// tell gives a measure to all followers.
func (m *Meters) tell(w *watch, v Measure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.latest = &v
	for ch := range w.followers {
		select {
		case <-ch:
		default:
		}
		ch <- v
	}
}

// reading is what was read of a campaign at a moment.
type reading struct {
	measure Measure
	// counts are those of each node, this one's under "".
	counts map[string]counts
	// unequal counts the readings in a row of which journal and engine were not equal.
	unequal int
}

// believed is after how many readings a difference is one: what goes from ledger to engine takes a moment.
const believed = 5

func (m *Meters) read(ctx context.Context, id string) (*reading, error) {
	c, err := m.cfg.Campaigns.Now(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &reading{measure: Measure{CampaignID: c.ID, State: c.State, Version: c.Version}}
	if r.measure.Stats, err = m.cfg.Stats.Stats(ctx, id); err != nil {
		return nil, err
	}
	if r.measure.Sums, err = m.sums(ctx, c); err != nil {
		return nil, err
	}
	r.measure.At = time.Now().UTC().Truncate(time.Millisecond)
	r.measure.Sums.AgeMS = r.measure.Stats.SettleLagMS
	others, known := m.board.of(c.ID)
	if r.counts = others; r.counts == nil {
		r.counts = map[string]counts{}
	}
	if known {
		r.measure.Stats.RefusedCountedBy = api.AllNodes
	}
	r.counts[""] = counts{Refused: r.measure.Stats.Refused, Engine: m.cfg.EngineTimes()}
	r.measure.Stats.Refused = refusedBy(r.counts)
	return r, nil
}

// since returns the measure with the rates since an earlier reading, nil for none.
func (r *reading) since(before *reading) Measure {
	v := r.measure
	v.PerSecond.Refused = map[string]float64{}
	if before == nil {
		return v
	}
	seconds := max(v.At.Sub(before.measure.At).Seconds(), 0.001)
	was := &before.measure.Stats
	// A claim that came back is no grant less: every grant ever made counts.
	ever := func(s *api.StatsView) int64 { return s.Granted + s.Released }
	v.PerSecond.Granted = max(0, float64(ever(&v.Stats)-ever(was))/seconds)
	var times dibs.Tally
	for node, now := range r.counts {
		was, known := before.counts[node]
		// Counts of a node from before it was seen first belong to no second of ours.
		if !known {
			continue
		}
		for reason, n := range now.Refused {
			if n > was.Refused[reason] {
				v.PerSecond.Refused[reason] += float64(n-was.Refused[reason]) / seconds
			}
		}
		times = plus(times, was.Engine, now.Engine)
	}
	v.Latency = distribution(times)
	if agree := v.Sums.Agree; agree != nil && !*agree {
		if r.unequal = before.unequal + 1; r.unequal < believed {
			v.Sums.Agree = nil
		}
	}
	return v
}

// refusedBy adds the refusals of all nodes up.
func refusedBy(nodes map[string]counts) map[string]int64 {
	sum := map[string]int64{}
	for _, c := range nodes {
		for reason, n := range c.Refused {
			sum[reason] += n
		}
	}
	return sum
}

// plus adds what a node observed between two tallies. Nodes of other versions may have other buckets: theirs are left out.
func plus(sum, was, now dibs.Tally) dibs.Tally {
	if sum.Bounds == nil {
		sum = dibs.Tally{Bounds: now.Bounds, Counts: make([]int64, len(now.Counts))}
	}
	if !slices.Equal(sum.Bounds, now.Bounds) || len(sum.Counts) != len(now.Counts) {
		return sum
	}
	for i, n := range now.Counts {
		if i < len(was.Counts) {
			n -= was.Counts[i]
		}
		sum.Counts[i] += max(0, n)
	}
	return sum
}

// distribution is that of a tally.
func distribution(t dibs.Tally) Latency {
	sum := int64(0)
	for _, n := range t.Counts {
		sum += n
	}
	if sum <= 0 {
		return Latency{}
	}
	at := func(share float64) float64 {
		seen, want := int64(0), int64(share*float64(sum)+0.5)
		for i, n := range t.Counts {
			if seen += n; seen >= max(want, 1) {
				return float64(t.Bounds[min(i, len(t.Bounds)-1)]) / 1e6
			}
		}
		return 0
	}
	return Latency{Count: sum, P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}

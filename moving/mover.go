package moving

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

const (
	// balanceEvery is how often the node with the fleet lease compares the shards of its
	// campaigns, by what it has seen of them anyway.
	balanceEvery = 100 * time.Millisecond
	// itemsAtOnce is the most items of one transfer: their values are in its command.
	itemsAtOnce = 2000
	// moveTime bounds the request that begins a transfer.
	moveTime = time.Second
	// arriveTime is how long a transfer is waited for before the recipient may ask
	// for more: the ledger may be slow, or the recipient away.
	arriveTime = 3 * time.Second
	// tookFirst is what a transfer is taken to last before one was seen.
	tookFirst = 300 * time.Millisecond
)

// Config is what a Mover is made of.
type Config struct {
	Live   *live.Node
	Engine dibs.Engine
	Logger *slog.Logger
	Now    func() time.Time
	// Wait is how long a claim waits for units that are left on other shards.
	Wait time.Duration
	// LedgerTimeout is how long Gather waits.
	LedgerTimeout time.Duration
	// Life ends when the node is closed.
	Life context.Context
}

// Mover moves units between the shards of the campaigns that this node holds. All
// methods are safe for concurrent use.
//
// mu guards closed and when goroutines are begun: none is once Loop has ended.
type Mover struct {
	registry *live.Registry
	settler  *live.Settler
	loader   *live.Loader
	poller   *live.Poller
	cfg      Config

	pools sync.Map // *live.Campaign -> *pool
	// begun counts the transfers that this node began, waited the claims that waited.
	begun, waited atomic.Int64

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// New returns a Mover. Nothing moves by itself until Loop runs.
func New(c Config) *Mover {
	return &Mover{
		registry: c.Live.Registry, settler: c.Live.Settler, loader: c.Live.Loader, poller: c.Live.Poller, cfg: c,
	}
}

// Metrics are what a Mover has done since its node started.
type Metrics struct {
	// Transfers is how many were begun here, Waited how many claims waited for units
	// of another shard.
	Transfers, Waited int64
}

// Metrics returns a snapshot.
func (m *Mover) Metrics() Metrics {
	return Metrics{Transfers: m.begun.Load(), Waited: m.waited.Load()}
}

// pool is the stock of one campaign as the Mover knows it.
//
// verdict is read by claims without a lock. looking is held while the shards are
// looked at and transfers are begun, and guards what stands below it. mu guards the
// rest, and is held for no request.
type pool struct {
	l       *live.Campaign
	verdict atomic.Pointer[verdict]

	looking wait.Lock
	paces   []pace
	coming  []coming
	// strange is since when units are on their way that this node has not sent; zero
	// while there are none.
	strange time.Time
	// took is how long transfers last, on the average.
	took time.Duration
	// away is until when each shard is not asked, since it did not answer.
	away []time.Time

	mu sync.Mutex
	// dry are the claims that wait, by shard; waiting is how many they are.
	dry     []dryShard
	waiting int
	// serving is set while a goroutine looks after the claims that wait.
	serving bool
}

// coming is a transfer that was begun here and has not been seen to arrive.
type coming struct {
	tranche
	begun time.Time
	// moved is what the recipient's Moved was when it began.
	moved int64
}

func (m *Mover) pool(l *live.Campaign) *pool {
	if p, ok := m.pools.Load(l); ok {
		return p.(*pool)
	}
	n := len(l.Shards)
	p := &pool{l: l, paces: make([]pace, n), away: make([]time.Time, n), dry: make([]dryShard, n), took: tookFirst, looking: wait.NewLock()}
	first, _ := m.pools.LoadOrStore(l, p)
	return first.(*pool)
}

// Loop moves units ahead of need while this node has the fleet lease, until ctx ends.
func (m *Mover) Loop(ctx context.Context) {
	for wait.Sleep(ctx, balanceEvery) {
		m.balanceAll(ctx)
	}
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.running.Wait()
}

// balanceAll looks at each campaign once, and forgets those that are held no more.
func (m *Mover) balanceAll(ctx context.Context) {
	held := map[*live.Campaign]bool{}
	for _, l := range m.registry.Divided() {
		held[l] = true
		if m.poller.HasFleetLease() && m.sells(l) {
			p := m.pool(l)
			p.looking.Lock()
			m.balance(ctx, p, p.seen(), true)
			p.looking.Unlock()
		}
	}
	for l := range m.pools.Range {
		if !held[l.(*live.Campaign)] {
			m.pools.Delete(l)
		}
	}
}

// sells reports whether claims are granted now, so that units are of use anywhere.
func (m *Mover) sells(l *live.Campaign) bool {
	_, closed := l.Def().Closed(m.cfg.Now())
	return !closed
}

// start runs f in the background; false once the Mover has ended.
func (m *Mover) start(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.cfg.Life.Err() != nil {
		return false
	}
	m.running.Go(f)
	return true
}

// balance begins the transfers that a look at the shards calls for. ahead says that
// shards are filled before they are empty. It is called with looking held.
func (m *Mover) balance(ctx context.Context, p *pool, v view, ahead bool) {
	now := time.Now()
	p.keepPace(&v)
	p.keepComing(&v, now)
	if !ahead && p.othersMove(&v, now) {
		// Another node moves units just now, for claims of the same shard maybe.
		return
	}
	for _, t := range planned(p.levels(&v, ahead)) {
		m.begin(ctx, p, t, &v)
	}
}

// begin begins a transfer. One that the donor refuses is not made: it has sold the
// units meanwhile. It is called with looking held.
func (m *Mover) begin(ctx context.Context, p *pool, t tranche, v *view) {
	if p.l.Def().HasItems() {
		t.units = min(t.units, itemsAtOnce)
	}
	from, to := p.l.Shard(uint8(t.from)), p.l.Shard(uint8(t.to))
	ctx, cancel := context.WithTimeout(ctx, moveTime)
	defer cancel()
	// In another epoch the ledger would not settle it ahead.
	a := dibs.Adjustment{
		Shard: from.ID, Epoch: v.shards[t.from].Head.Epoch, Ref: dibs.Transfer{ID: dibs.NewID("m-"), To: to.ID.Shard}.Leaves(), Delta: -t.units,
	}
	err := m.cfg.Engine.Adjust(ctx, a)
	if unmade(err) {
		return
	}
	if err != nil {
		// It may have left all the same: then the next look finds it on its way.
		m.cfg.Logger.Debug("a transfer may not have begun", "from", from.ID.String(), "to", to.ID.String(), "units", t.units, "err", err)
	}
	m.begun.Add(1)
	p.coming = append(p.coming, coming{tranche: t, begun: time.Now(), moved: v.shards[t.to].Moved})
	from.Wake()
	to.Wake()
	decided := err == nil
	m.start(func() {
		// Settling carries it: it is asked for at once.
		ctx, cancel := context.WithTimeout(m.cfg.Life, m.cfg.LedgerTimeout)
		defer cancel()
		if err := m.settler.SettleTransfer(ctx, from, &a, decided); err != nil {
			m.cfg.Logger.Debug("a transfer waits to be settled", "from", from.ID.String(), "to", to.ID.String(), "units", t.units, "err", err)
		}
	})
}

// unmade reports whether a withdrawal that failed has left no trace.
func unmade(err error) bool {
	e := (*dibs.Error)(nil)
	return errors.Is(err, dibs.ErrInvalidState) || errors.Is(err, dibs.ErrNotOpen) || errors.Is(err, dibs.ErrStale) ||
		errors.As(err, &e) && e.Effect == dibs.EffectNone
}

// keepComing drops the transfers that have arrived, or that take too long, and learns
// how long they take.
func (p *pool) keepComing(v *view, now time.Time) {
	kept := p.coming[:0]
	for _, c := range p.coming {
		age := now.Sub(c.begun)
		arrived := v.whole && v.underWay() == 0 || v.ok[c.to] && v.shards[c.to].Moved <= c.moved-c.units
		if arrived {
			p.took = min(max((3*p.took+age)/4, tookFirst/3), arriveTime)
		}
		if !arrived && age < arriveTime {
			kept = append(kept, c)
		}
	}
	p.coming = kept
}

// othersTime is how long units may be on their way that another node has sent before
// this node begins transfers beside them.
const othersTime = 500 * time.Millisecond

// othersMove reports whether units are on their way that this node has not sent.
func (p *pool) othersMove(v *view, now time.Time) bool {
	own := int64(0)
	for _, c := range p.coming {
		own += c.units
	}
	switch {
	case !v.whole || v.underWay() <= own:
		p.strange = time.Time{}
	case p.strange.IsZero():
		p.strange = now
	}
	return !p.strange.IsZero() && now.Sub(p.strange) < othersTime
}

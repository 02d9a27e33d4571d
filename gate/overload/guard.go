package overload

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/internal/faults"
	"github.com/dibs-dev/dibs/internal/memory"

	"github.com/dibs-dev/dibs/api"
)

// The defaults of a Config.
const (
	DefaultTarget = 500 * time.Millisecond
	DefaultMax    = 20_000
	DefaultMin    = 32
	DefaultAfter  = 5 * time.Second
)

// Config configures a Guard; the zero value of any field means the default named
// beside it.
type Config struct {
	// Target is how long the engine may take over claims that wait for it before
	// fewer are let in at a time; 10ms to 1m, default DefaultTarget.
	Target time.Duration
	// Max is how many may be with the engine at a time at most, Min how many are let
	// in however long they take; defaults DefaultMax and DefaultMin.
	Max, Min int64
	// After is for how long claims have to be refused before the node says that it
	// is overloaded, and to be let in before it says that it is not; default
	// DefaultAfter.
	After time.Duration
	// Memory is how much memory the process may take, in bytes; default: what the Go
	// runtime was told (GOMEMLIMIT), else what the container may have, else no
	// bound.
	Memory int64
	// Logger is told when the node becomes overloaded, and when it is not any more;
	// default: nobody.
	Logger *slog.Logger
}

// WithDefaults returns the config with every zero field set.
func (c Config) WithDefaults() Config {
	c.Target = cmp.Or(c.Target, DefaultTarget)
	c.Max = cmp.Or(c.Max, DefaultMax)
	c.Min = cmp.Or(c.Min, min(DefaultMin, c.Max))
	c.After = cmp.Or(c.After, DefaultAfter)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Memory == 0 {
		c.Memory = memory.Limit()
	}
	return c
}

// Validate lists every fault of a config with defaults, naming the fields.
func (c Config) Validate() error {
	var fs faults.List
	fs.Must(c.Target >= 10*time.Millisecond && c.Target <= time.Minute, "/Target", "must be from 10ms to 1m")
	fs.Must(c.Max >= 1 && c.Max <= maxInFlight, "/Max", fmt.Sprintf("must be from 1 to %d", maxInFlight))
	fs.Must(c.Min >= 1 && c.Min <= c.Max, "/Min", "must be from 1 to Max")
	fs.Must(c.After >= 100*time.Millisecond, "/After", "must be at least 100ms")
	fs.Must(c.Memory >= 0, "/Memory", "must not be negative")
	return fs.Err()
}

const (
	// The state has the claims under way in its low bits, and above them how many
	// have entered.
	inFlightBits = 24
	inFlightMask = 1<<inFlightBits - 1
	one          = 1<<inFlightBits | 1
	// maxInFlight leaves room for those who are about to be refused.
	maxInFlight = 1_000_000
	// Few under way, one in sampleOf is timed; else all.
	few, sampleOf = 32, 16
	// A claim that takes less has not waited.
	waitedFrom = int64(time.Millisecond)
)

// Guard implements claims.Guard. Use New; all methods are safe for concurrent use.
//
// It has no lock: claims count themselves in and out of state, in one atomic step each, and
// read limit. Only the loop writes limit and seen, and it alone has c.
type Guard struct {
	cfg   Config
	begin time.Time

	state atomic.Uint64
	limit atomic.Int64
	peak  atomic.Int64
	// shed counts refusals; timed those whose time was taken since the last look,
	// waited those of them that waited, and sum how long these took, in nanoseconds.
	shed, timed, waited, sum atomic.Int64

	// c is the loop's.
	c control
	// seen is what the loop saw last.
	seen atomic.Pointer[api.OverloadView]

	life context.CancelFunc
	loop sync.WaitGroup
}

var _ claims.Guard = (*Guard)(nil)

// New returns a guard that looks at itself until it is closed, or lists every
// fault of the config.
func New(cfg Config) (*Guard, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("overload: %w", err)
	}
	g := &Guard{cfg: cfg, begin: time.Now()}
	g.limit.Store(cfg.Max)
	g.c.limit = cfg.Max
	g.seen.Store(&api.OverloadView{Limit: cfg.Max, TargetMS: cfg.Target.Milliseconds(), MemoryLimitBytes: cfg.Memory})
	ctx, cancel := context.WithCancel(context.Background())
	g.life = cancel
	g.loop.Go(func() { g.look(ctx) })
	return g, nil
}

// Close stops the guard. Claims under way may leave all the same.
func (g *Guard) Close() {
	g.life()
	g.loop.Wait()
}

// now is the time since the guard was made, which no clock that is set can
// change.
func (g *Guard) now() int64 { return int64(time.Since(g.begin)) }

// Full reports whether a claim that comes now would be refused: what can be asked
// before anything is done for it.
func (g *Guard) Full() bool {
	return int64(g.state.Load()&inFlightMask) >= g.limit.Load()
}

// CountRefused counts a claim that was refused because of Full.
func (g *Guard) CountRefused() { g.shed.Add(1) }

// Enter implements claims.Guard.
func (g *Guard) Enter() (mark int64, ok bool) {
	state := g.state.Add(one)
	under := int64(state & inFlightMask)
	if under > g.limit.Load() {
		g.state.Add(^uint64(one - 1))
		g.shed.Add(1)
		return 0, false
	}
	for peak := g.peak.Load(); under > peak && !g.peak.CompareAndSwap(peak, under); {
		peak = g.peak.Load()
	}
	if under > few || (state>>inFlightBits)%sampleOf == 0 {
		return g.now() + 1, true
	}
	return 0, true
}

// Leave implements claims.Guard.
func (g *Guard) Leave(mark int64) {
	g.state.Add(^uint64(0))
	if mark == 0 {
		return
	}
	g.timed.Add(1)
	if took := g.now() + 1 - mark; took >= waitedFrom {
		g.waited.Add(1)
		g.sum.Add(took)
	}
}

// View returns how much the node had to do when the guard looked last.
func (g *Guard) View() api.OverloadView { return *g.seen.Load() }

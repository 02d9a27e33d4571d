package overload

import (
	"context"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs/internal/memory"

	"github.com/dibs-dev/dibs/api"
)

const (
	// Of a target there are so many looks, within these bounds.
	looksPerTarget = 5
	minLook        = 10 * time.Millisecond
	maxLook        = 100 * time.Millisecond
	// headroom is the part of what would just be answered in time that is let in.
	headroom = 0.9
	// cutMost is the part that is left at least when the number is cut.
	cutMost = 0.2
	// growBelow is the part of the target below which more are let in.
	growBelow = 0.8
	// memoryHigh and memoryLow are the parts of the memory above which a node is
	// overloaded, and below which it is not any more.
	memoryHigh, memoryLow = 0.9, 0.8
	// mostTargets bounds the target where the engine is slow by itself.
	mostTargets = 4
)

// control decides how many are let in at a time. It is the loop's.
type control struct {
	limit int64
	// entered, under and shed are as they were at the last look.
	entered, under, shed int64
	// rate is how many that waited are answered in a second, lately.
	rate float64
	// took is how long those took that waited, when some were answered last, in
	// nanoseconds.
	took float64
	// alone is how long claims take while few are under way, in nanoseconds.
	alone float64
	// stalled is since when nothing was answered although something is under way.
	stalled int64
	// late is since when claims have taken too long, and settles when the effect of the
	// last cut can be seen; 0 for never.
	late, settles int64
	// refusing is for how much of the last time claims were refused.
	refusing time.Duration
	// shedRate is how many a second, lately.
	shedRate float64

	memoryFull bool
	overloaded bool
}

// every is how often the guard looks.
func (c Config) every() time.Duration { return min(max(c.Target/looksPerTarget, minLook), maxLook) }

func (g *Guard) look(ctx context.Context) {
	every := g.cfg.every()
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := g.now()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := g.now()
		g.adapt(now, max(now-last, 1))
		last = now
		v := g.judge(every, n%max(1, int(time.Second/every)) == 0)
		g.seen.Store(&v)
	}
}

// adapt looks at what has happened since the last time, passed nanoseconds ago,
// and decides how many are let in from now on.
func (g *Guard) adapt(now, passed int64) {
	c := &g.c
	state := g.state.Load()
	entered, under := int64(state>>inFlightBits), int64(state&inFlightMask)
	timed, waited, sum := g.timed.Swap(0), g.waited.Swap(0), g.sum.Swap(0)
	peak := max(g.peak.Swap(under), under)
	shed := g.shed.Load()
	answered := entered - c.entered - (under - c.under)
	seconds := float64(passed) / float64(time.Second)
	weight := min(1, float64(passed)/float64(g.cfg.Target))

	switch {
	case waited > 0:
		c.took = float64(sum) / float64(waited)
	case timed > 0 || under == 0:
		c.took = 0
	}
	// While claims are under way of which none was seen to be answered, what was
	// seen last is what is known: silence is no good news.
	took := c.took
	if c.stalled += passed; answered > 0 || under == 0 {
		c.stalled = 0
	}
	took = max(took, float64(c.stalled))
	c.rate += weight * (float64(waited)/seconds - c.rate)
	c.shedRate += weight * (float64(shed-c.shed)/seconds - c.shedRate)
	if shed > c.shed {
		c.refusing = min(c.refusing+time.Duration(passed), g.cfg.After)
	} else {
		c.refusing = max(c.refusing-time.Duration(passed), 0)
	}
	if peak <= g.cfg.Min && c.stalled == 0 && timed > 0 && shed == c.shed {
		c.alone += weight * (took - c.alone)
	}
	c.entered, c.under, c.shed = entered, under, shed
	g.resize(now, passed, took, peak)
	g.note(took, under)
}

// target is how long claims may take now.
func (g *Guard) target() float64 {
	t := float64(g.cfg.Target)
	return min(max(t, 2*g.c.alone), mostTargets*t)
}

// resize changes how many are let in at a time, when claims that waited took so
// long.
func (g *Guard) resize(now, passed int64, took float64, peak int64) {
	c, target := &g.c, g.target()
	switch {
	case took > target && c.late == 0:
		// One slow write to the disk is no queue: it has to stay so for a while.
		c.late, c.settles = now, now+int64(target)
	case took > target && peak <= g.cfg.Min:
		// So few are let in however long they take: it is the engine that is slow.
	case took > target && now >= c.settles:
		// Those that were let in before are answered late still, whatever is done: what
		// this does can be seen after that.
		most := float64(min(c.limit, peak))
		next := min(max(c.rate*target/float64(time.Second)*headroom, cutMost*most), headroom*most)
		c.limit = max(int64(next), g.cfg.Min)
		c.settles = now + int64(max(target, took))
	case took <= growBelow*target:
		c.late = 0
		step := float64(c.limit) * float64(passed) / (mostTargets * target)
		if peak < c.limit/2 {
			// Nobody is kept out.
			step *= mostTargets
		}
		c.limit = min(c.limit+max(1, int64(step)), g.cfg.Max)
	case took <= target:
		c.late = 0
	}
	g.limit.Store(c.limit)
}

// note keeps what was seen.
func (g *Guard) note(took float64, under int64) {
	v := *g.seen.Load()
	v.InFlight, v.Limit = under, g.c.limit
	v.ShedPerSecond = int64(g.c.shedRate + 0.5)
	v.LatencyMS, v.TargetMS = time.Duration(took).Milliseconds(), time.Duration(g.target()).Milliseconds()
	g.seen.Store(&v)
}

// judge decides whether the node is overloaded. It stays overloaded until
// the reason has been gone for a while.
func (g *Guard) judge(every time.Duration, readMemory bool) api.OverloadView {
	c, v := &g.c, *g.seen.Load()
	if readMemory {
		v.MemoryBytes, v.MemoryLimitBytes = memory.Used(), g.cfg.Memory
		used := float64(v.MemoryBytes)
		most := float64(g.cfg.Memory)
		c.memoryFull = most > 0 && (used >= memoryHigh*most || c.memoryFull && used >= memoryLow*most)
	}
	refusing := c.refusing >= g.cfg.After-every || c.overloaded && c.refusing > 0
	v.Overloaded, v.Why, v.MemoryFull = true, "", c.memoryFull
	switch {
	case refusing && c.memoryFull:
		v.Why = "claims are refused, and memory is nearly used up"
	case refusing:
		v.Why = "claims are refused: more come than are answered in time"
	case c.memoryFull:
		v.Why = fmt.Sprintf("memory is nearly used up: %d of %d MiB", v.MemoryBytes>>20, g.cfg.Memory>>20)
	default:
		v.Overloaded = false
	}
	if v.Overloaded != c.overloaded {
		if c.overloaded = v.Overloaded; v.Overloaded {
			g.cfg.Logger.Warn("overloaded", "why", v.Why, "in_flight", v.InFlight, "limit", v.Limit, "shed_per_second", v.ShedPerSecond,
				"latency_ms", v.LatencyMS, "memory_bytes", v.MemoryBytes)
		} else {
			g.cfg.Logger.Info("not overloaded any more", "limit", v.Limit)
		}
	}
	return v
}

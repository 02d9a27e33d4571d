package plan

// clock runs events in the order of their times, and in the order in which they
// were made when the times are equal; so a run can be repeated exactly. It is not
// safe for concurrent use: a run has one goroutine.
type clock struct {
	// now is the time in seconds since the first arrival.
	now    float64
	made   uint64
	events []event
}

// event is something to do at a time.
type event struct {
	at    float64
	order uint64
	do    func()
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.order < o.order
}

// at has something done at a time, which is not before now.
func (c *clock) at(t float64, do func()) {
	c.made++
	c.events = append(c.events, event{max(t, c.now), c.made, do})
	for i := len(c.events) - 1; i > 0; {
		parent := (i - 1) / 2
		if !c.events[i].before(&c.events[parent]) {
			return
		}
		c.events[i], c.events[parent] = c.events[parent], c.events[i]
		i = parent
	}
}

// after has something done after so many seconds.
func (c *clock) after(seconds float64, do func()) { c.at(c.now+seconds, do) }

// step does what comes next; false when nothing does.
func (c *clock) step() bool {
	if len(c.events) == 0 {
		return false
	}
	next := c.events[0]
	last := len(c.events) - 1
	c.events[0] = c.events[last]
	c.events[last] = event{}
	c.events = c.events[:last]
	c.sink()
	c.now = next.at
	next.do()
	return true
}

// sink puts the event at the top to its place.
func (c *clock) sink() {
	for i := 0; ; {
		least, left := i, 2*i+1
		for _, child := range []int{left, left + 1} {
			if child < len(c.events) && c.events[child].before(&c.events[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		c.events[i], c.events[least] = c.events[least], c.events[i]
		i = least
	}
}

// processor does work in the order in which it arrives. Its cores work together
// on one piece after the other: for pieces that are much shorter than the waits,
// this gives the waits of a queue before several cores.
//
// free is the time at which everything that it was given is done. It never goes
// back.
type processor struct {
	clock *clock
	cores float64
	free  float64
	usage *usage
}

// work takes so many seconds of one core, and calls done when they are over.
func (p *processor) work(seconds float64, done func()) {
	start := max(p.free, p.clock.now)
	p.free = start + seconds/p.cores
	p.usage.add(start, p.free)
	p.usage.waited += start - p.clock.now
	p.clock.at(p.free, done)
}

// workAhead is work that only one core can do and that does not wait for the queue:
// what a goroutine does that runs already. The rest of the queue moves back.
func (p *processor) workAhead(seconds float64, done func()) {
	start := max(p.free, p.clock.now)
	p.free = start + seconds/p.cores
	p.usage.add(start, p.free)
	p.clock.after(seconds/min(p.cores, 1), done)
}

// workOn is work that only one core can do. Its first slice is done ahead; then others have
// their turns in between.
func (p *processor) workOn(seconds float64, done func()) {
	first := min(seconds, slice)
	p.workAhead(first, func() {
		if rest := seconds - first; rest > 1e-9 {
			p.workAlone(rest, done)
			return
		}
		done()
	})
}

// slice is how long a piece of work that only one core can do runs before others
// have their turn: what Go's scheduler allows a goroutine.
const slice = 0.010

// workAlone is work that only one core can do. It takes no less time than it has
// seconds, and others have their turns in between.
func (p *processor) workAlone(seconds float64, done func()) {
	part := min(seconds, slice)
	began := p.clock.now
	p.work(part, func() {
		p.clock.at(began+part, func() {
			if rest := seconds - part; rest > 1e-9 {
				p.workAlone(rest, done)
				return
			}
			done()
		})
	})
}

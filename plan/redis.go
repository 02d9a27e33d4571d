package plan

import "github.com/dibs-dev/dibs"

// The behaviour of package redisengine with claims: the most that a call decides, and how
// many calls of a shard a node has under way.
const (
	callClaims  = 1024
	callsAtOnce = 2
)

// master is one core of Redis, which decides for one shard. In each turn it runs
// all calls that wait, and syncs once for all of them; then it answers.
type master struct {
	run     *run
	shard   int
	cost    *EngineCost
	settler *settler
	cpu     *processor
	waiting []*call
	busy    bool
	// turnEnd is what each turn takes beside the calls: the disk, and at the level
	// dibs.LevelReplicated the way to the replica and back.
	turnEnd float64
}

// call is claims that a node sends together.
type call struct {
	lane   *lane
	claims []decided
	size   float64
}

func newMaster(r *run, shard int, s *settler) *master {
	m := &master{run: r, shard: shard, cost: r.engine, settler: s, cpu: &processor{clock: &r.clock, cores: 1, usage: r.record.engine}}
	if r.q.durable() {
		m.turnEnd = m.cost.SyncUS * micro
	}
	if r.q.Durability == dibs.LevelReplicated {
		m.turnEnd += r.q.Link.Seconds() + m.cost.SyncUS*micro
	}
	return m
}

// take receives a call.
func (m *master) take(c *call) {
	m.waiting = append(m.waiting, c)
	m.turn()
}

func (m *master) turn() {
	if m.busy || len(m.waiting) == 0 {
		return
	}
	calls := m.waiting
	m.waiting, m.busy = nil, true
	work := 0.0
	for _, c := range calls {
		steps := max(1, c.size/callClaims)
		work += m.cost.StepUS*steps + m.cost.ClaimUS*c.size
	}
	m.cpu.work(work*micro, func() {
		for _, c := range calls {
			for _, d := range c.claims {
				m.run.stock.decide(m.shard, d.parcel, m.run.now)
			}
		}
		// The disk keeps Redis from its next turn, as work would.
		m.cpu.free = max(m.cpu.free, m.run.now) + m.turnEnd
		m.run.after(m.turnEnd, func() {
			m.busy = false
			for _, c := range calls {
				m.run.after(m.run.q.Link.Seconds()/2, c.land)
			}
			m.turn()
		})
	})
}

// lane is a node's way to a master.
type lane struct {
	run    *run
	master *master
	queue  []decided
	flying int
}

// decide implements node.decide for the lane's shard.
func (l *lane) decide(p *parcel, done func()) {
	since := l.run.now
	l.queue = append(l.queue, decided{p, func() {
		l.run.record.engine.waited += l.run.now - since
		done()
	}})
	l.fly()
}

func (l *lane) fly() {
	for l.flying < callsAtOnce && len(l.queue) > 0 {
		c := &call{lane: l}
		n := 0
		for n < len(l.queue) && (n == 0 || c.size+l.queue[n].parcel.requests <= callClaims) {
			c.size += l.queue[n].parcel.requests
			n++
		}
		c.claims, l.queue = l.queue[:n:n], l.queue[n:]
		l.flying++
		l.run.after(l.run.q.Link.Seconds()/2, func() { l.master.take(c) })
	}
}

// land takes a call's answers.
func (c *call) land() {
	c.lane.flying--
	for _, d := range c.claims {
		c.lane.master.settler.granted(d)
	}
	c.lane.fly()
}

package plan

import (
	"math"
	"math/rand/v2"
)

// mostParcels is about how many parcels a crowd is divided into. More make a run
// longer and resolve shorter waits.
const mostParcels = 20_000

// parcel is some requests that arrive, are decided and are answered together.
// Requests of one parcel are of users in no order.
type parcel struct {
	requests float64
	// born is when the requests were meant to be sent: waits count from there.
	born float64
	// first is how many of the requests are the first ones on their connections.
	first float64
	// granted and refused are how its claims were decided.
	granted, refused float64
}

// crowd sends the requests of a question.
type crowd struct {
	run *run
	// each is how many requests a parcel has, parcels how many there are, sent how
	// many were sent, and open how many were not answered yet.
	each    float64
	parcels int
	sent    int
	open    int
	random  *rand.Rand
}

func newCrowd(r *run) *crowd {
	all := r.q.requests()
	each := math.Ceil(all / mostParcels)
	return &crowd{run: r, each: each, parcels: int(math.Ceil(all / each)), random: rand.New(rand.NewPCG(r.q.Seed, 0))}
}

// begin sends what comes first. The rest follows by itself.
func (c *crowd) begin() {
	if c.run.q.Shape == AtOnce {
		c.wave()
		return
	}
	c.next()
}

// next sends the parcel whose turn it is, at its time.
func (c *crowd) next() {
	if c.sent == c.parcels {
		return
	}
	c.run.at(c.arrival(c.sent), func() {
		c.send()
		c.next()
	})
}

// arrival is when a parcel arrives: at random within its own part of the arrivals,
// so that the rate is the shape's, and no two runs of a seed differ.
func (c *crowd) arrival(i int) float64 {
	part := (float64(i) + c.random.Float64()) / float64(c.parcels)
	if c.run.q.Shape == Falling {
		// The inverse of 2t - t², of which the rate falls evenly to nothing.
		part = 1 - math.Sqrt(1-part)
	}
	return part * c.run.q.Over.Seconds()
}

// wave sends as much as may be under way at once.
func (c *crowd) wave() {
	size := c.parcels
	if c.run.q.Wave > 0 {
		size = max(1, int(math.Round(float64(c.run.q.Wave)/c.each)))
	}
	for range min(size, c.parcels-c.sent) {
		c.send()
	}
}

func (c *crowd) send() {
	p := &parcel{requests: c.each, born: c.run.now}
	if c.sent == c.parcels-1 {
		p.requests = c.run.q.requests() - c.each*float64(c.parcels-1)
	}
	p.first = c.firsts(p.requests)
	c.sent++
	c.open++
	c.run.record.offered(c.run.now, p.requests)
	n := c.run.nodes[c.random.IntN(len(c.run.nodes))]
	shard := c.random.IntN(len(c.run.stock.left))
	if !c.run.q.ClientsHere {
		n.receive(p, shard)
		return
	}
	cost := &c.run.cal.Client
	n.cpu.work((cost.RequestUS/2*p.requests+cost.FirstUS*p.first)*micro, func() { n.receive(p, shard) })
}

// firsts is how many of the requests that are sent now are the first ones on their
// connections. Each user keeps one; but those of a wave use the connections of the
// first wave again, as dibs rehearse does.
func (c *crowd) firsts(requests float64) float64 {
	q := &c.run.q
	if q.Wave == 0 {
		return requests / q.Presses
	}
	before := float64(c.sent) * c.each
	return min(requests, max(0, float64(q.Wave)-before))
}

// answered takes a parcel's answers.
func (c *crowd) answered(n *node, p *parcel) {
	if !c.run.q.ClientsHere {
		c.done(p)
		return
	}
	n.cpu.work(c.run.cal.Client.RequestUS*micro/2*p.requests, func() { c.done(p) })
}

func (c *crowd) done(p *parcel) {
	c.run.record.answer(c.run.now, p)
	c.open--
	if c.open == 0 && c.run.q.Wave > 0 {
		c.wave()
	}
}

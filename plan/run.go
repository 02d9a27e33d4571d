package plan

import (
	"context"
	"slices"
)

// run is one simulation: a question with all numbers fixed, from the first arrival
// until the ledger has everything.
type run struct {
	clock
	q          Question
	cal        *Calibration
	engine     *EngineCost
	ledgerCost *LedgerCost

	nodes  []*node
	stock  *stock
	ledger *ledger
	crowd  *crowd
	record *record
}

// looksPerRun is after how many events a run looks whether it is still wanted.
const looksPerRun = 1 << 14

// simulate runs a question whose nodes and shards are given. It returns an error
// when the calibration lacks what the question needs, or when ctx ended.
func simulate(ctx context.Context, cal *Calibration, q Question) (*run, error) {
	r := &run{q: q, cal: cal, record: newRecord(&q), stock: newStock(&q)}
	var err error
	if r.engine, r.ledgerCost, err = cal.costs(&q); err != nil {
		return nil, err
	}
	r.record.node.servers, r.record.engine.servers, r.record.ledger.servers = float64(q.Nodes), float64(q.Shards), 1
	r.ledger = &ledger{run: r, cost: r.ledgerCost, cpu: &processor{clock: &r.clock, cores: 1, usage: r.record.ledger}}
	for range q.Nodes {
		r.nodes = append(r.nodes, &node{run: r, cpu: &processor{clock: &r.clock, cores: q.Cores, usage: r.record.node}})
	}
	if q.Engine == Memory {
		r.onMemory()
	} else {
		r.onRedis()
	}
	r.crowd = newCrowd(r)
	r.crowd.begin()
	for n := 1; r.step(); n++ {
		if n%looksPerRun == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return r, nil
}

// onMemory gives the only node an engine of its own.
func (r *run) onMemory() {
	n := r.nodes[0]
	n.decide = newMemory(n, &settler{run: r, node: n, read: n.cpu.workAhead}).decide
}

// onRedis gives each shard a master and a node that settles it, and each node a
// lane to each master.
func (r *run) onRedis() {
	masters := make([]*master, r.q.Shards)
	lanes := make([][]*lane, len(masters))
	for i := range masters {
		s := &settler{run: r, node: r.nodes[i%len(r.nodes)]}
		masters[i] = newMaster(r, i, s)
		s.read = masters[i].cpu.work
		s.rushed = func() bool { return slices.ContainsFunc(lanes[i], func(l *lane) bool { return l.flying > 0 }) }
	}
	for _, n := range r.nodes {
		own := make([]*lane, len(masters))
		for i, m := range masters {
			own[i] = &lane{run: r, master: m}
			lanes[i] = append(lanes[i], own[i])
		}
		n.decide = func(p *parcel, shard int, done func()) { own[shard].decide(p, done) }
	}
}

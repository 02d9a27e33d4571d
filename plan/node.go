package plan

// micro is a microsecond in seconds.
const micro = 1e-6

// before is the part of a node's work for a granted claim that it does before the
// engine decides; the rest is the answer. A refusal that needs no engine is done at
// once.
const before = 0.6

// node is one process that answers requests. Its engine is one of the two that
// follow; what a node knows of the stock it knows at once.
type node struct {
	run *run
	cpu *processor
	// decide has a parcel decided by a shard's engine and then calls done. When it
	// calls done, what was granted is as durable as the level asks for.
	decide func(p *parcel, shard int, done func())
}

// receive takes a parcel from the wire.
func (n *node) receive(p *parcel, shard int) {
	cost := &n.run.cal.Node
	first := cost.FirstUS * micro * p.first
	if n.run.stock.gone(shard) {
		// The node knows that nothing is left, and refuses without the engine.
		n.run.stock.refuse(p)
		n.cpu.work(first+cost.RefusedUS*micro*p.requests, func() { n.answer(p) })
		return
	}
	n.cpu.work(first+cost.GrantedUS*micro*before*p.requests, func() {
		n.decide(p, shard, func() {
			rest := cost.GrantedUS*(1-before)*p.granted + max(0, cost.RefusedUS-cost.GrantedUS*before)*p.refused
			n.cpu.work(rest*micro, func() { n.answer(p) })
		})
	})
}

func (n *node) answer(p *parcel) { n.run.crowd.answered(n, p) }

package plan

// memory is the memory engine of a node. It decides at once, and one commit after
// the other makes all decisions durable that were made during the one before.
type memory struct {
	node     *node
	cost     *EngineCost
	settler  *settler
	waiting  []decided
	flying   bool
	syncTime float64
}

// decided is a parcel that waits for what makes it durable.
type decided struct {
	parcel *parcel
	done   func()
}

// journalBesideLedger adds to a commit what a server takes for it: with a ledger in
// a server the journal is a table there, and not a file of the node.
func (m *memory) journalBesideLedger(l *LedgerCost, q *Question) {
	m.syncTime = l.CommitUS*micro + q.Link.Seconds()
}

func newMemory(n *node, s *settler) *memory {
	m := &memory{node: n, cost: n.run.engine, settler: s}
	if n.run.q.durable() {
		m.syncTime = m.cost.SyncUS * micro
	}
	if n.run.q.Ledger != SQLite {
		m.journalBesideLedger(n.run.ledgerCost, &n.run.q)
	}
	// Claims on all their stages mix: while some are under way, some wait here.
	s.rushed = func() bool { return n.run.crowd.open > 0 && !n.run.stock.gone(0) }
	return m
}

// decide implements node.decide.
func (m *memory) decide(p *parcel, shard int, done func()) {
	run := m.node.run
	run.stock.decide(shard, p, run.now)
	if p.granted == 0 {
		done()
		return
	}
	since := run.now
	m.waiting = append(m.waiting, decided{p, func() {
		run.record.engine.waited += run.now - since
		done()
	}})
	m.commit()
}

// commit writes what waits, unless a commit is under way.
func (m *memory) commit() {
	if m.flying || len(m.waiting) == 0 {
		return
	}
	batch := m.waiting
	m.waiting, m.flying = nil, true
	grants := 0.0
	for _, d := range batch {
		grants += d.parcel.granted
	}
	began := m.node.run.now
	m.node.cpu.workAlone((m.cost.StepUS+m.cost.ClaimUS*grants)*micro, func() {
		m.node.run.record.engine.add(began, m.node.run.now)
		m.node.run.after(m.syncTime, func() {
			m.flying = false
			for _, d := range batch {
				m.settler.granted(d)
			}
			m.commit()
		})
	})
}

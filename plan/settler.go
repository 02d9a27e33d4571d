package plan

import "github.com/dibs-dev/dibs"

// The behaviour of package live when it settles, with the settings that dibs serve has
// without any of its own.
const (
	settleEvery = 0.1
	settleBatch = 1 << 14
	maxBacklog  = 5_000_000
	rushBatch   = 8
	firstRest   = 2.0
	longRest    = 4
	shortRest   = 1
	littleShare = 8
	lookInRush  = 0.05
)

// settler moves the grants of one journal into the ledger.
//
// written counts the grants in the journal and settled those in the ledger; both
// only grow, and settled is never above written. active is set from the first
// grant that waits until none does: at most one transaction is under way.
type settler struct {
	run  *run
	node *node
	// read takes so many seconds to read the journal back, and rushed reports whether
	// claims wait for the engine.
	read   func(seconds float64, done func())
	rushed func() bool

	written, settled float64
	active           bool
	// trains are the grants that wait, in order, and when they were written.
	trains []train
}

// train is grants that were written at the same time.
type train struct {
	at, grants float64
	// upTo is the settler's written after them.
	upTo float64
	// then is called when the ledger has them; nil when nothing waits for that.
	then func()
}

// granted takes a decided parcel whose grants are durable in the engine, and
// answers it: at once, or at the level dibs.LevelLedgered when it is settled.
func (s *settler) granted(d decided) {
	g := d.parcel.granted
	if g == 0 {
		d.done()
		return
	}
	s.written += g
	since := s.run.now
	t := train{at: s.run.now, grants: g, upTo: s.written}
	if s.run.q.Durability == dibs.LevelLedgered {
		t.then = func() {
			s.run.record.ledger.waited += s.run.now - since
			d.done()
		}
	} else {
		d.done()
	}
	s.trains = append(s.trains, t)
	s.run.record.written(s.run.now, g)
	s.wake()
}

func (s *settler) wake() {
	if s.active {
		return
	}
	s.active = true
	// Entries wait a moment for company, but no call waits for company.
	wait := settleEvery
	if s.wanted() || s.backlog() >= settleBatch {
		wait = 0
	}
	s.run.after(wait, func() {
		if s.backlog() >= settleBatch/rushBatch {
			s.rest(firstRest, s.settle)
			return
		}
		s.settle()
	})
}

func (s *settler) backlog() float64 { return s.written - s.settled }

// wanted reports whether answers wait for the ledger.
func (s *settler) wanted() bool { return s.run.q.Durability == dibs.LevelLedgered }

// rest waits for so many seconds, but no longer than claims queue.
func (s *settler) rest(seconds float64, then func()) {
	if seconds <= 0 || s.wanted() || !s.rushed() || s.backlog() > maxBacklog/2 {
		then()
		return
	}
	nap := min(seconds, lookInRush)
	s.run.after(nap, func() { s.rest(seconds-nap, then) })
}

// settle writes one batch.
func (s *settler) settle() {
	n := min(s.backlog(), settleBatch)
	if n <= 0 {
		s.active = false
		return
	}
	began := s.run.now
	s.read(s.run.engine.ReadUS*micro*n, func() {
		s.run.ledger.settle(s.node, n, func() {
			s.settled += n
			s.arrive()
			if n < settleBatch {
				// Entries that came meanwhile wait for company again.
				if s.active = false; s.backlog() > 0 {
					s.wake()
				}
				return
			}
			rest := (s.run.now - began) * longRest
			if s.backlog() > maxBacklog/littleShare {
				rest = (s.run.now - began) * shortRest
			}
			s.rest(rest, s.settle)
		})
	})
}

// arrive takes what the ledger has off the trains.
func (s *settler) arrive() {
	for len(s.trains) > 0 && s.trains[0].upTo <= s.settled+1e-9 {
		t := s.trains[0]
		s.trains = s.trains[1:]
		s.run.record.settled(s.run.now, t.at, t.grants)
		if t.then != nil {
			t.then()
		}
	}
}

// ledger is the database. It runs one transaction after the other, since those of
// one campaign change the same row.
type ledger struct {
	run  *run
	cost *LedgerCost
	cpu  *processor
}

// settle writes a node's batch and calls done when it is committed.
func (l *ledger) settle(n *node, rows float64, done func()) {
	took := (l.cost.CommitUS + l.cost.RowUS*rows) * micro
	n.cpu.workAhead(l.cost.NodeUS*micro*rows, func() {
		if l.run.q.Ledger == SQLite {
			// SQLite is a library: its work is the node's. It is busy while a transaction waits
			// for the processor, too, since no other one can begin.
			start := l.run.now
			n.cpu.workOn(took, func() {
				l.cpu.usage.add(start, l.run.now)
				done()
			})
			return
		}
		l.cpu.work(took+l.run.q.Link.Seconds(), done)
	})
}

package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/node"
)

// The faults that a run may have.
const (
	faultCrash    = "a node is killed"
	faultFreeze   = "a node stands still"
	faultCut      = "a node reaches no server"
	faultSleep    = "the server stands still"
	faultRestart  = "the server is restarted"
	faultTail     = "the server loses its tail"
	faultEmpty    = "the server is restarted empty"
	faultFlush    = "the server is emptied"
	faultFailover = "a replica is promoted"
	faultFork     = "a replica is promoted beside a living master"
	faultFull     = "the server is full"
	faultSlow     = "the ledger is slow"
	faultNoLedger = "the ledger does not answer"
	faultRestore  = "the ledger goes back to a dump"
)

var (
	faults = []string{
		faultCrash, faultFreeze, faultCut, faultSleep, faultRestart, faultTail, faultEmpty, faultFlush, faultFailover, faultFork,
		faultFull, faultSlow, faultNoLedger,
	}
	// kindFaults lose nothing that the ledger does not have: beside them, a
	// ledger that went back can be told from one that did not.
	kindFaults = []string{faultCrash, faultFreeze, faultCut, faultSleep, faultRestart, faultFull, faultSlow, faultRestore, faultRestore, faultRestore}
)

// plan is what a run is like. All of it comes from the seed.
// It does not change once it is drawn, so that all goroutines read it.
type plan struct {
	seed    uint64
	service node.ServiceConfig
	// skews are how far the clocks of the nodes are ahead.
	skews  []time.Duration
	offers []offerPlan
	users  int
	// pace is the longest pause of a user between two steps.
	pace   time.Duration
	rounds int
	round  time.Duration
	// faults are the kinds that happen, at most gap apart; lag is how far the
	// replica is behind at most.
	faults   []string
	gap, lag time.Duration
	// rack says that servers and nodes are restarted whenever the ledger goes back.
	rack   bool
	wire   odds
	ledger odds
	// twice says that admins use one stock reference for two changes.
	twice bool
}

// odds are how often what happens to calls.
type odds struct {
	// stall is the part of the calls that wait for up to longest.
	stall   float64
	longest time.Duration
	// die is the part of the steps after which, or before which, the process dies.
	die float64
	// The parts of the calls that are lost in either way, late, or refused.
	request, answer, late, refused float64
}

// offerPlan is one campaign.
type offerPlan struct {
	kind         dibs.Kind
	items        bool
	stock, limit int64
	price        int64
	payWithin    time.Duration
	late         dibs.LatePayment
	window       time.Duration
	// shards is how many the stock is divided over, from 1; more how many an admin makes
	// of them in each round, none where it is empty.
	shards int
	more   []int
}

// newPlan draws a run.
func newPlan(seed uint64) *plan {
	d := newDice(seed, "plan")
	p := &plan{
		seed: seed, users: 3 + d.IntN(6), pace: d.between(100*time.Millisecond, 700*time.Millisecond),
		rounds: 1 + d.IntN(3), round: d.between(3*time.Second, 9*time.Second),
		gap: d.between(500*time.Millisecond, 4*time.Second), lag: d.between(50*time.Millisecond, 1500*time.Millisecond),
	}
	p.service = node.ServiceConfig{
		Ledgered:    d.chance(0.25),
		SettleBatch: one(d, 1, 2, 5, 100, 1<<14), SettleEvery: one(d, 10*time.Millisecond, 100*time.Millisecond, 500*time.Millisecond),
		JournalKeep: one(d, time.Millisecond, 500*time.Millisecond, time.Hour), TidyEvery: one(d, 200*time.Millisecond, time.Second, 5*time.Second),
		SweepEvery: 500 * time.Millisecond, CreditEvery: time.Second, EraseEvery: time.Hour,
	}
	for range one(d, 1, 2, 2, 3) {
		p.skews = append(p.skews, d.between(0, 3*time.Second)-1500*time.Millisecond)
	}
	for range one(d, 1, 1, 2) {
		p.offers = append(p.offers, newOffer(d))
	}
	p.drawFaults(d)
	// A node whose clock is wrong by an hour takes campaigns for over, or for running,
	// against all others.
	odd := 0.2
	if p.losesHistory() || p.has(faultRestart) {
		// Loads that are made by one node while another one takes the campaign to be over.
		odd = 0.6
	}
	if n := len(p.skews); n > 1 && d.chance(odd) {
		p.skews[n-1] = one(d, 65*time.Minute, 65*time.Minute, 65*time.Minute, -65*time.Minute)
	}
	p.twice = d.chance(0.1)
	p.drawShards()
	p.drawEnding()
	p.drawOlder()
	return p
}

// drawOlder has the ledger of one seed in eleven go back while hardly anybody claims and
// the journals are trimmed to nothing, by dice of its own: only their ends tell of it.
func (p *plan) drawOlder() {
	if p.seed%11 != 8 {
		return
	}
	d := newDice(p.seed, "older")
	p.service.JournalKeep, p.service.TidyEvery = time.Millisecond, 200*time.Millisecond
	p.pace = d.between(time.Second, 4*time.Second)
	p.faults, p.gap, p.rack = []string{faultRestore}, d.between(4*time.Second, 8*time.Second), true
	p.wire, p.ledger = odds{}, odds{}
	for i := range p.offers {
		p.offers[i].more = nil
	}
}

// drawEnding lets the campaigns of one seed in eleven end while servers lose their
// memory and nodes are killed, by dice of its own: loads are then broken off of
// campaigns that are over, which hardly happens by itself.
func (p *plan) drawEnding() {
	if p.seed%11 != 5 {
		return
	}
	d := newDice(p.seed, "ending")
	for i := range p.offers {
		p.offers[i].window = d.between(3*time.Second, 10*time.Second)
	}
	p.faults = []string{faultCrash, one(d, faultEmpty, faultFlush, faultFailover)}
	p.gap = d.between(300*time.Millisecond, 1500*time.Millisecond)
	p.wire.die, p.ledger.die = 0.01, 0.01
}

// drawShards divides the stock of some campaigns over several shards. Two of seven
// seeds do so, by dice of their own: all other runs are what they were before.
func (p *plan) drawShards() {
	d := newDice(p.seed, "shards")
	for i := range p.offers {
		o := &p.offers[i]
		o.shards = 1
		if p.seed%7 == 2 || p.seed%7 == 3 {
			o.shards = min(one(d, 2, 3, 3, 5), int(o.stock))
		}
	}
	p.drawMore()
}

// drawMore gives some campaigns more shards while users claim, by dice of its own: those
// of one seed in seven, which have several already, and of one in fourteen, which have
// one. A ledger that went back does not know shards that were made since.
func (p *plan) drawMore() {
	if p.seed%7 != 3 && p.seed%14 != 4 || p.has(faultRestore) {
		return
	}
	d := newDice(p.seed, "more")
	for i := range p.offers {
		o := &p.offers[i]
		for n := o.shards; len(o.more) < p.rounds; {
			n += one(d, 1, 1, 2, 4)
			o.more = append(o.more, n)
		}
	}
}

// drawFaults chooses a few kinds of faults: where all happen at once, hardly
// anything is left to go wrong in an order that matters.
func (p *plan) drawFaults(d *dice) {
	kinds := faults
	if d.chance(0.2) {
		kinds = kindFaults
	}
	for range d.IntN(4) {
		p.faults = append(p.faults, one(d, kinds...))
	}
	if p.has(faultRestore) {
		// A ledger that went back is of interest where the journal cannot tell.
		p.faults = append(p.faults, faultRestart)
		p.service.JournalKeep = one(d, time.Millisecond, time.Millisecond, time.Hour)
		p.service.TidyEvery = 200 * time.Millisecond
	}
	if d.chance(0.5) {
		p.wire = odds{stall: 0.01, longest: d.between(500*time.Millisecond, 5*time.Second), request: 0.004, answer: 0.004, late: 0.004}
	}
	if d.chance(0.5) {
		p.ledger = odds{stall: 0.01, longest: d.between(500*time.Millisecond, 5*time.Second), answer: 0.01, late: 0.01, refused: 0.02}
	}
	if p.has(faultCrash) {
		p.wire.die, p.ledger.die = 0.005, 0.005
	}
}

func newOffer(d *dice) offerPlan {
	o := offerPlan{
		kind: dibs.Sale, stock: 3 + d.Int64N(20), limit: 1 + d.Int64N(3), window: time.Hour, late: one(d, dibs.Reclaim, dibs.RefundDue),
	}
	switch d.IntN(5) {
	case 0:
		o.kind, o.items = dibs.Coupon, true
	case 1:
		o.kind, o.limit = dibs.RedPacket, 1
	case 2, 3:
		o.price, o.payWithin = 990, d.between(2*time.Second, 20*time.Second)
	}
	if d.chance(0.15) {
		o.window = d.between(4*time.Second, 15*time.Second)
	}
	return o
}

// has reports whether a kind of fault happens.
func (p *plan) has(fault string) bool { return slices.Contains(p.faults, fault) }

// expires reports whether claims of the run have a time to be paid in.
func (p *plan) expires() bool {
	return slices.ContainsFunc(p.offers, func(o offerPlan) bool { return o.payWithin > 0 })
}

// losesHistory reports whether servers may lose what they answered with yes.
func (p *plan) losesHistory() bool {
	return p.has(faultTail) || p.has(faultEmpty) || p.has(faultFlush) || p.has(faultFailover) || p.has(faultFork)
}

// String says what a run is like.
func (p *plan) String() string {
	level := dibs.LevelDurable
	if p.service.Ledgered {
		level = dibs.LevelLedgered
	}
	s := fmt.Sprintf("seed %d: %d nodes (clocks %v), %d users, %d rounds of %s, level %s, journal kept %s, batches of %d, faults %q at most %s apart, all in one rack %t, a step of a user in %s, wire %+v, ledger %+v",
		p.seed, len(p.skews), p.skews, p.users, p.rounds, p.round, level, p.service.JournalKeep, p.service.SettleBatch, p.faults, p.gap, p.rack, p.pace, p.wire, p.ledger)
	for _, o := range p.offers {
		s += fmt.Sprintf("\n  %s of %d (items %v) over %d shards, then %v, %d each, price %d, to pay in %s, %s, window %s",
			o.kind, o.stock, o.items, o.shards, o.more, o.limit, o.price, o.payWithin, o.late, o.window)
	}
	return s
}

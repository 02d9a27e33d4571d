package simulation

import (
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

const (
	// settleWithin is how long a healthy fleet may take to get everything settled:
	// what was left of a campaign that is over waits for five minutes.
	settleWithin = 7 * time.Minute
	// fullFor is how long a fleet may take while the server is full.
	fullFor = time.Minute
	// calmFor is how long a fleet is left alone before it is judged.
	calmFor = 1500 * time.Millisecond
	// wrongFor is the same while a clock is wrong: what a node takes for over is not
	// waited for then, and has to be settled by itself.
	wrongFor = 4 * time.Second
	// lookEvery is how often it is looked whether all is settled.
	lookEvery = 500 * time.Millisecond
)

// judge holds the promises against one run. It acts alone: it waits for quiet moments,
// compares what the ledger has, what the engine has, and what the book says that
// people were told, and notes in the world what is broken.
//
// A reading takes several steps, and nodes settle meanwhile. A promise is therefore
// held only once nothing is unsettled.
type judge struct {
	*world
	// decided says that an administrator has decided to go on from a ledger that went back.
	decided bool
}

// look waits for a quiet moment and holds the promises against what the book says.
func (j *judge) look() {
	j.keepPaused()
	if j.clocksWrong() {
		j.spend(wrongFor)
	} else {
		j.spend(calmFor)
	}
	var why string
	for since := time.Now(); ; j.spend(lookEvery) {
		if why = j.unsettled(); why == "" {
			break
		}
		// A fleet that noticed that its ledger went back halts and never settles the
		// rest, so it gets less time.
		if time.Since(since) > settleWithin || j.wentBack() && time.Since(since) > fullFor {
			break
		}
	}
	if why != "" && !j.wentBack() {
		j.broken("everything has been healed for %s, and %s", settleWithin, why)
		return
	}
	if j.wentBack() && j.noticed(why) {
		j.halted()
	} else {
		j.hold()
	}
	if j.wentBack() && !j.isBroken() {
		j.goOn()
	}
}

// hold holds the promises against what the book says, in a quiet moment.
func (j *judge) hold() {
	j.verify()
	for _, o := range j.book.offers {
		j.offer(o)
	}
	j.lists()
	j.story.tell("the promises have been looked at")
}

// keepPaused resumes what an admin has left paused.
func (j *judge) keepPaused() {
	c := client{j.world, newDice(j.plan.seed, "resume")}
	for _, o := range j.book.offers {
		if now, err := j.base.ledger.Campaign(j.ctx, o.id); err == nil && now.State == dibs.PausedState {
			c.resume(j.ctx, o)
		}
	}
}

// unsettled says what is not in its place yet; empty when all is.
func (j *judge) unsettled() string {
	for _, s := range j.sites {
		p := s.running()
		if p == nil {
			return s.name + " does not serve"
		}
		if h := p.svc.Health(j.ctx); !h.Ready {
			return fmt.Sprintf("%s is not ready: %+v", p.name, h.Dependencies)
		}
	}
	commands, err := j.base.ledger.Commands(j.ctx, 0, 100)
	if err != nil {
		return fmt.Sprintf("the outbox cannot be read: %v", err)
	}
	for _, o := range j.book.offers {
		if why := j.unsettledOffer(o); why != "" {
			return why
		}
	}
	if len(commands) > 0 {
		return fmt.Sprintf("%d commands wait in the outbox, for shard %s first", len(commands), commands[0].Shard)
	}
	open, err := j.base.ledger.OpenPackets(j.ctx)
	if err != nil {
		return fmt.Sprintf("the open red packets cannot be read: %v", err)
	}
	for _, p := range open {
		if p.Behind {
			return fmt.Sprintf("shares of %s are not credited", p.Campaign.ID)
		}
	}
	return ""
}

// place is where a campaign is, in the ledger and in the engine, shard by shard.
type place struct {
	campaign *dibs.Campaign
	shards   []shardPlace
	past     map[*decided]bool
}

// shardPlace is where a shard is.
type shardPlace struct {
	id     dibs.ShardID
	totals live.ShardTotals
	// open says that the master holds the shard; end is the journal's.
	open        bool
	end         dibs.Cursor
	left, moved int64
	// version is that of the campaign.
	version int64
}

// left is what the ledger has left of the campaign.
func (p *place) left() (units int64) {
	for i := range p.shards {
		units += p.shards[i].totals.StockLeft
	}
	return units
}

// placeOf reads where an offer is.
// The ledger is read before the engine. A settlement in between makes the shard
// look unsettled for one more look, and never the other way round.
func (j *judge) placeOf(o *offer) (p place, err error) {
	if p.campaign, err = j.base.ledger.Campaign(j.ctx, o.id); err != nil {
		return p, err
	}
	for n := range p.campaign.Shards {
		s := shardPlace{id: dibs.ShardID{Campaign: o.number, Shard: uint8(n)}}
		if s.totals, err = j.base.ledger.Totals(j.ctx, s.id); err != nil {
			return p, err
		}
		p.shards = append(p.shards, s)
	}
	v := j.current()
	v.mu.Lock()
	defer v.mu.Unlock()
	p.past = map[*decided]bool{}
	for i := range p.shards {
		at := &p.shards[i]
		if s, err := v.open(at.id, dibs.Cursor{}); err == nil {
			at.open, at.left, at.moved, at.version = true, s.left, s.moved, s.def.version
		}
		stream, _ := v.stream(at.id)
		at.end = stream.end
		for _, d := range v.mem.past[at.id] {
			p.past[d] = true
		}
	}
	return p, nil
}

// sells reports whether everybody agrees that a campaign goes on: clocks differ.
// Five seconds are more than ordinary clocks of nodes and servers differ by.
func (j *judge) sells(p *place) bool {
	return p.campaign.State == dibs.Published && j.now().Add(5*time.Second).Before(p.campaign.EndsAt)
}

func (j *judge) unsettledOffer(o *offer) string {
	p, err := j.placeOf(o)
	if err != nil {
		return fmt.Sprintf("%s cannot be read: %v", o.id, err)
	}
	moved, whole := int64(0), true
	for i := range p.shards {
		s := &p.shards[i]
		if why := j.unsettledShard(&p, s); why != "" {
			return o.id + ": " + why
		}
		moved, whole = moved+s.moved, whole && s.open
	}
	if whole && j.sells(&p) && moved != 0 {
		return fmt.Sprintf("%d units of %s have left their shards, and have not arrived", moved, o.id)
	}
	return j.overdue(o)
}

// unsettledShard says what of a shard is not in its place yet; empty when all is.
func (j *judge) unsettledShard(p *place, s *shardPlace) string {
	switch {
	case j.sells(p) && !s.open:
		return fmt.Sprintf("shard %s is not open", s.id)
	case j.mayWait(p, s):
	case s.totals.Position.Before(s.end):
		return fmt.Sprintf("shard %s is settled to %s of %s", s.id, s.totals.Position, s.end)
	case s.open && j.sells(p) && s.left != s.totals.StockLeft:
		return fmt.Sprintf("the engine has %d left of shard %s, the ledger %d", s.left, s.id, s.totals.StockLeft)
	case s.open && j.sells(p) && s.version != p.campaign.Version:
		return fmt.Sprintf("the engine has version %d of shard %s, the ledger %d", s.version, s.id, p.campaign.Version)
	}
	return ""
}

// mayWait reports whether what is left of a shard may stay in the journal for a while: the
// campaign is over, but not by the clock of a node or server that has to agree. Where the
// ledger went back, a decision comes first, which needs all that the journal has.
func (j *judge) mayWait(p *place, s *shardPlace) bool {
	return s.totals.Position.Before(s.end) && !j.sells(p) && j.clocksWrong() && (!j.wentBack() || j.decided)
}

// overdue names a claim whose time to pay is over and whose stock is not back.
// A claim is overdue only calmFor after its deadline, since nodes look for such
// claims at intervals and by their own clocks.
func (j *judge) overdue(o *offer) string {
	if o.payWithin == 0 {
		return ""
	}
	claims, err := j.claimsOf(o)
	if err != nil {
		return fmt.Sprintf("the claims of %s cannot be read: %v", o.id, err)
	}
	for at, c := range claims {
		if c.Status == dibs.Pending && c.PayBy.Before(j.now().Add(-calmFor)) {
			return fmt.Sprintf("the time to pay %s of %s was over at %s, and its stock is not back", at, o.id, c.PayBy.Format("15:04:05.000"))
		}
	}
	return ""
}

// settledWhileFull waits until everything that was granted is in the ledger while the
// server has no memory: what leads out of that needs none.
// Settling, leases and trimming only free memory; if one of them needed some, the
// server would stay full for good.
func (j *judge) settledWhileFull() {
	var why string
	for since := time.Now(); time.Since(since) < fullFor; j.spend(lookEvery) {
		why = ""
		for _, o := range j.book.offers {
			p, err := j.placeOf(o)
			if err != nil {
				why = err.Error()
			}
			for i := range p.shards {
				if s := &p.shards[i]; s.totals.Position.Before(s.end) {
					why = fmt.Sprintf("shard %s is settled to %s of %s", s.id, s.totals.Position, s.end)
				}
			}
		}
		if why == "" {
			j.story.tell("all is settled while the server is full")
			return
		}
	}
	j.broken("a yes is kept: the server has been full for %s, nothing else is wrong, and %s", fullFor, why)
}

// verify has a node hold the promises against engine and ledger. What comes up meanwhile, such as a
// claim whose time to pay ends just now, may have to wait for the engine: it is asked once more then.
func (j *judge) verify() {
	asked := 0
	for since := time.Now(); ; j.spend(lookEvery) {
		asked++
		broken := j.verifyOnce()
		if len(broken) == 0 {
			return
		}
		why := j.unsettled()
		if asked > 1 && why == "" || time.Since(since) > settleWithin {
			for _, what := range broken {
				j.broken("%s", what)
			}
			return
		}
		j.story.tell("verify is asked once more: %s; %s", broken[0], why)
	}
}

// verifyOnce says what verify finds broken.
func (j *judge) verifyOnce() (broken []string) {
	p := j.saneSite()
	if p == nil {
		return []string{"no node serves"}
	}
	report, err := p.svc.Audit.Verify(j.ctx)
	if err != nil {
		return []string{fmt.Sprintf("verify fails: %v", err)}
	}
	for _, c := range report.Campaigns {
		for _, promise := range c.Promises {
			if !promise.Held {
				broken = append(broken, fmt.Sprintf("%s: %s is not held, says verify: %s", c.CampaignID, promise.Promise, promise.Detail))
			}
		}
	}
	return broken
}

// saneSite returns a process whose clock is about right; nil for none.
func (j *judge) saneSite() *process {
	for _, s := range j.sites {
		if s.skew.Abs() < time.Minute {
			if p := s.running(); p != nil {
				return p
			}
		}
	}
	return nil
}

// lists looks whether every shard of which the engine has something can be
// found: the entries of any other one would be settled by nobody.
// Both maps are looked at: a shard may be held without a journal, and a journal may
// outlive its shard. A load that was broken off, and a retired journal, expire.
func (j *judge) lists() {
	v := j.current()
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, s := range v.mem.shards {
		if v.mem.listed[id] == 0 && s.state != stateLoading {
			j.broken("shard %s is held and not on the list", id)
		}
	}
	for id := range v.mem.journals {
		if stream, _ := v.stream(id); v.mem.listed[id] == 0 && len(stream.entries) > 0 && stream.gone.IsZero() {
			j.broken("shard %s has a journal and is not on the list", id)
		}
	}
}

package simulation

import (
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// settleWithin is how long a healthy fleet may take to get everything settled:
	// what was left of a campaign that is over waits for five minutes.
	settleWithin = 7 * time.Minute
	// fullFor is how long a fleet may take while the server is full.
	fullFor = time.Minute
	// calmFor is how long a fleet is left alone before it is judged.
	calmFor = 4 * time.Second
)

// judge waits for a quiet moment and holds the promises against what the book
// says.
func (w *world) judge() {
	w.keepPaused()
	w.spend(calmFor)
	var why string
	for since := time.Now(); ; w.spend(250 * time.Millisecond) {
		if why = w.unsettled(); why == "" {
			break
		}
		if time.Since(since) > settleWithin || w.wentBack() && time.Since(since) > fullFor {
			break
		}
	}
	if why != "" && !w.wentBack() {
		w.broken("everything has been healed for %s, and %s", settleWithin, why)
		return
	}
	if w.wentBack() && w.noticed(why) {
		w.judgeHalted()
		return
	}
	w.verify()
	for _, o := range w.book.offers {
		w.judgeOffer(o)
	}
	w.judgeLists()
	w.story.tell("the promises have been looked at")
}

// wentBack reports whether the ledger has ever gone back to a dump.
func (w *world) wentBack() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.restored.IsZero()
}

// keepPaused resumes what an admin has left paused.
func (w *world) keepPaused() {
	d := newDice(w.plan.seed, "resume")
	for _, o := range w.book.offers {
		if c, err := w.base.ledger.Campaign(w.ctx, o.id); err == nil && c.State == dibs.PausedState {
			w.resume(w.ctx, d, o)
		}
	}
}

// unsettled says what is not in its place yet; empty when all is.
func (w *world) unsettled() string {
	for _, s := range w.sites {
		p := s.running()
		if p == nil {
			return s.name + " does not serve"
		}
		if h := p.svc.Health(w.ctx); !h.Ready {
			return fmt.Sprintf("%s is not ready: %+v", p.name, h.Dependencies)
		}
	}
	commands, err := w.base.ledger.Commands(w.ctx, 0, 100)
	if err != nil {
		return fmt.Sprintf("the outbox cannot be read: %v", err)
	}
	for _, o := range w.book.offers {
		if why := w.unsettledOffer(o); why != "" {
			return why
		}
	}
	if len(commands) > 0 {
		return fmt.Sprintf("%d commands wait in the outbox, for shard %s first", len(commands), commands[0].Shard)
	}
	open, err := w.base.ledger.OpenPackets(w.ctx)
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

// place is where a shard is, in the ledger and in the engine.
type place struct {
	campaign *dibs.Campaign
	totals   dibs.ShardTotals
	// open says that the master holds the shard; end is the journal's.
	open          bool
	end           dibs.Cursor
	left, granted int64
	entries       int
	past          map[*decided]bool
}

// placeOf reads where an offer is.
func (w *world) placeOf(o *offer) (p place, err error) {
	if p.campaign, err = w.base.ledger.Campaign(w.ctx, o.id); err != nil {
		return p, err
	}
	id := dibs.ShardID{Campaign: o.number}
	if p.totals, err = w.base.ledger.Totals(w.ctx, id); err != nil {
		return p, err
	}
	v := w.current()
	v.mu.Lock()
	defer v.mu.Unlock()
	if s, err := v.open(id, dibs.Cursor{}); err == nil {
		p.open, p.left, p.granted = true, s.left, s.granted
	}
	j, _ := v.stream(id)
	p.end, p.entries = j.end, len(j.entries)
	p.past = make(map[*decided]bool, len(v.mem.past[id]))
	for _, d := range v.mem.past[id] {
		p.past[d] = true
	}
	return p, nil
}

// sells reports whether everybody agrees that a campaign goes on: clocks differ.
func (p *place) sells(w *world) bool {
	return p.campaign.State == dibs.Published && w.now().Add(5*time.Second).Before(p.campaign.EndsAt)
}

func (w *world) unsettledOffer(o *offer) string {
	p, err := w.placeOf(o)
	switch {
	case err != nil:
		return fmt.Sprintf("%s cannot be read: %v", o.id, err)
	case p.sells(w) && !p.open:
		return o.id + " is not open"
	case p.totals.Position.Before(p.end) && !p.sells(w) && w.clocksWrong():
		// Who tidies up may take it for going on.
	case p.totals.Position.Before(p.end):
		return fmt.Sprintf("%s is settled to %s of %s", o.id, p.totals.Position, p.end)
	case p.open && p.sells(w) && p.left != p.totals.StockLeft:
		return fmt.Sprintf("the engine has %d left of %s, the ledger %d", p.left, o.id, p.totals.StockLeft)
	}
	return w.overdue(o)
}

// overdue names a claim whose time to pay is over and whose stock is not back.
func (w *world) overdue(o *offer) string {
	if o.payWithin == 0 {
		return ""
	}
	claims, err := w.claimsOf(o)
	if err != nil {
		return fmt.Sprintf("the claims of %s cannot be read: %v", o.id, err)
	}
	for at, c := range claims {
		if c.Status == dibs.Pending && c.PayBy.Before(w.now().Add(-calmFor)) {
			return fmt.Sprintf("the time to pay %s of %s was over at %s, and its stock is not back", at, o.id, c.PayBy.Format("15:04:05.000"))
		}
	}
	return ""
}

// judgeFull waits until everything that was granted is in the ledger while the
// server has no memory: what leads out of that needs none.
func (w *world) judgeFull() {
	var why string
	for since := time.Now(); time.Since(since) < fullFor; w.spend(250 * time.Millisecond) {
		why = ""
		for _, o := range w.book.offers {
			p, err := w.placeOf(o)
			if err != nil {
				why = err.Error()
			} else if p.totals.Position.Before(p.end) {
				why = fmt.Sprintf("%s is settled to %s of %s", o.id, p.totals.Position, p.end)
			}
		}
		if why == "" {
			w.story.tell("all is settled while the server is full")
			return
		}
	}
	w.broken("a yes is kept: the server has been full for %s, nothing else is wrong, and %s", fullFor, why)
}

// verify has a node hold the promises against engine and ledger.
func (w *world) verify() {
	p := w.saneSite()
	if p == nil {
		w.broken("no node serves")
		return
	}
	report, err := p.svc.Audit.Verify(w.ctx)
	if err != nil {
		w.broken("verify fails: %v", err)
		return
	}
	for _, c := range report.Campaigns {
		for _, promise := range c.Promises {
			if !promise.Held {
				w.broken("%s: %s is not held, says verify: %s", c.CampaignID, promise.Promise, promise.Detail)
			}
		}
	}
}

// saneSite returns a process whose clock is about right; nil for none.
func (w *world) saneSite() *process {
	for _, s := range w.sites {
		if s.skew.Abs() < time.Minute {
			if p := s.running(); p != nil {
				return p
			}
		}
	}
	return nil
}

// judgeLists looks whether every shard of which the engine has something can be
// found: the entries of any other one would be settled by nobody.
func (w *world) judgeLists() {
	v := w.current()
	v.mu.Lock()
	defer v.mu.Unlock()
	for id := range v.mem.shards {
		if v.mem.listed[id] == 0 {
			w.broken("shard %s is held and not on the list", id)
		}
	}
	for id := range v.mem.journals {
		if j, _ := v.stream(id); v.mem.listed[id] == 0 && len(j.entries) > 0 {
			w.broken("shard %s has a journal and is not on the list", id)
		}
	}
}

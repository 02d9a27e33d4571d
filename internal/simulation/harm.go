package simulation

import (
	"context"
	"fmt"
	"time"
)

// replicate copies the master's memory to its replica now and then.
func (w *world) replicate(ctx context.Context, round int) {
	d := newDice(w.plan.seed, fmt.Sprint("replica ", round))
	// Only one of the two locks is held at a time. A master that was replaced in
	// between has no replica any more.
	for w.idle(ctx, d.upTo(w.plan.lag)) {
		v := w.current()
		v.mu.Lock()
		replica := v.mem.clone()
		v.mu.Unlock()
		w.mu.Lock()
		if w.master == v {
			w.replica = replica
		}
		w.mu.Unlock()
	}
}

// harm is what goes wrong in a round, one fault after the other. Its dice are its
// goroutine's.
type harm struct {
	*world
	d *dice
}

// act makes things go wrong, of the kinds that the plan names, until ctx ends.
//
// Most faults end by themselves within 6 s; healing ends the others. A ledger can go back
// to a dump only, so one is made before anything else.
func (h harm) act(ctx context.Context) {
	if len(h.plan.faults) == 0 {
		return
	}
	d := h.d
	var dump string
	if h.plan.has(faultRestore) {
		dump = h.dump()
	}
	for h.idle(ctx, d.upTo(h.plan.gap)) {
		if dump != "" && d.chance(0.2) {
			dump = h.dump()
		}
		kind, last := one(d, h.plan.faults...), d.between(100*time.Millisecond, 6*time.Second)
		s := one(d, h.sites...)
		h.story.tell("FAULT: %s", kind)
		switch kind {
		case faultCrash:
			s.crash()
			h.after(last/2, s.begin)
		case faultFreeze:
			s.freeze(last)
		case faultCut:
			s.cutOff(true)
			h.after(last, func() { s.cutOff(false) })
		case faultSlow:
			h.slow.Store(int64(last))
			h.after(last, func() { h.slow.Store(0) })
		case faultNoLedger:
			h.noLedger.Store(true)
			h.after(last, func() { h.noLedger.Store(false) })
		case faultRestore:
			if h.plan.rack || d.chance(0.5) {
				// All were in one rack: nothing but the server's disk remembers what the
				// ledger has forgotten.
				h.server(faultRestart, last)
				for _, s := range h.sites {
					s.crash()
					h.after(last/2, s.begin)
				}
			}
			h.restore(dump)
		default:
			h.server(kind, last)
		}
	}
}

// server makes something go wrong with the master.
func (h harm) server(kind string, last time.Duration) {
	v, d := h.current(), h.d
	switch kind {
	case faultSleep:
		v.set(&v.frozen, true)
		h.after(last, func() { h.wake(v) })
	case faultFull:
		// Half of the time it stays full until the round is healed, so that the judge
		// sees what a full server still settles.
		v.set(&v.full, true)
		if d.chance(0.5) {
			h.after(last, func() { v.set(&v.full, false) })
		}
	case faultRestart:
		v.set(&v.down, true)
		h.after(last/4, func() { h.bring(v, nil) })
	case faultEmpty:
		v.set(&v.down, true)
		h.after(last/4, func() { h.bring(v, newMemory()) })
	case faultTail:
		v.set(&v.down, true)
		h.after(last/4, func() { h.bring(v, h.copyOf()) })
	// The run stays the same, so only what is missing shows that history was lost.
	case faultFlush:
		v.mu.Lock()
		v.mem = newMemory()
		v.mu.Unlock()
	case faultFailover:
		v.set(&v.down, true)
		h.after(last/4, func() { h.promote(v, nil, 0) })
	case faultFork:
		// Some nodes do not learn of it for a while.
		stay := map[*site]bool{}
		for _, s := range h.sites {
			stay[s] = d.chance(0.5)
		}
		h.promote(v, stay, last)
	}
}

// copyOf is what the replica has.
func (h harm) copyOf() *memory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.replica.clone()
}

// bring has a server that was down answer again, with another memory, or nil for the
// one that it had.
func (w *world) bring(v *server, mem *memory) {
	v.restart(mem)
	v.set(&v.down, false)
	w.story.tell("%s is up again", v.name)
}

// promote makes the replica of a master the new one. Those that stay go on with
// the old one for a while, which is stopped then.
// A fault that comes while another promotion is under way changes nothing.
func (h harm) promote(old *server, stay map[*site]bool, last time.Duration) {
	if h.current() != old {
		return
	}
	mem := h.copyOf()
	v := h.newServer(mem)
	h.mu.Lock()
	h.master = v
	h.mu.Unlock()
	h.story.tell("%s is promoted", v.name)
	for _, s := range h.sites {
		if !stay[s] {
			s.move(v)
		}
	}
	h.after(last, func() {
		old.set(&old.down, true)
		for _, s := range h.sites {
			s.move(h.current())
		}
		h.story.tell("%s is gone for good", old.name)
	})
}

// dump keeps the ledger as it is.
func (h harm) dump() string {
	path, err := h.base.dump(h.ctx)
	if err != nil {
		h.broken("the ledger cannot be dumped: %v", err)
	}
	h.story.tell("ledger: dumped")
	return path
}

// restore brings the ledger back to a dump.
func (h harm) restore(dump string) {
	if err := h.base.restore(h.ctx, dump); err != nil {
		h.broken("the ledger cannot be restored: %v", err)
	}
	h.mu.Lock()
	h.restored = true
	h.mu.Unlock()
	h.story.tell("ledger: restored")
}

// heal ends all that goes wrong and waits for what is under way. It calls whileFull while
// the server is full and all else is healed, if it is.
//
// calm is set first: faults that are to end later find it and do nothing. Calls that
// are carried out late are waited for, so that none changes anything while the judge
// looks.
func (w *world) heal(whileFull func()) {
	w.calm.Store(true)
	w.slow.Store(0)
	w.noLedger.Store(false)
	v := w.current()
	v.mu.Lock()
	down, full := v.down, v.full
	v.mu.Unlock()
	if down {
		w.bring(v, nil)
	}
	w.mu.Lock()
	servers := w.servers
	w.mu.Unlock()
	for _, other := range servers {
		w.wake(other)
		if other != v {
			other.set(&other.down, true)
		}
	}
	for _, s := range w.sites {
		s.cutOff(false)
		s.freeze(0)
		s.move(v)
		s.begin()
	}
	for w.inFlight.Load() > 0 {
		w.spend(100 * time.Millisecond)
	}
	if full && !w.plan.losesHistory() && !w.wentBack() {
		w.story.tell("everything is healed, but the server is full")
		whileFull()
	}
	v.set(&v.full, false)
	w.story.tell("everything is healed")
}

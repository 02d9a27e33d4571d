package simulation

import (
	"context"
	"fmt"
	"time"
)

// replicate copies the master's memory to its replica now and then.
func (w *world) replicate(ctx context.Context, round int) {
	d := newDice(w.plan.seed, fmt.Sprint("replica ", round))
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

// idle waits; false when ctx ended first.
func (w *world) idle(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// harm makes things go wrong, of the kinds that the plan names.
func (w *world) harm(ctx context.Context, round int) {
	if len(w.plan.faults) == 0 {
		return
	}
	d := newDice(w.plan.seed, fmt.Sprint("harm ", round))
	var dump string
	for w.idle(ctx, d.upTo(w.plan.gap)) {
		if w.plan.has(faultRestore) && (dump == "" || d.chance(0.2)) {
			dump = w.dump()
		}
		kind, last := one(d, w.plan.faults...), d.between(100*time.Millisecond, 6*time.Second)
		s := one(d, w.sites...)
		w.story.tell("FAULT: %s", kind)
		switch kind {
		case faultCrash:
			s.crash()
			w.after(last/2, s.begin)
		case faultFreeze:
			s.freeze(last)
		case faultCut:
			s.cutOff(true)
			w.after(last, func() { s.cutOff(false) })
		case faultSlow:
			w.slow.Store(int64(last))
			w.after(last, func() { w.slow.Store(0) })
		case faultNoLedger:
			w.noLedger.Store(true)
			w.after(last, func() { w.noLedger.Store(false) })
		case faultRestore:
			if d.chance(0.5) {
				// Both were in one rack.
				w.harmServer(d, faultRestart, last)
			}
			w.restore(dump)
		default:
			w.harmServer(d, kind, last)
		}
	}
}

// harmServer makes something go wrong with the master.
func (w *world) harmServer(d *dice, kind string, last time.Duration) {
	v := w.current()
	switch kind {
	case faultSleep:
		v.set(&v.frozen, true)
		w.after(last, func() { w.wake(v) })
	case faultFull:
		v.set(&v.full, true)
		if d.chance(0.5) {
			w.after(last, func() { v.set(&v.full, false) })
		}
	case faultRestart:
		v.set(&v.down, true)
		w.after(last/4, func() { w.bring(v, nil) })
	case faultEmpty:
		v.set(&v.down, true)
		w.after(last/4, func() { w.bring(v, newMemory()) })
	case faultTail:
		v.set(&v.down, true)
		w.after(last/4, func() { w.bring(v, w.copyOf()) })
	case faultFlush:
		v.mu.Lock()
		v.mem = newMemory()
		v.mu.Unlock()
	case faultFailover:
		v.set(&v.down, true)
		w.after(last/4, func() { w.promote(v, nil, 0) })
	case faultFork:
		// Some nodes do not learn of it for a while.
		stay := map[*site]bool{}
		for _, s := range w.sites {
			stay[s] = d.chance(0.5)
		}
		w.promote(v, stay, last)
	}
}

// copyOf is what the replica has.
func (w *world) copyOf() *memory {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replica.clone()
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
func (w *world) promote(old *server, stay map[*site]bool, last time.Duration) {
	if w.current() != old {
		return
	}
	mem := w.copyOf()
	v := w.newServer(mem)
	w.mu.Lock()
	w.master = v
	w.mu.Unlock()
	w.story.tell("%s is promoted", v.name)
	for _, s := range w.sites {
		if !stay[s] {
			s.move(v)
		}
	}
	w.after(last, func() {
		old.set(&old.down, true)
		for _, s := range w.sites {
			s.move(w.current())
		}
		w.story.tell("%s is gone for good", old.name)
	})
}

// after does something later, unless everything has been healed by then.
func (w *world) after(d time.Duration, do func()) {
	w.running.Go(func() {
		<-time.After(d)
		if !w.calm.Load() {
			do()
		}
	})
}

// freeze makes what runs at a site stand still.
func (s *site) freeze(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thaw = time.Now().Add(d)
}

func (s *site) cutOff(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

func (s *site) move(to *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = to
}

// dump keeps the ledger as it is.
func (w *world) dump() string {
	path, err := w.base.dump(w.ctx)
	if err != nil {
		w.broken("the ledger cannot be dumped: %v", err)
	}
	w.mu.Lock()
	w.dumped = time.Now()
	w.mu.Unlock()
	w.story.tell("ledger: dumped")
	return path
}

// restore brings the ledger back to a dump.
func (w *world) restore(dump string) {
	if err := w.base.restore(w.ctx, dump); err != nil {
		w.broken("the ledger cannot be restored: %v", err)
	}
	w.mu.Lock()
	w.restored = time.Now()
	w.mu.Unlock()
	w.story.tell("ledger: restored")
}

// heal ends all that goes wrong and waits for what is under way.
func (w *world) heal() {
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
		w.judgeFull()
	}
	v.set(&v.full, false)
	w.story.tell("everything is healed")
}

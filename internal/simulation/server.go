package simulation

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// The refusals of a server's scripts that a node's engine acts on.
var (
	errAbsent = fmt.Errorf("the shard is absent: %w", dibs.ErrNotOpen)
	errShut   = fmt.Errorf("the shard is not open: %w", dibs.ErrNotOpen)
	errBehind = errors.New("the server is behind what the node has seen")
	errLate   = errors.New("the request came after its deadline")
	errTooNew = errors.New("the command is of an epoch that is not open yet")
	errFull   = errors.New("OOM command not allowed when used memory > 'maxmemory'")
	errTaken  = errors.New("another load has taken over")
)

// server is one Redis: a memory, a run, a clock. Its methods are scripts; each is
// one step, for which the caller holds the lock.
//
// mu guards run, mem and the faults. A script runs whole or not at all, as in Redis:
// checks come first, and nothing fails after the first write.
type server struct {
	scene *scene
	name  string
	// skew is by how much its clock is ahead.
	skew time.Duration

	mu  sync.Mutex
	run string
	mem *memory
	// down, full and frozen are faults. A frozen server answers once it wakes up.
	down, full, frozen bool
}

// now is the server's clock, in milliseconds since 1970.
func (v *server) now() int64 { return v.scene.now().Add(v.skew).UnixMilli() }

// restart gives the server a new run, with another memory unless that is nil.
func (v *server) restart(mem *memory) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if mem != nil {
		v.mem = mem
	}
	v.run = v.scene.newRun(v.name)
}

// set changes a fault.
func (v *server) set(fault *bool, on bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	*fault = on
}

// open returns an open shard, as shard.lua does.
func (v *server) open(id dibs.ShardID, seen dibs.Cursor) (*shard, error) {
	s := v.mem.shards[id]
	switch {
	case s == nil:
		return nil, errAbsent
	case s.state != stateOpen || s.run != v.run:
		return nil, errShut
	case s.head.Before(seen):
		return nil, errBehind
	}
	return s, nil
}

// needs fails when there is no memory for a write.
func (v *server) needs() error {
	if v.full {
		return dibs.Unavail(dibs.EffectNone, errFull)
	}
	return nil
}

// write appends an entry to the journal at the shard's next place.
// A place that does not lie behind the journal's end would be given twice. It means
// that a node opened an epoch that it should not have.
func (v *server) write(id dibs.ShardID, s *shard, e dibs.Entry, r *request) error {
	j := v.journalOf(id)
	e.Cursor = dibs.Cursor{Epoch: s.head.Epoch, Seq: s.head.Seq + 1}
	if !j.end.Before(e.Cursor) {
		return fmt.Errorf("entry %s after %s: %w", e.Cursor, j.end, dibs.ErrCorrupt)
	}
	d := &decided{Entry: e, request: r, on: time.Now()}
	j.entries, j.end, j.gone = append(j.entries, d), e.Cursor, time.Time{}
	v.mem.past[id] = append(v.mem.past[id], d)
	s.head, s.headAt = e.Cursor, e.At
	v.scene.book.decide(id, d)
	return nil
}

// journalOf returns a shard's journal for writing.
func (v *server) journalOf(id dibs.ShardID) *journal {
	j, there := v.stream(id)
	if !there {
		v.mem.journals[id] = j
	}
	return j
}

// stream returns a shard's journal for reading, an empty one when there is none.
func (v *server) stream(id dibs.ShardID) (j *journal, there bool) {
	j = v.mem.journals[id]
	if j == nil || !j.gone.IsZero() && !v.scene.now().Before(j.gone) {
		return &journal{}, false
	}
	return j, true
}

// release is release.lua.
func (v *server) release(r dibs.Release, seen dibs.Cursor) error {
	s, err := v.open(r.Claim.ShardID, seen)
	switch {
	case err != nil:
		return err
	case r.Epoch < s.head.Epoch:
		return dibs.ErrStale
	case r.Epoch > s.head.Epoch:
		return dibs.Unavail(dibs.EffectNone, errTooNew)
	}
	h := s.claims[r.Claim.Cursor]
	if h == nil {
		return dibs.ErrNotFound
	}
	if h.Released {
		return nil
	}
	if err := v.needs(); err != nil {
		return err
	}
	if err := v.write(r.Claim.ShardID, s, dibs.Entry{
		Kind: dibs.EntryRelease, At: v.now(), Quantity: h.Quantity, Items: h.Items, Target: h.Cursor,
	}, nil); err != nil {
		return err
	}
	h.Released = true
	s.left, s.granted, s.free = s.left+h.Quantity, s.granted-h.Quantity, append(s.free, h.Items...)
	v.scene.story.tell("%s: %s of %s is released, %d left", v.name, h.Cursor, h.UserID, s.left)
	return nil
}

// adjust is adjust.lua.
func (v *server) adjust(a dibs.Adjustment, seen dibs.Cursor) error {
	s, err := v.open(a.Shard, seen)
	if err != nil {
		return err
	}
	if s.refs[a.Ref] {
		return nil
	}
	switch {
	case (a.Delta > 0 || a.Epoch > 0) && a.Epoch < s.head.Epoch:
		return dibs.ErrStale
	case (a.Delta > 0 || a.Epoch > 0) && a.Epoch > s.head.Epoch:
		return dibs.Unavail(dibs.EffectNone, errTooNew)
	case s.left+a.Delta < 0:
		return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "there is not so much left"})
	case len(a.Items) > 0 && a.Numbers == nil && int(a.FirstItem) != len(s.values):
		return dibs.Unavail(dibs.EffectNone, dibs.ErrGap)
	}
	if err := v.needs(); err != nil {
		return err
	}
	e := dibs.Entry{Kind: dibs.EntryAdjust, At: v.now(), Quantity: a.Delta, Ref: a.Ref}
	if s.def.items && a.Delta < 0 {
		e.Items = slices.Clone(s.free[len(s.free)+int(a.Delta):])
	}
	for i := range a.Items {
		e.Items = append(e.Items, a.Number(i))
	}
	if err := v.write(a.Shard, s, e, nil); err != nil {
		return err
	}
	if a.Delta < 0 {
		s.take(e.Items)
	} else {
		s.free, s.values = append(s.free, e.Items...), slices.Clone(s.values)
		for i, value := range a.Items {
			for len(s.values) <= int(a.Number(i)) {
				s.values = append(s.values, "")
			}
			s.values[a.Number(i)] = value
		}
	}
	s.left += a.Delta
	s.refs[a.Ref] = true
	if _, ok := dibs.TransferOf(a.Ref); ok {
		s.moved -= a.Delta
	}
	v.scene.story.tell("%s: stock of %s by %+d (%s), %d left", v.name, a.Shard, a.Delta, a.Ref, s.left)
	return nil
}

var errUndivided = dibs.Unavail(dibs.EffectNone, errors.New("simulation: the shard goes by more shards"))

// configure is configure.lua.
func (v *server) configure(c *dibs.Campaign, id dibs.ShardID, seen dibs.Cursor) error {
	s, err := v.open(id, seen)
	if err != nil || c.Version < s.def.version {
		return err
	}
	if c.Shards < s.def.shards {
		return errUndivided
	}
	// The time to pay never changes once a campaign is published.
	payIn := s.def.payInMS
	s.def = define(c)
	s.def.payInMS = payIn
	return nil
}

// expel is expel.lua.
// It checks again: another node may have loaded the shard since, in an epoch that has
// what this one has seen.
func (v *server) expel(id dibs.ShardID, seen dibs.Cursor) {
	if s, err := v.open(id, seen); s == nil && errors.Is(err, errBehind) {
		v.mem.shards[id].state = stateShut
		v.scene.story.tell("%s: shard %s is shut: a node has seen %s", v.name, id, seen)
	}
}

// halt is halt.lua.
func (v *server) halt(id dibs.ShardID) {
	if s := v.mem.shards[id]; s != nil && s.state == stateOpen {
		s.state = stateShut
		v.scene.story.tell("%s: shard %s is halted", v.name, id)
	}
}

// retireGrace is how long after its window, by the server's clock, a campaign
// stays; keepRetired is how long a retired shard's journal does.
const (
	retireGrace = time.Minute
	keepRetired = 24 * time.Hour
)

// retire is retire.lua.
func (v *server) retire(id dibs.ShardID, process string) error {
	s := v.mem.shards[id]
	switch l := v.mem.leases[id]; {
	case s == nil:
		return errAbsent
	case s.state == stateLoading && v.scene.planted.LoadsStay:
		return errShut
	case s.state == stateLoading && l.holder != process && v.scene.now().Before(l.until):
		return dibs.Unavail(dibs.EffectNone, errTaken)
	case s.state == stateLoading:
	case s.state == stateOpen && s.run == v.run && s.def.state != dibs.EndedState && v.now() < s.def.endsMS+retireGrace.Milliseconds():
		return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign goes on by the server's clock"})
	}
	delete(v.mem.shards, id)
	delete(v.mem.leases, id)
	if j, there := v.stream(id); there {
		j.gone = v.scene.now().Add(keepRetired)
	}
	v.scene.story.tell("%s: shard %s is retired", v.name, id)
	return nil
}

// lease is lease.lua.
func (v *server) lease(id dibs.ShardID, process string, settled dibs.Cursor) (bool, error) {
	l, now := v.mem.leases[id], v.scene.now()
	if l.holder != process && now.Before(l.until) {
		return false, nil
	}
	if v.scene.planted.LeaseNeedsMemory {
		if err := v.needs(); err != nil {
			return false, err
		}
	}
	if l.holder != process {
		v.scene.story.tell("%s: %s has the lease of %s", v.name, process, id)
	}
	v.mem.leases[id] = lease{process, now.Add(dibs.LeaseTime)}
	if s := v.mem.shards[id]; s != nil && s.state == stateOpen && settled != (dibs.Cursor{}) {
		s.settled = settled
	}
	return true, nil
}

// unlease is unlease.lua.
func (v *server) unlease(process string) {
	for id, l := range v.mem.leases {
		if l.holder == process {
			delete(v.mem.leases, id)
		}
	}
}

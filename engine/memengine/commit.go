package memengine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// maxBatch bounds the entries that wait for one commit of a shard. It bounds the
	// memory of a batch while the store stands still; claims beyond it are refused as
	// overloaded, and had no effect.
	maxBatch = 1 << 16
	// retryAfter is what refused callers are told.
	retryAfter = time.Second
	// readBackMin and readBackMax bound the pause between attempts to read back
	// what a failed commit did.
	readBackMin = 10 * time.Millisecond
	readBackMax = time.Second
	// readBackPatience is how long callers wait for it before they are told
	// that the effect is unknown.
	readBackPatience = 3 * time.Second
)

// batch is the entries of one shard that are committed together. Every caller whose
// answer depends on them waits on done; err is set before it closes.
//
// While it is the shard's cur the shard's mutex guards it. Once it is in flight it takes
// no more entries, and the committer alone writes err and told and closes done, once.
// buf is the journal's row; ops and records say how the batch is undone.
type batch struct {
	done    chan struct{}
	err     error
	told    bool // done is closed; the committer's
	began   time.Time
	buf     []byte
	baseMS  int64
	lastMS  int64
	first   uint32
	entries int
	records uint32 // the shard's record count before the batch
	ops     []op   // what undo has to reverse besides grants
}

// tell answers all callers that wait, the first time it is called. The committer calls
// it, with no mutex held: a caller goes on at once.
func (b *batch) tell(err error) {
	if b == nil || b.told {
		return
	}
	b.told, b.err = true, err
	close(b.done)
}

// op is a step that undo reverses. records tells where among the grants it
// stood.
// A grant needs no op: undo finds it as the newest record.
type op struct {
	kind    dibs.EntryKind
	records uint32
	record  uint32   // release: which
	delta   int64    // adjust
	ref     string   // adjust
	values  int      // adjust: item values added
	items   []uint32 // adjust: items withdrawn
}

// commitLoop is the one goroutine that writes to the store.
func (e *Engine) commitLoop() {
	defer close(e.stopped)
	for {
		var again <-chan time.Time
		if e.fault.Load() != nil {
			again = time.After(probeEvery)
		}
		select {
		case <-again:
			e.probe()
			continue
		case <-e.kick:
		case <-e.stop:
			// A claim is decided before this and is in the last commit, or finds the
			// shard replaced and is refused: nothing is left behind.
			for _, v := range e.shards.Range {
				s := v.(*shard)
				s.mu.Lock()
				s.replaced = true
				s.mu.Unlock()
			}
			e.commitAll()
			return
		}
		e.commitAll()
	}
}

// After a failed commit the store is asked every probeEvery whether it can be written
// to again, unless a commit tells it; a claim waits for that no longer than
// probePatience.
const (
	probeEvery    = time.Second
	probePatience = time.Second
)

// probe forgets the failed commit when the store can be written to again. No commit
// would find that out: a load balancer sends no claims to a node that is not ready.
// The committer calls it, so no commit is under way.
func (e *Engine) probe() {
	ctx, cancel := context.WithTimeout(context.Background(), probePatience)
	defer cancel()
	if e.store.Reopen(ctx) == nil {
		e.fault.Store(nil)
	}
}

// commitAll commits until nothing waits.
// Only the committer calls it. Batches that fill while it writes are taken in its
// next turn.
func (e *Engine) commitAll() {
	for {
		// Let the callers that are ready now join the batch: no timer, and
		// nothing to wait for when there are none.
		runtime.Gosched()
		shards := e.takeDirty()
		if len(shards) > 0 {
			e.commit(shards)
			continue
		}
		return
	}
}

// takeDirty swaps the batches of all shards that have one into flight. From then on
// until complete or undo a shard collects entries in a new batch, behind the
// one in flight: at most two batches of a shard are not durable.
func (e *Engine) takeDirty() []*shard {
	e.dirtyMu.Lock()
	shards := e.dirtyShards
	e.dirtyShards = e.dirtySpare[:0]
	e.dirtySpare = shards
	e.dirtyMu.Unlock()
	rows, inFlight := e.rows[:0], shards[:0]
	for _, s := range shards {
		s.mu.Lock()
		s.inFlight, s.cur, s.dirty = s.cur, nil, false
		b := s.inFlight
		if b == nil {
			// An undo took the batch back after the shard was listed.
			s.mu.Unlock()
			continue
		}
		// It writes over the list that it reads, never ahead of it.
		inFlight = append(inFlight, s)
		if !b.began.IsZero() {
			e.stats.Queued.Since(b.began)
		}
		e.stats.Batches.Observe(int64(b.entries))
		b.buf = sealPayload(b.buf)
		rows = append(rows, dibs.JournalRow{
			Shard: s.id, Epoch: s.epoch, First: b.first, Last: b.first + uint32(b.entries) - 1,
			At: b.lastMS, Payload: b.buf,
		})
		s.mu.Unlock()
	}
	e.rows = rows
	return inFlight
}

// commit writes the batches in flight of shards and answers their waiters.
func (e *Engine) commit(shards []*shard) {
	began := time.Now()
	// The rows of all shards are one transaction, so they are stored together or not
	// at all. A commit has no deadline of its own: giving up would only make its
	// effect unknown.
	err := e.store.Append(context.Background(), e.generation, e.rows)
	e.stats.Durable.Since(began)
	if err != nil {
		e.stats.Lost.Add(1)
		e.log.Error("journal commit failed", "err", err, "shards", len(shards))
		e.fault.Store(&err)
		e.resolveFailure(shards, err)
		return
	}
	e.fault.Store(nil)
	for _, s := range shards {
		s.complete()
	}
	wait.Kick(e.appended)
}

// complete marks the batch in flight durable and lets its waiters go. The shard
// decides again by then: a caller that was told of a batch finds it in every answer.
func (s *shard) complete() {
	s.mu.Lock()
	s.frozen = nil
	b := s.inFlight
	s.durable = dibs.Cursor{Epoch: s.epoch, Seq: b.first + uint32(b.entries) - 1}
	s.durableAt = b.lastMS
	s.inFlight = nil
	if s.spare == nil {
		s.spare = b.buf
	}
	s.mu.Unlock()
	b.tell(nil)
}

// resolveFailure finds out what a failed commit did before any caller is answered:
// it freezes the shards, reads the last stored place back, then keeps or
// undoes. A store that is sure that nothing was stored is believed.
func (e *Engine) resolveFailure(shards []*shard, cause error) {
	frozen := dibs.Unavail(dibs.EffectNone, cause)
	for _, s := range shards {
		s.mu.Lock()
		s.frozen = frozen
		s.mu.Unlock()
	}
	fenced := errors.Is(cause, dibs.ErrFenced)
	var sure *dibs.Error
	if fenced || errors.As(cause, &sure) && sure.Effect == dibs.EffectNone {
		if fenced {
			// Another process owns the journal: the shards stay frozen for good. A claim
			// that comes once a caller has its answer meets the fence.
			e.fence(frozen)
		}
		for _, s := range shards {
			e.undo(s, frozen, fenced)
		}
		return
	}
	for _, s := range shards {
		e.findOut(s, frozen)
	}
}

// findOut reads the journal back until it knows what became of the
// batch in flight. Callers do not wait for it longer than readBackPatience.
// The shard stays frozen meanwhile, so nothing follows a batch of which nobody knows
// whether it is stored.
func (e *Engine) findOut(s *shard, refused error) {
	pause, since := readBackMin, time.Now()
	for {
		last, err := e.readBack(s.id)
		if err == nil {
			e.resolve(s, last, refused)
			return
		}
		e.log.Error("reading the journal back failed", "shard", s.id.String(), "err", err)
		unknown := dibs.Unavail(dibs.EffectUnknown, err)
		if time.Since(since) > readBackPatience {
			s.tellWaiters(unknown)
		}
		select {
		// The next process that has the journal replays what was stored.
		case <-e.stop:
			s.tellWaiters(unknown)
			return
		case <-time.After(pause):
			pause = min(2*pause, readBackMax)
		}
	}
}

// tellWaiters answers all callers that wait for a batch of the shard; what became
// of the batches is found out later, or by the next process.
// Telling twice does nothing, so a later complete or undo may tell again.
func (s *shard) tellWaiters(unknown error) {
	s.mu.Lock()
	cur, inFlight := s.cur, s.inFlight
	s.mu.Unlock()
	cur.tell(unknown)
	inFlight.tell(unknown)
}

// readBack asks the store for the last place that it has of a shard, over a new
// connection: what the failed one still holds in flight cannot arrive afterwards.
func (e *Engine) readBack(id dibs.ShardID) (dibs.Cursor, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.store.Reopen(ctx); err != nil {
		return dibs.Cursor{}, err
	}
	return e.store.Last(ctx, id)
}

// resolve keeps or undoes the batch in flight by what the store has.
func (e *Engine) resolve(s *shard, last dibs.Cursor, refused error) {
	s.mu.Lock()
	b := s.inFlight
	end := dibs.Cursor{Epoch: s.epoch, Seq: b.first + uint32(b.entries) - 1}
	s.mu.Unlock()
	// A batch is one row: the store has all of it or nothing.
	if last.Before(end) {
		e.undo(s, refused, false)
	} else {
		s.complete()
	}
}

// undo takes everything that is not durable back, newest first, and tells its
// waiters that nothing happened. The shard decides again by then, unless it
// stays frozen for good.
func (e *Engine) undo(s *shard, refused error, forGood bool) {
	s.mu.Lock()
	if !forGood {
		s.frozen = nil
	}
	cur, inFlight := s.cur, s.inFlight
	s.cur, s.inFlight = nil, nil
	for _, b := range []*batch{cur, inFlight} {
		if b == nil {
			continue
		}
		for i := len(b.ops) - 1; i >= 0; i-- {
			s.popTo(b.ops[i].records, e.hashBytes)
			s.reverse(&b.ops[i], e.hashBytes)
		}
		s.popTo(b.records, e.hashBytes)
	}
	// cur's places follow those of inFlight: both are free again.
	s.seq = inFlight.first - 1
	s.mu.Unlock()
	cur.tell(refused)
	inFlight.tell(refused)
}

// popTo takes grants back until n records are left.
// The caller holds s.mu.
func (s *shard) popTo(n uint32, hashOf func([]byte) uint64) {
	for s.h.n > n {
		last := s.h.at(s.h.n - 1)
		if numbers := s.h.items(s.h.n - 1); len(numbers) > 0 {
			// The cells before head still hold what was granted from them.
			s.head -= len(numbers)
			s.h.itemNumbers = s.h.itemNumbers[:len(s.h.itemNumbers)-len(numbers)]
		}
		r := s.h.pop(hashOf(s.h.userBytes(last.user)))
		s.granted -= int64(r.quantity)
		s.remaining.Add(int64(r.quantity))
	}
}

// reverse takes one step back that was not a grant.
// The caller holds s.mu, and has taken back all grants that came after the step.
func (s *shard) reverse(o *op, hashOf func([]byte) uint64) {
	switch o.kind {
	case dibs.EntryRelease:
		s.free = s.free[:len(s.free)-len(s.h.items(o.record))]
		s.setReleased(o.record, false, hashOf)
	case dibs.EntryAdjust:
		delete(s.refs, o.ref)
		s.remaining.Add(-o.delta)
		s.values = s.values[:len(s.values)-o.values]
		if o.delta > 0 {
			s.free = s.free[:len(s.free)-o.values]
		}
		s.free = append(s.free, o.items...)
	default:
		panic(fmt.Sprintf("memengine: no way back from entry kind %d", o.kind))
	}
}

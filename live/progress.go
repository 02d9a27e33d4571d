package live

import (
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// progress is how far one shard has been settled, and which callers wait for more.
//
// mu guards every field, and is held for no request. position only moves within one
// fence: what was read under another one says nothing (moveTo). moved is closed each
// time that position moves or settling halts for good, so a caller takes it under mu
// before it looks. At most one goroutine has follower set.
type progress struct {
	mu                sync.Mutex
	fence             uint16        // the shard's epoch in the ledger when this node opened it; 0 outside
	position          dibs.Cursor   // committed in the ledger
	wanted            dibs.Cursor   // a caller waits until this is
	moved             chan struct{} // closed and replaced when position moves
	lastErr           error         // why the last attempt failed
	attempts          int           // attempts that were noted, those that succeeded too
	oldest            int64         // nothing that waits was decided before this, in ms by the engine's clock; 0 when unknown
	askedAt           int64         // when the journal was asked for the oldest entry, by the same clock
	follower          bool          // a goroutine asks the ledger where the position is
	unitsMissingSince time.Time     // since when the ledger lacks what left another shard; zero when it does not
}

// at is how far the ledger is.
func (p *progress) at() dibs.Cursor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position
}

// fenced is where the next batch begins, and the epoch that it is read under.
func (p *progress) fenced() (fence uint16, position dibs.Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fence, p.position
}

// enter notes the epoch that this node has opened, and where the ledger is in it.
func (p *progress) enter(fence uint16, to dibs.Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fence == fence && to.Before(p.position) {
		// It was read before this node settled on.
		to = p.position
	}
	if p.fence != fence {
		// Another server may decide now, whose clock is another one.
		p.oldest, p.askedAt = 0, 0
	}
	p.fence = fence
	p.moveToLocked(to)
}

// leave notes that the epoch which this node had opened is over; false when it has
// opened another one since.
func (p *progress) leave(fence uint16) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.fence == fence
	if left {
		p.fence = 0
	}
	return left
}

// moveTo notes that this node has settled what it read under a fence, up to an entry. After
// this node has opened a later epoch that says nothing any more.
func (p *progress) moveTo(fence uint16, last *dibs.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fence == fence {
		if last.At != 0 {
			p.oldest = last.At
		}
		p.moveToLocked(last.Cursor)
	}
}

// moveFrom is moveTo for what was read while this node was at a place, unless it
// has moved on.
func (p *progress) moveFrom(fence uint16, from, to dibs.Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fence == fence && p.position == from {
		p.moveToLocked(to)
	}
}

// measure returns how much waits to be settled by what the engine counted. It takes over
// how far other nodes have settled the epoch that this node has opened. For a shard that
// this node settles, it knows better.
func (p *progress) measure(st *dibs.ShardStats, settles bool) (backlog int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !settles && p.position.Before(st.Settled) && st.Settled.Epoch == st.Head.Epoch && st.Head.Epoch == p.fence {
		p.moveToLocked(st.Settled)
	}
	backlog = backlogOf(p.position, st.Head)
	if backlog == 0 {
		// All is settled, although this node may have failed to.
		p.lastErr = nil
		if st.Queued == 0 {
			p.oldest = st.Now
		} else {
			// What waits for its commit was decided before now, after the last look that saw
			// nothing wait, and after the last entry.
			p.oldest = min(st.Now, max(p.oldest, st.HeadAt))
		}
	}
	return backlog
}

func (p *progress) moveToLocked(to dibs.Cursor) {
	p.position, p.lastErr, p.unitsMissingSince = to, nil, time.Time{}
	p.wakeLocked()
}

// wakeLocked wakes all callers that wait for the shard to be settled.
func (p *progress) wakeLocked() {
	close(p.moved)
	p.moved = make(chan struct{})
}

// noteAttempt counts an attempt to settle or to open the shard, and notes why it failed; nil when it did not.
func (p *progress) noteAttempt(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastErr = err
	p.attempts++
	if errors.Is(err, ErrNotLeft) && p.unitsMissingSince.IsZero() {
		p.unitsMissingSince = time.Now()
	}
	if permanent(err) {
		p.wakeLocked()
	}
}

// leftWithin is how long the ledger may lack what left another shard. That shard's journal
// brings it, unless it has lost it as well.
const leftWithin = 30 * time.Second

// waitedTooLong reports whether the ledger has lacked it for longer than leftWithin.
func (p *progress) waitedTooLong() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.unitsMissingSince.IsZero() && time.Since(p.unitsMissingSince) > leftWithin
}

// failure returns how many attempts were noted, and why the last one failed; nil when
// it did not.
func (p *progress) failure() (attempts int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts, p.lastErr
}

// standing is what a caller learns that waits for a place.
type standing struct {
	// reached says that the place is settled, halted that settling has halted for good.
	reached, halted bool
	// moved is closed when the position moves or settling halts.
	moved <-chan struct{}
	// err is why the last attempt failed; nil when it did not.
	err error
}

// wait notes that a caller waits for a place, unless it is reached or settling has
// halted. It counts as halted only once it was tried again since the caller came, when
// failure returned the attempts.
func (p *progress) wait(place dibs.Cursor, attempts int) standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := standing{moved: p.moved, err: p.lastErr}
	switch {
	case !p.position.Before(place):
		w.reached = true
	case permanent(p.lastErr) && p.attempts > attempts:
		w.halted = true
	case p.wanted.Before(place):
		p.wanted = place
	}
	return w
}

// want is the furthest place that a caller has waited for.
func (p *progress) want() dibs.Cursor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// isWanted reports whether a caller waits for a place that can be reached.
func (p *progress) isWanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position.Before(p.wanted) && !permanent(p.lastErr)
}

// follow reports whether the caller is to begin a goroutine that asks the ledger for
// the position: a place is waited for, and no goroutine asks yet.
func (p *progress) follow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	begin := p.position.Before(p.wanted) && !p.follower
	p.follower = p.follower || begin
	return begin
}

// followOn reports whether the goroutine goes on, which it may: a place is still waited
// for. When it returns false, another goroutine may begin.
func (p *progress) followOn(may bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follower = may && p.position.Before(p.wanted)
	return p.follower
}

// A lag up to roughLag, in ms, may be too long. Beyond it the journal is asked for the oldest
// entry, once in as long at most.
const roughLag = 1000

// asks reports whether the journal is to be asked for the oldest entry that waits, which is
// the next after a place: what is known else may make the lag too long.
func (p *progress) asks(st *dibs.ShardStats) (after dibs.Cursor, ask bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The clock may have been set back since: then what is known says nothing.
	age, since := st.Now-p.oldest, st.Now-p.askedAt
	if ask = p.position.Before(st.Head) && (age > roughLag || age < 0) && (since >= roughLag || since < 0); ask {
		p.askedAt = st.Now
	}
	return p.position, ask
}

// found notes the oldest entry that waited at a place.
func (p *progress) found(after dibs.Cursor, e *dibs.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.position == after && e.At != 0 {
		p.oldest = e.At
	}
}

// lagMS is how long the oldest entry has waited that is not settled, in ms, when the
// engine's clock says now. It is too long by no more than roughLag, or by the time since the
// last look. While nothing is known of the oldest, it is the wait of the newest.
func (p *progress) lagMS(st *dibs.ShardStats, now int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.position.Before(st.Head) {
		return 0
	}
	oldest := p.oldest
	if oldest == 0 || backlogOf(p.position, st.Head) == 1 && p.position.Epoch == st.Head.Epoch {
		oldest = st.HeadAt
	}
	return max(now-oldest, 0)
}

// permanent reports whether settling has halted until an administrator acts: no
// caller has to wait for it.
func permanent(err error) bool {
	return errors.Is(err, dibs.ErrForked) || errors.Is(err, errTooMany) || errors.Is(err, dibs.ErrCorrupt) && !errors.Is(err, dibs.ErrPoison)
}

// backlogOf counts entries between two places. Across epochs it counts the
// newest epoch's only, which is a lower bound.
func backlogOf(position, head dibs.Cursor) int64 {
	switch {
	case !position.Before(head):
		return 0
	case position.Epoch == head.Epoch:
		return int64(head.Seq) - int64(position.Seq)
	}
	return int64(head.Seq)
}

package live

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// Shard is how far one shard has been settled.
//
// mu guards fence, position and what waits for them, and is held for no request.
// position only moves within one fence: what was read under another one says nothing
// (moveTo). moved is closed each time that position moves or settling halts for good,
// so a caller takes it under mu before it looks. The poll loop alone writes what is
// said to be its own; what is atomic anyone reads.
type Shard struct {
	ID dibs.ShardID
	l  *Campaign

	// Settles says that this node settles the shard.
	Settles atomic.Bool
	// seen is what the engine counted when it was polled last; nil while the
	// shard is not open.
	seen atomic.Pointer[dibs.ShardStats]
	// idle is set while nothing has happened on the shard since it was looked at.
	idle    atomic.Bool
	backlog atomic.Int64
	// skewMS is by how much the engine's clock was ahead of the service's.
	skewMS atomic.Int64

	mu       sync.Mutex
	fence    uint16        // the shard's epoch in the ledger when this node opened it; 0 outside
	position dibs.Cursor   // committed in the ledger
	wanted   dibs.Cursor   // a caller waits until this is
	moved    chan struct{} // closed and replaced when position moves
	lastErr  error         // why the last attempt failed
	failures int           // attempts that failed
	idleAt   time.Time     // when nothing was waiting, the last time
	follower bool          // a goroutine asks the ledger where the position is
	// leaseEnds is when the lease ends that this node took last.
	leaseEnds time.Time

	// What follows is the poll loop's.
	lookAt  time.Time
	pace    time.Duration
	leaseAt time.Time
	// tailAt is when the rest of a shard is looked for that is over and not open.
	tailAt time.Time

	// opening is set while the shard is being opened, rest after it failed.
	opening atomic.Bool
	rest    *rest
}

func newShard(id dibs.ShardID, l *Campaign, now time.Time) *Shard {
	return &Shard{ID: id, l: l, moved: make(chan struct{}), idleAt: now, rest: &rest{}}
}

// At is how far the ledger is.
func (t *Shard) At() dibs.Cursor {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.position
}

// Seen is what the engine counted when the shard was looked at last, here or by a
// caller of the poll loop; nil while the shard is not open. It is read-only.
func (t *Shard) Seen() *dibs.ShardStats { return t.seen.Load() }

// fenced is where the next batch begins, and the epoch that it is read under.
func (t *Shard) fenced() (fence uint16, position dibs.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fence, t.position
}

// enter notes the epoch that this node has opened, and where the ledger is in it.
func (t *Shard) enter(fence uint16, p dibs.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fence == fence && p.Before(t.position) {
		// It was read before this node settled on.
		p = t.position
	}
	t.fence = fence
	t.moveToLocked(p)
}

// leave notes that the epoch which this node had opened is over; false when it has
// opened another one since.
func (t *Shard) leave(fence uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.fence == fence
	if left {
		t.fence = 0
	}
	return left
}

// moveTo notes how far the ledger is, as it was read under a fence. What was
// read before this node opened a later epoch says nothing any more.
func (t *Shard) moveTo(fence uint16, p dibs.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fence == fence {
		t.moveToLocked(p)
	}
}

func (t *Shard) moveToLocked(p dibs.Cursor) {
	t.position, t.lastErr = p, nil
	t.wakeLocked()
}

// want is the furthest place that a caller has waited for.
func (t *Shard) want() dibs.Cursor {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wanted
}

// isWanted reports whether a caller waits for a place that can be reached.
func (t *Shard) isWanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.position.Before(t.wanted) && !permanent(t.lastErr)
}

// failed notes why the last attempt failed; nil when it did not.
func (t *Shard) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastErr = err
	t.failures++
	if permanent(err) {
		t.wakeLocked()
	}
}

// moveFrom is moveTo for what was read while this node was at a place, unless it
// has moved on.
func (t *Shard) moveFrom(fence uint16, from, p dibs.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fence == fence && t.position == from {
		t.moveToLocked(p)
	}
}

// wakeLocked wakes all callers that wait for the shard to be settled.
func (t *Shard) wakeLocked() {
	close(t.moved)
	t.moved = make(chan struct{})
}

// permanent reports whether settling has halted until an administrator acts: no
// caller has to wait for it.
func permanent(err error) bool {
	return errors.Is(err, dibs.ErrForked) || errors.Is(err, errTooMany) || errors.Is(err, dibs.ErrCorrupt) && !errors.Is(err, dibs.ErrPoison)
}

// Rouse makes the shard be looked at soon: something happens on it.
func (t *Shard) Rouse() {
	if t.idle.Load() {
		t.idle.Store(false)
	}
}

// roused reports whether something has happened on a shard since it was looked
// at, which is looked at rarely.
func (t *Shard) roused() bool { return t.pace > pollEvery && !t.idle.Load() }

// leaseOver reports whether the lease has ended that this node had.
func (t *Shard) leaseOver(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !now.Before(t.leaseEnds)
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

// lagMS is how long entries of a shard have waited for the settling.
func (s *Registry) lagMS(t *Shard, head dibs.Cursor) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.position.Before(head) {
		return 0
	}
	return max(s.now().Sub(t.idleAt).Milliseconds(), 0)
}

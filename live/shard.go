package live

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// Shard is one shard of a campaign as this node knows it, in parts with one job each.
//
// ID and l never change. Each part says what guards its fields; none needs another
// one's lock. The zero Shard with an ID has been seen nowhere and settles nothing; one
// that is settled is made by newShard.
type Shard struct {
	ID dibs.ShardID
	l  *Campaign

	progress progress
	lease    lease
	pace     pace
	reload   reload
	seen     seen
}

func newShard(id dibs.ShardID, l *Campaign) *Shard {
	return &Shard{ID: id, l: l, progress: progress{moved: make(chan struct{})}, reload: reload{backoff: &backoff{}}}
}

// At is how far the ledger is.
func (t *Shard) At() dibs.Cursor { return t.progress.at() }

// unknown reports whether this node has not opened the shard, and does not know where the ledger is.
func (t *Shard) unknown() bool {
	fence, _ := t.progress.fenced()
	return fence == 0
}

// lagMS is how long the oldest entry has waited that is not settled, in ms, by what was seen
// of the shard last. now is the service's clock.
func (t *Shard) lagMS(st *dibs.ShardStats, now time.Time) int64 {
	return t.progress.lagMS(st, now.UnixMilli()+t.seen.skewMS.Load())
}

// Seen is what the engine counted when the shard was looked at last, here or by a
// caller of the poll loop; nil while the shard is not open. It is read-only.
func (t *Shard) Seen() *dibs.ShardStats { return t.seen.stats.Load() }

// Settles reports whether this node settles the shard.
func (t *Shard) Settles() bool { return t.lease.settles.Load() }

// Wake makes the shard be looked at soon: something happens on it.
func (t *Shard) Wake() { t.pace.wake() }

// seen is what this node saw of the shard in the engine.
//
// The poll loop writes all of it, and the loader stats when it takes over a shard that
// is open. Anyone reads it.
type seen struct {
	// stats is what the engine counted when it was polled last; nil while the
	// shard is not open.
	stats atomic.Pointer[dibs.ShardStats]
	// backlog is how many entries waited to be settled then.
	backlog atomic.Int64
	// skewMS is by how much the engine's clock was ahead of the service's.
	skewMS atomic.Int64
}

// keep notes what the engine counted, at a time by the service's clock, and returns what was
// known before.
func (s *seen) keep(st *dibs.ShardStats, now time.Time) (before *dibs.ShardStats) {
	s.skewMS.Store(st.Now - now.UnixMilli())
	return s.stats.Swap(st)
}

// lease is this node's right to settle the shard. Correctness does not depend on it: the
// ledger's compare-and-set decides between two nodes that both settle.
//
// settles is read by anyone and written by Settler.setSettles. mu guards ends. askAt is
// the poll loop's.
type lease struct {
	settles atomic.Bool

	mu   sync.Mutex
	ends time.Time // when the lease ends that this node took last

	askAt time.Time // when it is asked for again
}

// taken notes that a lease was taken that was asked for at a time.
func (l *lease) taken(asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = asked.Add(dibs.LeaseTime)
}

// over reports whether the lease has ended that this node had.
func (l *lease) over(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !now.Before(l.ends)
}

// due reports whether it is time to ask for the lease, and notes that it is done then.
func (l *lease) due(now time.Time) bool {
	if now.Before(l.askAt) {
		return false
	}
	l.askAt = now.Add(dibs.LeaseTime / 3)
	return true
}

// pace is when the poll loop looks at the shard.
//
// idle is written by anyone. The other fields are the poll loop's.
type pace struct {
	// idle is set while nothing has happened on the shard since it was looked at.
	idle atomic.Bool

	every time.Duration // from one look to the next
	next  time.Time     // when the next look is due
}

// wake makes the next look be soon. It writes only once between two looks: every claim
// calls it.
func (p *pace) wake() {
	if p.idle.Load() {
		p.idle.Store(false)
	}
}

// woken reports whether something has happened on a shard since it was looked
// at, which is looked at rarely.
func (p *pace) woken() bool { return p.every > pollEvery && !p.idle.Load() }

// due reports whether it is time to look.
func (p *pace) due(now time.Time) bool { return !now.Before(p.next) || p.woken() }

// look notes that the shard is looked at now. Changes from now on may not be in what is
// read, and wake it again.
func (p *pace) look() {
	if p.woken() {
		p.every = pollEvery
	}
	p.idle.Store(true)
}

// soon has the shard looked at again in the next round.
func (p *pace) soon() { p.every, p.next = pollEvery, time.Now().Add(pollEvery) }

// after has the shard looked at again in a while. Shards that were woken together are
// not looked at together for ever.
func (p *pace) after(every time.Duration) {
	p.every = every
	p.next = time.Now().Add(every - time.Duration(rand.Int64N(int64(every/8))))
}

// by has the shard looked at before a time, in its turn among others within a span.
func (p *pace) by(latest time.Time, span time.Duration) {
	if p.next.After(latest) {
		p.next = latest.Add(-time.Duration(rand.Int64N(max(int64(span), 1))))
	}
}

const (
	// pollEvery is how often shards are looked at. One that other processes
	// decide on too, and that stands still, is looked at ever more rarely, every
	// pollIdle or less often (see idlePace): each look is a question to another
	// machine.
	pollEvery = 50 * time.Millisecond
	pollIdle  = time.Second
	// pollSettling is how rarely a shard is looked at that this node settles.
	pollSettling = 200 * time.Millisecond
)

// reload is the opening of a shard that is not open any more.
//
// opening is set by the goroutine that opens the shard, and by no other meanwhile. backoff
// has a lock of its own, and is the admission's for a campaign with one shard. tailAt is
// the poll loop's.
type reload struct {
	opening atomic.Bool
	backoff *backoff
	// tailAt is when the rest of a shard is looked for that is over and not open.
	tailAt time.Time
}

// begin reports whether the caller is to open the shard: nobody does, and it has not
// failed just now. The caller calls end then.
func (r *reload) begin() bool { return r.backoff.over() && r.opening.CompareAndSwap(false, true) }

func (r *reload) end() { r.opening.Store(false) }
